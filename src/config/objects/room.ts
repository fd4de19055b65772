/** Bounds how many Mappings the objects of each namespace of a cluster have together. */

export interface RoomOptions {
  /** The namespaces whose records may authenticate, limit, and name files and this machine. */
  readonly trusted: readonly string[];
  /** How many Mappings the objects of a namespace may have together, unless it is trusted. @default no bound */
  readonly mappingsMax?: number | undefined;
}

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
