/** A bounded memory of what was made for a key; the least recently used is forgotten first. */

/** Returns what was made for the key before, or makes it. */
export type Recall<Value> = (key: string, make: () => Value) => Value;

export function createRecent<Value>(max: number): Recall<Value> {
  const values = new Map<string, Value>();
  return function recall(key, make) {
    const value = values.get(key) ?? make();
    if (!values.delete(key) && values.size >= max) values.delete(values.keys().next().value ?? '');
    values.set(key, value);
    return value;
  };
}
