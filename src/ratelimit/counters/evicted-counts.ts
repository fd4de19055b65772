/** Remembers the counts of evicted counters in bounded memory, so that eviction neither restores nor takes quota. */
import { hash } from 'node:crypto';

/** An evicted counter. */
export interface EvictedCount {
  readonly count: number;
  /** From 0 to 6. When there is no room, higher ranks and then higher counts are kept. */
  readonly rank: number;
  /** Seconds since the epoch. From then on, the count is irrelevant. */
  readonly expiresAt: number;
}

export interface EvictedCounts {
  /** Replaces an earlier count of the same counter. */
  record(name: string, evicted: EvictedCount, nowMs: number): void;
  /** Returns the count of a counter, or 0 if none is recorded. */
  countOf(name: string): number;
}

const slotsPerBucket = 8;
/** Slots for each counter that the store has room for. */
const slotsPerKey = 32;

/**
 * A hash table that names counters by 29 bits of a digest. A name belongs to two buckets, and is recorded in the one
 * with more room, so that nearly all slots can be used. The secret `seed` keeps clients from choosing names that share
 * buckets. Two names that share a bucket and the bits of the digest share a count, which happens to one name in thirty
 * million.
 */
export function createEvictedCounts(keysMax: number, seed: string): EvictedCounts {
  const buckets = Math.max(2, Math.ceil((slotsPerKey * keysMax) / slotsPerBucket));
  const slots = buckets * slotsPerBucket;
  /** The bits of the digest, followed by three bits that hold the rank plus 1. Zero for a slot that was never used. */
  const tags = new Uint32Array(slots);
  const counts = new Float64Array(slots);
  const expiries = new Uint32Array(slots);

  function placeOf(name: string): Place {
    const digest = hash('sha256', seed + name, 'buffer');
    const startOf = (at: number) => (digest.readUInt32LE(at) % buckets) * slotsPerBucket;
    return { first: startOf(0), second: startOf(4), bits: digest.readUInt32LE(8) >>> 3 };
  }

  /** Returns -1 if the name is not recorded. */
  function find({ first, second, bits }: Place): number {
    const found = findIn(first, bits);
    return found === -1 ? findIn(second, bits) : found;
  }

  function findIn(start: number, bits: number): number {
    for (let slot = start; slot < start + slotsPerBucket; slot += 1) {
      const tag = tags[slot] ?? 0;
      if (tag !== 0 && tag >>> 3 === bits) return slot;
    }
    return -1;
  }

  /** Returns a free slot, in the bucket that has more of them, and -1 if there is none. */
  function findFree({ first, second }: Place, nowSeconds: number): number {
    const [some, others] = [freeIn(first, nowSeconds), freeIn(second, nowSeconds)];
    return some.count < others.count ? others.slot : some.slot;
  }

  function freeIn(start: number, nowSeconds: number): { readonly slot: number; readonly count: number } {
    let [free, count] = [-1, 0];
    for (let slot = start; slot < start + slotsPerBucket; slot += 1) {
      if (tags[slot] !== 0 && (expiries[slot] ?? 0) > nowSeconds) continue;
      free = slot;
      count += 1;
    }
    return { slot: free, count };
  }

  /** Returns the slot of the least important count, and -1 if the new one is less important still. */
  function findLesser({ first, second }: Place, evicted: EvictedCount): number {
    const [some, others] = [leastIn(first), leastIn(second)];
    const least = compare(evictedAt(others), evictedAt(some)) < 0 ? others : some;
    return compare(evictedAt(least), evicted) <= 0 ? least : -1;
  }

  function leastIn(start: number): number {
    let least = start;
    for (let slot = start + 1; slot < start + slotsPerBucket; slot += 1)
      if (compare(evictedAt(slot), evictedAt(least)) < 0) least = slot;
    return least;
  }

  function evictedAt(slot: number): Importance {
    return { rank: ((tags[slot] ?? 0) & 7) - 1, count: counts[slot] ?? 0 };
  }

  return Object.freeze({
    record(name: string, evicted: EvictedCount, nowMs: number): void {
      const place = placeOf(name);
      const nowSeconds = Math.floor(nowMs / 1_000);
      let slot = find(place);
      if (slot === -1 && evicted.count === 0) return;
      if (slot === -1) slot = findFree(place, nowSeconds);
      if (slot === -1) slot = findLesser(place, evicted);
      if (slot === -1) return;
      tags[slot] = place.bits * 8 + evicted.rank + 1;
      counts[slot] = evicted.count;
      expiries[slot] = Math.min(evicted.expiresAt, 2 ** 32 - 1);
    },
    countOf(name: string): number {
      const slot = find(placeOf(name));
      return slot === -1 ? 0 : (counts[slot] ?? 0);
    },
  });
}

/** Where a name may be recorded: the first slot of each of its buckets, and the bits that name it there. */
interface Place {
  readonly first: number;
  readonly second: number;
  readonly bits: number;
}

type Importance = Pick<EvictedCount, 'rank' | 'count'>;

/** Returns a negative number if `a` is less important than `b`. */
function compare(a: Importance, b: Importance): number {
  return a.rank - b.rank || a.count - b.count;
}
