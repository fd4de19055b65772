/** A bounded cache that evicts the least recently used value. */

/** Returns the value of the key, creating it if it is not cached. */
export type GetOrCreate<Value> = (key: string, create: () => Value) => Value;

export function createLruCache<Value>(max: number): GetOrCreate<Value> {
  const values = new Map<string, Value>();
  return function getOrCreate(key, create) {
    const value = values.get(key) ?? create();
    if (!values.delete(key) && values.size >= max) values.delete(values.keys().next().value ?? '');
    values.set(key, value);
    return value;
  };
}
