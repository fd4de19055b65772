/** New ids for traces and their spans: unpredictable, and made from random bytes that are fetched many at a time. */
import { randomFillSync } from 'node:crypto';

export interface TraceIds {
  /** 32 hexadecimal digits in lower case, never all zero. */
  readonly traceId: () => string;
  /** 16 of them. */
  readonly spanId: () => string;
}

/** Enough for 170 requests that each begin a trace. */
const poolBytes = 4096;

/** `fill` writes random bytes over all of the buffer. The pool is not there before the first id. */
export function createTraceIds(fill: (bytes: Buffer) => unknown = randomFillSync): TraceIds {
  let pool: Buffer | undefined;
  let next = poolBytes;

  function take(bytes: number): string {
    pool ??= Buffer.allocUnsafeSlow(poolBytes);
    if (next + bytes > poolBytes) {
      fill(pool);
      next = 0;
    }
    next += bytes;
    return pool.toString('hex', next - bytes, next);
  }

  /** All zero means "none" (W3C Trace Context section 3.2.2.3). */
  function takeId(bytes: number): string {
    let id = take(bytes);
    while (/^0+$/.test(id)) id = take(bytes);
    return id;
  }

  return Object.freeze({ traceId: () => takeId(16), spanId: () => takeId(8) });
}
