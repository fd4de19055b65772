/** Values that successive gateways share by name: each lives until its last holder releases it. */

export interface Leases<Value> {
  /** All holders of a name share one value, which is dropped when the last one releases it. */
  readonly acquire: (name: string, create: () => Value) => Lease<Value>;
  readonly get: (name: string) => Value | undefined;
  readonly values: () => readonly Value[];
}

export interface Lease<Value> {
  readonly value: Value;
  /** Call it once. */
  readonly release: () => void;
}

export function createLeases<Value>(): Leases<Value> {
  const shared = new Map<string, { readonly value: Value; holders: number }>();
  return Object.freeze({
    acquire(name: string, create: () => Value) {
      const entry = shared.get(name) ?? { value: create(), holders: 0 };
      entry.holders += 1;
      shared.set(name, entry);
      return {
        value: entry.value,
        release() {
          entry.holders -= 1;
          if (entry.holders === 0) shared.delete(name);
        },
      };
    },
    get: (name: string) => shared.get(name)?.value,
    values: () => Array.from(shared.values(), ({ value }) => value),
  });
}
