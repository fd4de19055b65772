/** Counts latencies in buckets, so that millions of them take a few kilobytes. */

/** Each bucket is 1 % wider than the one before, from a microsecond to ten minutes. */
const growth = Math.log(1.01);
const bucketCount = 2048;

export interface Latencies {
  readonly record: (milliseconds: number) => void;
  /** The number of latencies in each bucket. */
  readonly counts: () => readonly number[];
  readonly clear: () => void;
}

export function createLatencies(): Latencies {
  const counts = new Uint32Array(bucketCount);
  return {
    record(milliseconds) {
      const bucket = Math.min(bucketCount - 1, Math.max(0, Math.ceil(Math.log(milliseconds * 1000) / growth)));
      counts[bucket] = (counts[bucket] ?? 0) + 1;
    },
    counts: () => [...counts],
    clear: () => void counts.fill(0),
  };
}

/** The milliseconds that this share of the latencies does not exceed, up to 1 % too high. */
export function latencyAt(counts: readonly number[], share: number): number {
  let remaining = share * counts.reduce((total, count) => total + count, 0);
  const bucket = counts.findIndex((count) => {
    remaining -= count;
    return count > 0 && remaining <= 0;
  });
  return bucket === -1 ? Number.NaN : Math.exp(bucket * growth) / 1000;
}
