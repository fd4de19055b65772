/** The rate-limit service of this process: counters, limits and its HTTP interface; and the limiter that a record means. */
import type { RequestListener } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import { type LimitDomain, parseServiceReference, type RateLimitService } from '#config';
import { type HostAndPort, hostAndPort, type Resolve, resolveLimiter } from '#gateway';
import { createOncePerMinute, createOutageLog } from '#http';
import { createRateLimitMetrics } from '#metrics';
import {
  type Counters,
  connectRateLimit,
  createLimiter,
  createLimitStats,
  createMemoryCounters,
  createRateLimitHttp,
  type Limiter,
  type LimitStats,
  openRedisCounters,
  portRefusals,
  type ReportRefusal,
  withFailurePolicy,
} from '#ratelimit';
import type { Setup } from './options.ts';
import type { LiveConfiguration } from './reload.ts';

export interface RateLimiting {
  /** Undefined: it does not run in this process. */
  readonly limiter: Limiter | undefined;
  /** Its HTTP interface; undefined as well when no setting asks for it. */
  readonly http: RequestListener | undefined;
  /** The limits in force. */
  readonly limits: () => readonly LimitDomain[];
  /** How often each was hit in this process, and how often it was exhausted. */
  readonly stats: LimitStats;
  /** What its port refuses: counted in `stats`, and a line in the log. */
  readonly onRefused: ReportRefusal;
  /** False while the process closes, and while the limiter would answer with an error because its counters are away. */
  readonly isReady: () => boolean;
  readonly close: () => Promise<void>;
}

/** `closing` is aborted as soon as the process closes. Rejects with an Error fit for a terminal when the counters cannot be opened. */
export async function openRateLimiting(
  setup: Setup,
  configuration: LiveConfiguration,
  closing: AbortSignal,
): Promise<RateLimiting> {
  const { settings, logger, has } = setup;
  const limits = () => configuration.current().configuration.limits;
  if (!has('ratelimit')) return elsewhere(limits);
  const hasHttp = settings.ratelimitHttpPort !== undefined;
  const stats = createLimitStats();
  const counters = await openCounters(setup, stats.failed);
  const limiter = createLimiter({
    limits: limits(),
    counters,
    countDenied: settings.ratelimitCountDenied,
    responseHeaders: settings.ratelimitResponseHeaders,
    stats,
    logger,
  });
  configuration.onChange((next) => () => {
    if (!isDeepStrictEqual(next.limits, limits())) limiter.reload(next.limits);
  });
  // Failing open, the limiter answers without Redis.
  const isReady = () => !closing.aborted && (settings.ratelimitFailOpen || (counters.isReady?.() ?? true));
  const metrics = createRateLimitMetrics({ stats, configuration });
  const http = hasHttp ? createRateLimitHttp({ limiter, isReady, limits, metrics: metrics.read, logger }) : undefined;
  const close = async () => counters.close?.();
  return { limiter, http, limits, stats, onRefused: createPortReport(stats, logger), isReady, close };
}

function elsewhere(limits: RateLimiting['limits']): RateLimiting {
  return {
    ...{ limiter: undefined, http: undefined, limits, stats: createLimitStats() },
    onRefused: () => {},
    isReady: () => true,
    close: async () => {},
  };
}

function createPortReport(stats: LimitStats, logger: Setup['logger']): ReportRefusal {
  const mayLog = createOncePerMinute();
  return (reason) => {
    stats.refused(reason);
    if (!mayLog()) return;
    logger.error(
      { refused: { ...stats.refusals() } },
      `the rate-limit port closes or refuses: ${portRefusals[reason]}`,
    );
  };
}

/** Counters in Redis use the clock of Redis, so that all processes that share it agree. */
async function openCounters({ settings, logger, clock }: Setup, onError: () => void): Promise<Counters> {
  const { redisUrl: url, redisTimeoutMs: timeoutMs, ratelimitFailOpen: failOpen } = settings;
  if (url === undefined) return createMemoryCounters({ clock, keysMax: settings.ratelimitKeysMax });
  const { failed, answered } = createOutageLog({ logger, ended: 'hits are counted in Redis again' });
  const message = `hits cannot be counted in Redis: requests ${failOpen ? 'pass uncounted' : 'are not decided'}`;
  // Its URL may hold a password.
  const outage = { failed: (err: unknown) => failed({ redis: new URL(url).host, err }, message), answered };
  return withFailurePolicy(await openRedisCounters({ url, timeoutMs, outage }), { failOpen, outage, onError });
}

export interface ConnectedLimiter {
  readonly limiter: Limiter | undefined;
  readonly close: () => Promise<void>;
}

/**
 * The limiter of this process, or one across gRPC. A process that does not listen, being embedded, asks its own in place
 * of its listener.
 */
export function connectLimiter(
  record: RateLimitService,
  resolve: Resolve,
  { limiter, listenerAddresses }: { limiter: Limiter | undefined; listenerAddresses: ReadonlyMap<string, string> },
): ConnectedLimiter {
  const reference = record.service;
  const target = resolveLimiter(resolve, reference);
  if (target.kind === 'local') return { limiter, close: async () => {} };
  const client = connectRateLimit({
    target: createTargets(target.origins),
    timeoutMs: record.timeoutMs,
  });
  const name = parseServiceReference(reference)?.host ?? '';
  const own = name === 'ratelimit' ? limiter : undefined;
  const isNotListening = () => !listenerAddresses.has(name);
  const limiterOrOwn: Limiter = {
    shouldRateLimit: (request) => (own !== undefined && isNotListening() ? own : client).shouldRateLimit(request),
    ...(own?.explain && { explain: own.explain }),
  };
  return { limiter: limiterOrOwn, close: client.close };
}

/** Parses an address again only when the list of origins is another one: it is read at each call. */
function createTargets(origins: () => readonly string[]): () => readonly HostAndPort[] {
  let parsed: readonly string[] = [];
  let targets: readonly HostAndPort[] = [];
  return () => {
    const now = origins();
    if (now !== parsed) targets = now.map(hostAndPort);
    parsed = now;
    return targets;
  };
}
