/** The failure policy for counters that cannot be reached: requests pass uncounted or fail. */
import { CountersUnavailable } from '../limiter.ts';
import { type Counters, type Hit, type HitResult, neededOf, type TakeOptions } from './counters.ts';

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
