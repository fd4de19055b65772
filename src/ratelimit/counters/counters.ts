/** The `Counters` interface, implemented in memory and in Redis, and the policy for counters that do not respond. */
import type { Algorithm } from '#ratelimit/limit';
import { CountersUnavailable } from '../limiter.ts';

/**
 * A hit on the counter of one limit. Until the configuration changes, all hits of a key agree in everything but `hits`
 * and `shadow`. algorithms.ts computes how many hits are available.
 *
 * The available number is never negative, and a hit is over when `hits` exceeds it. A hit of 0 counts nothing and is
 * over when nothing is available and the limit is above 0: Envoy checks a limit this way, and reports the cost of the
 * response afterwards.
 */
export interface Hit {
  readonly key: string;
  readonly algorithm: Algorithm;
  readonly windowSeconds: number;
  /** Hits per window. */
  readonly limit: number;
  /** The size of the token bucket. Equals `limit` for the other algorithms. */
  readonly burst: number;
  /** A negative number gives hits back, but at most those that are counted. It never denies the request. */
  readonly hits: number;
  /** True for a hit that never denies the request. */
  readonly shadow: boolean;
  /**
   * The number of its quota in quota mode; several hits may share one. Quotas deny a request only when all of them are
   * over.
   */
  readonly quota?: number | undefined;
}

export interface HitResult {
  /** True when the hit does not fit. */
  readonly over: boolean;
  /** Hits that still fit. */
  readonly remaining: number;
  /**
   * Whole seconds, rounded up, at least 1. For a fixed window, until it ends. For the other algorithms, until the same
   * hit fits if it is over but can fit later, and otherwise until the counter is back in its initial state.
   */
  readonly resetSeconds: number;
  /** True when the hit is over according to an earlier result of the shared counters, cached in this process. */
  readonly fromCache?: boolean;
  /** True when the counters could not be reached: the hit is not counted, and the remainder is unknown. */
  readonly isUncounted?: boolean;
}

export interface TakeOptions {
  /**
   * Count every hit even if the request is denied: in a fixed window all of it, so that a proxy may give back the hits
   * of denied requests as well, and otherwise as far as it fits. @default false
   */
  readonly countDenied?: boolean;
}

/**
 * Counts the hits of requests.
 *
 * `take` decides all hits of a request in one atomic step and returns their results in the same order. Hits are counted
 * only if the request is not denied, so that a denied request does not use up its other limits. Each hit sees what the
 * earlier hits of the same call have counted. There are four exceptions:
 *
 * - Hits are given back even if the request is denied.
 * - Shadow hits never deny the request, and are counted as far as they fit even if it is denied.
 * - Hits of quotas are counted as far as they fit unless the request is denied.
 * - With `countDenied`, all hits are counted, and those in a fixed window even if they do not fit.
 *
 * Shared counters need one round trip, which several calls may share, and use the clock of the counters, so that all
 * processes agree.
 */
export interface Counters {
  take(hits: readonly Hit[], options?: TakeOptions): readonly HitResult[] | Promise<readonly HitResult[]>;
  /** Whether the counters can be reached now. @default true */
  isReady?(): boolean;
  close?(): Promise<void>;
}

/** Returns how many hits must be available for the hit to fit. A negative number always fits. */
export function neededOf({ hits, limit }: Pick<Hit, 'hits' | 'limit'>): number {
  return hits === 0 ? Math.min(1, limit) : hits;
}

/** Reports whether these results deny the request. */
export function isDenied(hits: readonly Hit[], results: readonly Pick<HitResult, 'over'>[]): boolean {
  if (!results.some(({ over }) => over)) return false;
  const quotas = new Map<number, boolean>();
  for (const [index, { hits: taken, quota, shadow }] of hits.entries()) {
    // What is given back has no say in whether all quotas are over.
    if (taken < 0) continue;
    const denies = !shadow && results[index]?.over === true;
    if (quota !== undefined) quotas.set(quota, denies || quotas.get(quota) === true);
    else if (denies) return true;
  }
  return quotas.size > 0 && [...quotas.values()].every(Boolean);
}

/** Tracks an outage of the counters' server. It logs only a few lines, however many requests are affected. */
export interface Outage {
  readonly failed: (error: unknown) => void;
  readonly succeeded: () => void;
}

export interface FailurePolicyOptions {
  /**
   * If true, requests pass uncounted, except for hits that exceed a whole limit. If false, they are rejected with a
   * `CountersUnavailable`.
   */
  readonly failOpen: boolean;
  readonly outage: Outage;
  /** Called for every decision for which the counters could not be reached. */
  readonly onError?: (error: unknown) => void;
}

/**
 * Wraps counters with the policy. The results of requests that pass uncounted have `isUncounted`, because their
 * remainder is unknown.
 */
export function withFailurePolicy(counters: Counters, { failOpen, outage, onError }: FailurePolicyOptions): Counters {
  function fail(error: unknown, hits: readonly Hit[]): readonly HitResult[] {
    outage.failed(error);
    onError?.(error);
    if (!failOpen) throw new CountersUnavailable(undecided, { cause: error });
    return uncounted(hits);
  }

  function succeed(results: readonly HitResult[]): readonly HitResult[] {
    // A cached result does not prove that the counters can be reached again.
    if (!results.some(({ fromCache }) => fromCache)) outage.succeeded();
    return results;
  }

  return Object.freeze({
    ...counters,
    take(hits: readonly Hit[], options?: TakeOptions) {
      const taken = counters.take(hits, options);
      if (!(taken instanceof Promise)) return succeed(taken);
      return taken.then(succeed, (error: unknown) => fail(error, hits));
    },
  });
}

const undecided = 'hits cannot be counted, so there is no decision';

/** A hit that exceeds a whole limit, such as any hit on a limit of 0, is denied even without a counter. */
function uncounted(hits: readonly Hit[]): readonly HitResult[] {
  return hits.map((hit) => ({
    over: neededOf(hit) > capacityOf(hit),
    remaining: 0,
    resetSeconds: 1,
    isUncounted: true,
  }));
}

function capacityOf({ algorithm, limit, burst }: Hit): number {
  return algorithm === 'token_bucket' && limit > 0 ? burst : limit;
}
