/** Bounds of what an object of a cluster may contain: far beyond any record, and read while requests wait. */
import { valueAt } from '../errors.ts';
import { keysMax, levelsMax } from '../yaml.ts';

/** Reading takes time and memory with each character. Kubernetes allows far more. */
export const charactersMax = 64 * 1024;

/** Of an annotation. Each valid one has far more characters than its share. */
export const documentsMax = 1000;

const valuesMax = 20_000;

/** Says what is too much in plain data: `is nested more than 64 levels deep`. Undefined if nothing is. */
export function excessOf(value: unknown): string | undefined {
  let values = 0;
  let characters = 0;
  let level = isGroup(value) ? [value] : [];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth === levelsMax) return `is nested more than ${levelsMax} levels deep`;
    if (level.some(hasManyKeys)) return `has a map with more than ${keysMax} keys`;
    const inner = level.flatMap((group) => Object.values(group));
    values += inner.length;
    if (values > valuesMax) return `has more than ${valuesMax} values`;
    characters += level.reduce((sum, group) => sum + charactersIn(group), 0);
    if (characters > charactersMax) return `has more than ${charactersMax} characters`;
    level = inner.filter(isGroup);
  }
  return undefined;
}

/** Those of its keys and texts. */
function charactersIn(group: object): number {
  const keys = Array.isArray(group) ? [] : Object.keys(group);
  const texts = [...keys, ...Object.values(group)];
  return texts.reduce((sum, text) => sum + (typeof text === 'string' ? text.length : 0), 0);
}

function isGroup(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function hasManyKeys(group: object): boolean {
  return !Array.isArray(group) && Object.keys(group).length > keysMax;
}

/** Compiling one takes up to some milliseconds. */
const patternsMax = 200;

/** Compiling one takes three milliseconds, if it ignores the case of letters, in each thread and with each reload. */
const wideMax = 20;

/** A class of Unicode, or a range whose end is beyond ASCII. */
const wide = /\\p|-(?:\\x|[^\x20-\x7e])/gi;

/** Says what is too much in the regular expressions of fields of records. Undefined if nothing is. */
export function patternExcess(value: unknown): string | undefined {
  const patterns = patternsIn(value);
  if (patterns.length > patternsMax) return `has more than ${patternsMax} regular expressions`;
  return wideIn(patterns) > wideMax
    ? `has more than ${wideMax} classes or ranges of characters beyond ASCII in regular expressions`
    : undefined;
}

/** With 200 instructions, one takes up to 240 KB in each thread, and a Mapping without any 34. */
const mappingsPerPattern = 5;

/** A list of so many characters takes as much memory in each thread as a Mapping without it. */
const charactersPerMapping = 4_000;

/** As how many Mappings more so many characters of one count. */
export function lengthCost(characters: number): number {
  return Math.floor(characters / charactersPerMapping);
}

export function lengthOf(fields: unknown): number {
  return JSON.stringify(fields).length;
}

/** As how many Mappings the regular expressions in fields of records count, and the classes and ranges in them. */
export function patternCost(value: unknown): number {
  const patterns = patternsIn(value);
  return patterns.length * mappingsPerPattern + wideIn(patterns);
}

function wideIn(patterns: readonly unknown[]): number {
  return patterns.reduce<number>((sum, pattern) => sum + (String(pattern).match(wide)?.length ?? 0), 0);
}

function patternsIn(value: unknown): readonly unknown[] {
  if (!isGroup(value)) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    if (!/regex/i.test(name)) return patternsIn(inner);
    if (inner === false) return [];
    // `prefix_regex: true` says that `prefix` is one.
    return isGroup(inner) ? Object.values(inner) : [valueAt(value, [name.replace(/_?regex/i, '')])];
  });
}
