/** Bounds of what an object of a cluster may contain: those of a file, and far beyond any record. */
import { keysMax, levelsMax } from '../yaml.ts';

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
