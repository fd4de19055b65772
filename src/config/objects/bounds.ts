/** Bounds of what an object of a cluster may contain: far beyond any record, and read while requests wait. */
import { keysMax, levelsMax } from '../yaml.ts';

/** Parsing takes time and memory with each character. Kubernetes allows four times as many. */
export const annotationCharactersMax = 64 * 1024;

const valuesMax = 20_000;

/** Says what is too much in plain data: `is nested more than 64 levels deep`. Undefined if nothing is. */
export function excessOf(value: unknown): string | undefined {
  let values = 0;
  let level = isGroup(value) ? [value] : [];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth === levelsMax) return `is nested more than ${levelsMax} levels deep`;
    if (level.some(hasManyKeys)) return `has a map with more than ${keysMax} keys`;
    const inner = level.flatMap((group) => Object.values(group));
    values += inner.length;
    if (values > valuesMax) return `has more than ${valuesMax} values`;
    level = inner.filter(isGroup);
  }
  return undefined;
}

function isGroup(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function hasManyKeys(group: object): boolean {
  return !Array.isArray(group) && Object.keys(group).length > keysMax;
}
