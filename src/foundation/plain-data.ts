/** Plain data: what JSON and YAML can express. */

export type Fields = Readonly<Record<string, unknown>>;

/** A map in the sense of YAML: a list is none. */
export function isMap(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Formats as JSON with the keys of each map in order, so that equal values have the same text. */
export function sortedJson(value: unknown): string {
  return JSON.stringify(value, withSortedKeys);
}

function withSortedKeys(_: string, value: unknown): unknown {
  return isMap(value) ? Object.fromEntries(Object.entries(value).sort(byName)) : value;
}

function byName([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number {
  return one < other ? -1 : 1;
}
