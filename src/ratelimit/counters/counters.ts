/** The port `Counters`: where hits are counted, in this process or shared by many, and what each algorithm means exactly. */
import type { Algorithm } from '#config';

/**
 * A hit on the counter of one limit. All but `key`, `hits` and `shadow` are the same for every hit of a key, until the
 * configuration changes. With `W` for the window and integers throughout:
 *
 * - `fixed_window`: windows are numbered from the epoch, `floor(now / W)`; available is `limit - current`.
 * - `sliding_window`: the same windows; the window before counts as far as it overlaps the last `W`. Available is
 *   `limit - current - ceil(previous * (Wms - elapsedMs) / Wms)`, `elapsedMs` being the age of the current window.
 * - `token_bucket`: GCRA (ITU-T I.371) in microseconds. One hit takes `interval = ceil(Wus / limit)` to be restored, a full
 *   bucket `full = burst * interval`; `tat` is when the bucket will be full again, kept within `now` and `now + full`.
 *   Available is `floor((full - (tat - now)) / interval)`; adding hits adds `hits * interval` to `tat`. A limit of 0 has
 *   none available.
 *
 * What is available is never below 0, and a hit is over when `hits` is more than that. 0 hits only look: they are over when
 * nothing is available of a limit above 0, because Envoy asks so first and reports what a response has cost after it.
 */
export interface Hit {
  readonly key: string;
  readonly algorithm: Algorithm;
  readonly windowSeconds: number;
  /** Hits per window. */
  readonly limit: number;
  /** The size of a token bucket; for the other algorithms the limit. */
  readonly burst: number;
  readonly hits: number;
  /** Never makes the request denied. */
  readonly shadow: boolean;
  /** In quota mode, the number of its quota, which several hits may share: the request is denied only when all of its quotas are over. */
  readonly quota?: number | undefined;
}

export interface HitResult {
  /** The hit does not fit. */
  readonly over: boolean;
  /** Hits that still fit. */
  readonly remaining: number;
  /**
   * Whole seconds, rounded up, at least 1. A fixed window: until it ends. The others: until the same hit fits if it is
   * over and ever can fit, otherwise until the counter is as good as new.
   */
  readonly resetSeconds: number;
  /** Over without asking the shared counters: their earlier answer is cached in this process. */
  readonly fromCache?: boolean;
  /** The counters could not be reached: nothing is counted, and what remains is not known. */
  readonly isUncounted?: boolean;
}

export interface TakeOptions {
  /** Every hit takes what it can, although the request is denied. @default false */
  readonly countDenied?: boolean;
}

/**
 * Decides all hits of a request in one call: they are counted only if every one of them fits, so that a denied
 * request costs its other limits nothing. A hit sees what those before it in the same call have taken.
 * Shadow hits do not deny, and take what they can: all of their hits, or as many as fit, whether or not the request is
 * denied; with `countDenied` so do all. Hits of quotas take what they can unless the request is denied. One call is one atomic step, and for shared counters a round trip that
 * it may share with other calls.
 * The time is that of the counters, so that processes that share them agree. Results come in the order of `hits`.
 */
export interface Counters {
  take(hits: readonly Hit[], options?: TakeOptions): readonly HitResult[] | Promise<readonly HitResult[]>;
  /** Whether they can answer now. @default true */
  isReady?(): boolean;
  close?(): Promise<void>;
}

/** How many hits must be available for the hit to fit. */
export function neededOf({ hits, limit }: Pick<Hit, 'hits' | 'limit'>): number {
  return hits === 0 ? Math.min(1, limit) : hits;
}

/** Whether a request with these results is denied. */
export function isDenied(hits: readonly Hit[], results: readonly Pick<HitResult, 'over'>[]): boolean {
  const quotas = new Map<number, boolean>();
  for (const [index, { quota, shadow }] of hits.entries()) {
    const denies = !shadow && results[index]?.over === true;
    if (quota !== undefined) quotas.set(quota, denies || quotas.get(quota) === true);
    else if (denies) return true;
  }
  return quotas.size > 0 && [...quotas.values()].every(Boolean);
}
