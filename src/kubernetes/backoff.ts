/** How long reads and writes wait for an API server that cannot take them. */

/** The first delay, and the longest. */
export type Backoff = readonly [firstMs: number, mostMs: number];

/** Doubles with each failure, and varies by up to half, so that not all ask at once when the server is back. */
export function backoffMs([firstMs, mostMs]: Backoff, failuresInARow: number, random = Math.random): number {
  return Math.min(mostMs, firstMs * 2 ** failuresInARow) * (0.5 + random() / 2);
}
