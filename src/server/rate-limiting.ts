/** The rate-limit service of a process: its counters, its limiter, and the files that its limits come from. */
import type { RequestListener } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import type { LimitDomain } from '#config';
import {
  type Counters,
  createMemoryCounters,
  createRateLimitHttp,
  createReloadingLimiter,
  createTallies,
  type Limiter,
  openRateLimitMetrics,
  openRedisCounters,
  type TalliedLimit,
  withFailurePolicy,
} from '#ratelimit';
import type { Settled } from './options.ts';
import type { Generations } from './reload.ts';

export interface RateLimiting {
  /** Undefined: it does not run in this process. */
  readonly limiter: Limiter | undefined;
  /** Its face over HTTP; undefined as well when no setting asks for it. */
  readonly http: RequestListener | undefined;
  /** What it decides by. */
  readonly limits: () => readonly LimitDomain[];
  /** What came of them here, each that was asked about at least once. */
  readonly tallied: () => Iterable<TalliedLimit>;
  /** How many decisions the counters gave no answer for. */
  readonly callErrors: () => number;
  /** False while stopping, and while it would answer with an error because its counters are away. */
  readonly isReady: () => boolean;
  /** It takes no more work on: from now on it says that it is not ready. */
  readonly leave: () => void;
  readonly close: () => Promise<void>;
}

/** Rejects with an Error fit for a terminal when the counters cannot be opened. */
export async function openRateLimiting(settled: Settled, generations: Generations): Promise<RateLimiting> {
  const { settings, configuration, logger, has } = settled;
  const limits = () => generations.current().configuration.limits;
  if (!has('ratelimit')) return absent(limits);
  const isHttp = settings.ratelimitHttpPort !== undefined;
  const tallies = createTallies();
  let failures = 0;
  const callErrors = () => failures;
  const metrics = isHttp ? await openRateLimitMetrics({ tallies, callErrors }) : undefined;
  function failed(): void {
    failures += 1;
  }
  const counters = await openCounters(settled, failed);
  const limiter = createReloadingLimiter({
    limits: configuration.limits,
    counters,
    countDenied: settings.ratelimitCountDenied,
    responseHeaders: settings.ratelimitResponseHeaders,
    observer: { counted: tallies.count, failed },
  });
  generations.onRead((isGood) => metrics?.loaded(isGood));
  generations.follow((next) => () => {
    if (!isDeepStrictEqual(next.limits, limits())) limiter.reload(next.limits);
  });
  let leaving = false;
  // Who answers without Redis is of use without it.
  const isReady = () => !leaving && (settings.ratelimitFailOpen || (counters.isReady?.() ?? true));
  const http = createRateLimitHttp({ limiter, isReady, limits, metrics, logger });
  return Object.freeze({
    limiter,
    http: isHttp ? http : undefined,
    limits,
    tallied: tallies.all,
    callErrors,
    isReady,
    leave() {
      leaving = true;
    },
    async close() {
      leaving = true;
      await counters.close?.();
    },
  });
}

function absent(limits: RateLimiting['limits']): RateLimiting {
  return Object.freeze({
    limiter: undefined,
    http: undefined,
    limits,
    tallied: () => [],
    callErrors: () => 0,
    isReady: () => true,
    leave: () => {},
    close: async () => {},
  });
}

/** In Redis the time is that of Redis, so that all who share it agree. */
async function openCounters({ settings, logger, clock }: Settled, failed: () => void): Promise<Counters> {
  const { redisUrl: url, redisTimeoutMs: timeoutMs, ratelimitFailOpen: failOpen } = settings;
  if (url === undefined) return createMemoryCounters({ clock, keysMax: settings.ratelimitKeysMax });
  // Failing closed, the limiter hears of it and says so itself.
  const onError = () => failOpen && failed();
  return withFailurePolicy(await openRedisCounters({ url, timeoutMs, logger }), { failOpen, logger, onError });
}
