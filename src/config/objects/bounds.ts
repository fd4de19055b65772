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

/** Compiling one takes some milliseconds, if it ignores the case of letters. */
const wideMax = 20;

/** A class of Unicode, or a range whose end is beyond ASCII. */
const wide = /\\p|-(?:\\x|[^\x20-\x7e])/gi;

/** Says what is too much in the regular expressions of fields of records. Undefined if nothing is. */
export function patternExcess(value: unknown): string | undefined {
  const patterns = patternsIn(value);
  if (patterns.length > patternsMax) return `has more than ${patternsMax} regular expressions`;
  const found = patterns.flatMap((pattern) => String(pattern).match(wide) ?? []);
  return found.length > wideMax
    ? `has more than ${wideMax} classes or ranges of characters beyond ASCII in regular expressions`
    : undefined;
}

/** The regular expressions in fields of records, of which each takes as much memory as a Mapping without any. */
export function patternsIn(value: unknown): readonly unknown[] {
  if (!isGroup(value)) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    if (!/regex/i.test(name)) return patternsIn(inner);
    // `prefix_regex: true` says that `prefix` is one.
    return isGroup(inner) ? Object.values(inner) : [valueAt(value, [name.replace(/_?regex/i, '')])];
  });
}

/** Bounds how many Mappings the objects of each namespace have together. */
export interface Room {
  readonly has: (namespace: string, mappingCount: number) => boolean;
  /** Returns false if there is no room for so many, and takes none then. */
  readonly take: (namespace: string, mappingCount: number) => boolean;
}

export function createRoom({ trusted, mappingsMax = Number.POSITIVE_INFINITY }: RoomOptions): Room {
  const taken = new Map<string, number>();
  const takenBy = (namespace: string) => taken.get(namespace) ?? 0;
  const has: Room['has'] = (namespace, count) =>
    trusted.includes(namespace) || takenBy(namespace) + count <= mappingsMax;
  return {
    has,
    take(namespace, count) {
      if (!has(namespace, count)) return false;
      taken.set(namespace, takenBy(namespace) + count);
      return true;
    },
  };
}

export interface RoomOptions {
  /** The namespaces whose records may authenticate, limit, and name files and this machine. */
  readonly trusted: readonly string[];
  /** How many Mappings the objects of a namespace may have together, unless it is trusted. @default no bound */
  readonly mappingsMax?: number | undefined;
}
