/** A map with a bound: a full one evicts its oldest entry. */

export interface BoundedMap<Key, Value> {
  readonly size: () => number;
  readonly has: (key: Key) => boolean;
  readonly get: (key: Key) => Value | undefined;
  /** Like `get`, and makes the entry the newest one, so that the map evicts the one that was used least recently. */
  readonly use: (key: Key) => Value | undefined;
  /** Like `use`, and creates a missing value. */
  readonly getOrCreate: (key: Key, create: () => Value) => Value;
  /** Makes the entry the newest one. */
  readonly set: (key: Key, value: Value) => void;
  readonly delete: (key: Key) => void;
  /** Oldest first. */
  readonly values: () => Iterable<Value>;
}

/** With an `entriesMax` of 0, the map stays empty. Values must not be undefined. */
export function createBoundedMap<Key, Value>(entriesMax: number): BoundedMap<Key, Value> {
  // A Map keeps the order in which its keys were set.
  const entries = new Map<Key, Value>();

  function set(key: Key, value: Value): void {
    entries.delete(key);
    entries.set(key, value);
    if (entries.size <= entriesMax) return;
    for (const oldest of entries.keys()) return void entries.delete(oldest);
  }

  function use(key: Key): Value | undefined {
    const value = entries.get(key);
    if (value !== undefined) set(key, value);
    return value;
  }

  function getOrCreate(key: Key, create: () => Value): Value {
    const known = use(key);
    if (known !== undefined) return known;
    const created = create();
    set(key, created);
    return created;
  }

  return Object.freeze({
    size: () => entries.size,
    has: (key: Key) => entries.has(key),
    get: (key: Key) => entries.get(key),
    use,
    getOrCreate,
    set,
    delete: (key: Key) => void entries.delete(key),
    values: () => entries.values(),
  });
}
