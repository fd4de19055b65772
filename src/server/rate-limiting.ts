/** The rate-limit service of a process: its counters, its limiter, and the files that its limits come from. */
import type { RequestListener } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import type { LimitDomain } from '#config';
import {
  type Counters,
  createLimiter,
  createLimitStats,
  createMemoryCounters,
  createRateLimitHttp,
  type Limiter,
  type LimitStats,
  openRateLimitMetrics,
  openRedisCounters,
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
  /** What became of them in this process. */
  readonly stats: LimitStats;
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
  const stats = createLimitStats();
  const metrics = isHttp ? await openRateLimitMetrics({ stats }) : undefined;
  const counters = await openCounters(settled, stats.failed);
  const limiter = createLimiter({
    limits: configuration.limits,
    counters,
    countDenied: settings.ratelimitCountDenied,
    responseHeaders: settings.ratelimitResponseHeaders,
    stats,
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
    stats,
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
    stats: createLimitStats(),
    isReady: () => true,
    leave: () => {},
    close: async () => {},
  });
}

/** In Redis the time is that of Redis, so that all who share it agree. */
async function openCounters({ settings, logger, clock }: Settled, onError: () => void): Promise<Counters> {
  const { redisUrl: url, redisTimeoutMs: timeoutMs, ratelimitFailOpen: failOpen } = settings;
  if (url === undefined) return createMemoryCounters({ clock, keysMax: settings.ratelimitKeysMax });
  return withFailurePolicy(await openRedisCounters({ url, timeoutMs, logger }), { failOpen, logger, onError });
}
