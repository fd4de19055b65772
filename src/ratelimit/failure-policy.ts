/** What a request gets when its hits could not be counted. */
import type { Count, Counters, Hit, TakeOptions } from './counters.ts';
import { NotCounted } from './not-counted.ts';
import type { ConnectionLogger } from './redis-connection.ts';

export interface FailurePolicyOptions {
  /** True: requests pass uncounted, but for those that no counter could ever admit. False: a `NotCounted`. */
  readonly failOpen: boolean;
  readonly logger: ConnectionLogger;
  /** Called for each decision without an answer, for whoever keeps statistics. @default nobody */
  readonly onError?: (error: unknown) => void;
}

/**
 * The same counters, which answer when they cannot: as counters would that have counted nothing, for one second, because
 * nothing is known of the next. An outage is two lines in the log, however many requests it meets.
 */
export function withFailurePolicy(counters: Counters, { failOpen, logger, onError }: FailurePolicyOptions): Counters {
  let failures = 0;

  function fail(error: unknown, hits: readonly Hit[]): readonly Count[] {
    failures += 1;
    if (failures === 1) logger.warn({ err: error, failOpen }, failOpen ? passing : refusing);
    onError?.(error);
    if (!failOpen) throw new NotCounted(refusing, { cause: error });
    return uncounted(hits);
  }

  function succeed(counts: readonly Count[]): readonly Count[] {
    // What is remembered here shows nothing about who was not asked.
    if (failures === 0 || counts.some(({ fromMemory }) => fromMemory)) return counts;
    logger.info({ failures }, 'hits are counted again');
    failures = 0;
    return counts;
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

const passing = 'hits cannot be counted: requests pass uncounted';
const refusing = 'hits cannot be counted: the rate-limit service gives no answer';

/** A limit of 0 blocks with and without a memory, and so does one that is smaller than the hit. */
function uncounted(hits: readonly Hit[]): readonly Count[] {
  const denied = hits.some((hit) => !hit.shadow && neverFits(hit));
  return hits.map((hit) => {
    const room = capacityOf(hit);
    const taken = denied && !hit.shadow ? 0 : hit.hits;
    return { over: neverFits(hit), remaining: Math.max(0, room - taken), resetSeconds: 1 };
  });
}

function neverFits(hit: Hit): boolean {
  return hit.hits > capacityOf(hit);
}

function capacityOf({ algorithm, limit, burst }: Hit): number {
  return algorithm === 'token_bucket' && limit > 0 ? burst : limit;
}
