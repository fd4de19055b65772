/** The rate-limit service of a process: its counters, its limiter, and the files that its limits come from. */
import type { RequestListener } from 'node:http';
import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import {
  type Configuration,
  type ConfigurationError,
  type ConfigurationWatch,
  formatErrors,
  type LimitDomain,
  type LoadedConfiguration,
  watchConfiguration,
} from '#config';
import {
  type Counters,
  createMemoryCounters,
  createRateLimitHttp,
  createReloadingLimiter,
  type Limiter,
  openRateLimitMetrics,
  openRedisCounters,
  type RateLimitMetrics,
  type ReloadingLimiter,
  withFailurePolicy,
} from '#ratelimit';
import type { Settled } from './options.ts';

export interface RateLimiting {
  /** Undefined: it does not run in this process. */
  readonly limiter: Limiter | undefined;
  /** Its face over HTTP; undefined as well when no setting asks for it. */
  readonly http: RequestListener | undefined;
  /** What it decides by. */
  readonly limits: () => readonly LimitDomain[];
  /** Why the files as they are now are not what it decides by. */
  readonly errors: () => readonly ConfigurationError[];
  /** False while stopping, and while it would answer with an error because its counters are away. */
  readonly isReady: () => boolean;
  /** It takes no more work on: from now on it says that it is not ready. */
  readonly leave: () => void;
  readonly close: () => Promise<void>;
}

/** Rejects with an Error fit for a terminal when the counters cannot be opened. */
export async function openRateLimiting(settled: Settled): Promise<RateLimiting> {
  const { settings, configuration, logger, has } = settled;
  if (!has('ratelimit')) return absent(configuration);
  const isHttp = settings.ratelimitHttpPort !== undefined;
  const metrics = isHttp ? await openRateLimitMetrics() : undefined;
  const counters = await openCounters(settled, metrics);
  const limiter = createReloadingLimiter({
    limits: configuration.limits,
    counters,
    countDenied: settings.ratelimitCountDenied,
    responseHeaders: settings.ratelimitResponseHeaders,
    observer: metrics?.observer,
  });
  const files = followFiles(settled, limiter, metrics);
  const watch = await openWatch(settled, files.read);
  let leaving = false;
  // Who answers without Redis is of use without it.
  const isReady = () => !leaving && (settings.ratelimitFailOpen || (counters.isReady?.() ?? true));
  const http = createRateLimitHttp({ limiter, isReady, limits: files.limits, metrics, logger });
  return Object.freeze({
    limiter,
    http: isHttp ? http : undefined,
    limits: files.limits,
    errors: files.errors,
    isReady,
    leave() {
      leaving = true;
    },
    async close() {
      leaving = true;
      await watch?.close();
      await counters.close?.();
    },
  });
}

function absent({ limits }: Configuration): RateLimiting {
  return Object.freeze({
    limiter: undefined,
    http: undefined,
    limits: () => limits,
    errors: () => [],
    isReady: () => true,
    leave: () => {},
    close: async () => {},
  });
}

/** In Redis the time is that of Redis, so that all who share it agree. */
async function openCounters(
  { settings, logger, clock }: Settled,
  metrics: RateLimitMetrics | undefined,
): Promise<Counters> {
  const { redisUrl: url, redisTimeoutMs: timeoutMs, ratelimitFailOpen: failOpen } = settings;
  if (url === undefined) return createMemoryCounters({ clock, keysMax: settings.ratelimitKeysMax });
  // Failing closed, the limiter hears of it and says so itself.
  const onError = () => failOpen && metrics?.observer.failed();
  return withFailurePolicy(await openRedisCounters({ url, timeoutMs, logger }), { failOpen, logger, onError });
}

interface Files extends Pick<RateLimiting, 'limits' | 'errors'> {
  readonly read: (loaded: LoadedConfiguration) => void;
}

/** All that is read anew is taken, or nothing of it: what is broken leaves the limiter with what was good before. */
function followFiles(
  { configuration, logger }: Settled,
  limiter: ReloadingLimiter,
  metrics: RateLimitMetrics | undefined,
): Files {
  let limits = configuration.limits;
  let errors: readonly ConfigurationError[] = [];
  return {
    limits: () => limits,
    errors: () => errors,
    read(loaded) {
      const wasBroken = errors.length > 0;
      errors = loaded.errors;
      metrics?.loaded(errors.length === 0);
      if (errors.length > 0) {
        const report = formatErrors(errors, resolve('.'));
        logger.error({ errors: errors.length }, `the configuration is broken, the last good limits stay:\n${report}`);
        return;
      }
      // Who was told that a file is broken is told as well that it is mended.
      if (!wasBroken && isDeepStrictEqual(loaded.configuration.limits, limits)) return;
      limiter.reload(loaded.configuration.limits);
      limits = loaded.configuration.limits;
      logger.info({ domains: limits.length }, 'the limits were read anew');
    },
  };
}

/** Undefined when there is nothing to watch. */
async function openWatch(
  { configDirectory, configuration, settings, logger }: Settled,
  onChange: (loaded: LoadedConfiguration) => void,
): Promise<ConfigurationWatch | undefined> {
  if (configDirectory === undefined) return undefined;
  return watchConfiguration({
    directory: configDirectory,
    gatewayDomain: settings.gatewayDomain,
    initial: { configuration, errors: [] },
    onChange,
    onError: (error) => logger.error({ err: error }, 'the configuration could not be watched or read anew'),
  });
}
