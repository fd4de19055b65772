/** Where hits are counted: the port between the decision and its memory, in this process or shared by many. */
import type { Algorithm } from '#config';

/**
 * What one limit asks of its counter. All but `key`, `hits` and `shadow` are the same for every hit of a key, until the
 * configuration changes. With `W` for the window and integers throughout:
 *
 * - `fixed_window`: windows are numbered from the epoch, `floor(now / W)`; the room is `limit - count`.
 * - `sliding_window`: the same windows; the window before counts as far as it overlaps the last `W`. The room is
 *   `limit - count - ceil(before * (Wms - elapsedMs) / Wms)`, `elapsedMs` being the age of the present window.
 * - `token_bucket`: GCRA (ITU-T I.371) in microseconds. One hit takes `interval = ceil(Wus / limit)` to be restored, a full
 *   bucket `full = burst * interval`; `tat` is when the bucket will be full again, held within `now` and `now + full`.
 *   The room is `floor((full - (tat - now)) / interval)`; taking hits adds `hits * interval` to `tat`. A limit of 0 has no room.
 *
 * Room is never below 0, and a hit is over when `hits` is more than the room (0 hits only look, and never are).
 */
export interface Hit {
  readonly key: string;
  readonly algorithm: Algorithm;
  readonly windowSeconds: number;
  /** Hits per window. */
  readonly limit: number;
  /** What a token bucket holds; for the other algorithms the limit. */
  readonly burst: number;
  readonly hits: number;
  /** Never makes the request denied. */
  readonly shadow: boolean;
}

/** What became of a hit. */
export interface Count {
  /** There is no room for the hit. */
  readonly over: boolean;
  /** Hits that there is still room for. */
  readonly remaining: number;
  /**
   * Whole seconds, rounded up, at least 1. A fixed window: until it ends. The others: until the same hit has room if it is
   * over and ever can have, otherwise until the counter is as good as new.
   */
  readonly resetSeconds: number;
  /** Over without asking: a shared memory's answer was remembered here. */
  readonly fromMemory?: boolean;
}

export interface TakeOptions {
  /** Every hit takes what it can, although the request is denied. @default false */
  readonly countDenied?: boolean;
}

/**
 * Decides all hits of a request in one call: only if every one of them has room is any of them counted, so that a denied
 * request costs its other limits nothing. A hit sees what those before it in the same call have taken.
 * Shadow hits do not deny, and take what they can: all of their hits, or as many as there is room for, whatever becomes of
 * the others; with `countDenied` so do all. One call is one atomic step, and to a shared memory a round trip that
 * it may share with others.
 * The time is the memory's own, so that processes that share it agree. Answers in the order of `hits`.
 */
export interface Counters {
  take(hits: readonly Hit[], options?: TakeOptions): readonly Count[] | Promise<readonly Count[]>;
  /** Whether an answer can be had now. @default true */
  isReady?(): boolean;
  close?(): Promise<void>;
}
