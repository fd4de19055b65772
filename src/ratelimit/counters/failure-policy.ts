/** What a request gets while counters cannot be reached: it passes uncounted, or it fails. */
import { CountersUnavailable } from '../limiter.ts';
import { type Counters, type Hit, type HitResult, neededOf, type TakeOptions } from './counters.ts';

/** Of the counters' server. Keeps it to a few lines in the log, however many requests meet it. */
export interface Outage {
  readonly failed: (error: unknown) => void;
  readonly answered: () => void;
}

export interface FailurePolicyOptions {
  /** True: requests pass uncounted, but for those that no counter could ever admit. False: a `CountersUnavailable`. */
  readonly failOpen: boolean;
  readonly outage: Outage;
  /** Called for each decision that the counters gave no answer for. */
  readonly onError?: (error: unknown) => void;
}

/**
 * The same counters, which answer also when they cannot be reached: with results that say so, because what is left of a
 * limit is not known.
 */
export function withFailurePolicy(counters: Counters, { failOpen, outage, onError }: FailurePolicyOptions): Counters {
  function fail(error: unknown, hits: readonly Hit[]): readonly HitResult[] {
    outage.failed(error);
    onError?.(error);
    if (!failOpen) throw new CountersUnavailable(undecided, { cause: error });
    return uncounted(hits);
  }

  function succeed(results: readonly HitResult[]): readonly HitResult[] {
    // A cached result does not show that the counters are back.
    if (!results.some(({ fromCache }) => fromCache)) outage.answered();
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

const undecided = 'hits cannot be counted: requests are not decided';

/** A limit of 0 denies without a counter, and so does one that is smaller than the hit. */
function uncounted(hits: readonly Hit[]): readonly HitResult[] {
  return hits.map((hit) => ({ over: neverFits(hit), remaining: 0, resetSeconds: 1, isUncounted: true }));
}

function neverFits(hit: Hit): boolean {
  return neededOf(hit) > capacityOf(hit);
}

function capacityOf({ algorithm, limit, burst }: Hit): number {
  return algorithm === 'token_bucket' && limit > 0 ? burst : limit;
}
