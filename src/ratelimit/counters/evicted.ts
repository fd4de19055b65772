/** What evicted counters had counted: an estimate in bounded memory that is never below the count of any of them. */
import { hash } from 'node:crypto';

export interface EvictedCounts {
  record(key: string, count: number): void;
  /** At least what was recorded for the key; 0 while nothing shares its cells. */
  estimate(key: string): number;
}

const rows = 2;

/**
 * A count-min sketch (Cormode and Muthukrishnan, 2005) that keeps the largest count in place of the sum, because a counter
 * that is created again begins with its estimate. `cells` in each row; `seed` keeps clients from choosing keys that share
 * the cells of another.
 */
export function createEvictedCounts(cells: number, seed: string): EvictedCounts {
  const table = new Float64Array(rows * cells);

  function placesOf(key: string): readonly number[] {
    const digest = hash('sha256', seed + key, 'buffer');
    return Array.from({ length: rows }, (_, row) => row * cells + (digest.readUInt32LE(4 * row) % cells));
  }

  return Object.freeze({
    record(key: string, count: number): void {
      for (const place of placesOf(key)) table[place] = Math.max(table[place] ?? 0, count);
    },
    estimate: (key: string) => Math.min(...placesOf(key).map((place) => table[place] ?? 0)),
  });
}
