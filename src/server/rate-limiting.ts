/** Opens the rate-limit service of this process, and connects RateLimitService records to it or to a remote one. */
import type { RequestListener } from 'node:http';
import { connect } from 'node:net';
import { type LimitDomain, parseServiceReference, type RateLimitService, readRedisFiles } from '#config';
import { createOncePerMinute, createOutageLog } from '#foundation';
import { type HostAndPort, hostAndPort, type RemoteTarget, type Resolve, resolveLimiter } from '#gateway';
import { createMachineGuard } from '#http';
import { createMetricsOfThreads, createRateLimitMetrics } from '#metrics';
import {
  adviseOnRedis,
  type ClientLimits,
  type Counters,
  connectRateLimit,
  createClientLimits,
  createLimiter,
  createLimitStats,
  createMemoryCounters,
  type Limiter,
  type LimitStats,
  type LocalLimiter,
  openRedisCounters,
  portRefusals,
  type RateLimitClientOptions,
  type ReportRefusal,
  withFailurePolicy,
} from '#ratelimit';
import { createRateLimitHttp } from '#ratelimit/http';
import { hostsOfRedisUrl } from '#ratelimit/redis-url';
import type { Setup } from './options.ts';
import type { LiveConfiguration } from './reload.ts';
import type { ThreadParts } from './threads/parts.ts';

export interface RateLimiting {
  /** Undefined when the rate-limit service does not run in this process. */
  readonly limiter: LocalLimiter | undefined;
  /** The HTTP interface of the limiter. Also undefined when it has no port. */
  readonly http: RequestListener | undefined;
  /** Undefined when the rate-limit service does not run in this process. */
  readonly clientLimits: ClientLimits | undefined;
  /** Counts how often each limit was hit and exceeded in this process. */
  readonly stats: LimitStats;
  /** Counts and logs what the gRPC port refuses. */
  readonly onRefused: ReportRefusal;
  /** False while the process closes, and while the limiter would fail because it cannot count. */
  readonly isReady: () => boolean;
  /** Returns when a decision last passed or failed because Redis could not count it. */
  readonly lastUncountedAtMs: () => number | undefined;
  readonly close: () => Promise<void>;
}

export interface RateLimitingParts {
  readonly configuration: LiveConfiguration;
  /** Aborted when the process starts to close. */
  readonly closing: AbortSignal;
  /** Undefined when the process serves with one thread. */
  readonly thread: Pick<ThreadParts, 'counters' | 'report' | 'all'> | undefined;
}

/** Rejects with a user-facing Error. */
export async function openRateLimiting(
  setup: Setup,
  { configuration, closing, thread }: RateLimitingParts,
): Promise<RateLimiting> {
  const { settings, logger, has } = setup;
  if (!has('ratelimit')) return withoutLimiter();
  const limits = () => configuration.current().configuration.limits;
  const hasHttp = settings.ratelimitHttpPort !== undefined;
  const stats = createLimitStats();
  let lastUncountedAtMs: number | undefined;
  const onUncounted = () => {
    stats.failed();
    lastUncountedAtMs = setup.clock();
  };
  const { redisUrl, ratelimitKeysMax: keysMax } = settings;
  const onEvicted = createEvictionReport(stats, setup);
  const counters: Counters =
    redisUrl === undefined
      ? createMemoryCounters({ clock: setup.clock, keysMax, onEvicted, shared: thread?.counters })
      : await openSharedCounters(redisUrl, setup, onUncounted);
  const limiter = createLimiter({
    limits: limits(),
    counters,
    countDenied: settings.ratelimitCountDenied,
    responseHeaders: settings.ratelimitResponseHeaders,
    stats,
    logger,
  });
  configuration.onChange((next) => () => limiter.reload(next.limits));
  // A limiter that fails open does not need Redis.
  const isReady = () => !closing.aborted && (settings.ratelimitFailOpen || (counters.isReady?.() ?? true));
  const own = createRateLimitMetrics({ stats, configuration });
  thread?.report({ limiterMetrics: async () => own.snapshot() });
  const metrics = thread === undefined ? own : createMetricsOfThreads(thread.all.limiterMetrics);
  const http = hasHttp ? createRateLimitHttp({ limiter, isReady, limits, metrics: metrics.read, logger }) : undefined;
  const close = async () => counters.close?.();
  const onRefused = createRefusalReport(stats, logger);
  const clientLimits = createClientLimits({ limits, counters });
  return { limiter, http, clientLimits, stats, onRefused, isReady, lastUncountedAtMs: () => lastUncountedAtMs, close };
}

function withoutLimiter(): RateLimiting {
  return {
    limiter: undefined,
    http: undefined,
    clientLimits: undefined,
    stats: createLimitStats(),
    onRefused: () => {},
    isReady: () => true,
    lastUncountedAtMs: () => undefined,
    close: async () => {},
  };
}

/**
 * The counters use the clock of Redis, so that all processes that share them agree on the time. `onError` is called for
 * every decision that could not be counted.
 */
async function openSharedCounters(
  url: string,
  { settings, logger }: Pick<Setup, 'settings' | 'logger'>,
  onError: () => void,
): Promise<Counters> {
  const { redisTimeoutMs: timeoutMs, ratelimitFailOpen: failOpen } = settings;
  const { failed, answered } = createOutageLog({ logger, ended: 'hits are counted in Redis again' });
  const message = `hits cannot be counted in Redis: requests ${failOpen ? 'pass uncounted' : 'are not decided'}`;
  // Logs only the hosts, because the URL may contain a password.
  const outage = {
    failed(err: unknown) {
      const advice = adviseOnRedis(err);
      failed({ redis: hostsOfRedisUrl(url), err }, advice === undefined ? message : `${message}; ${advice}`);
    },
    succeeded: answered,
  };
  const redis = await openRedisCounters({ url, tls: () => readRedisFiles(settings), timeoutMs, outage });
  const trial = createTrial(redis, outage.failed);
  if (redis.isReady()) await trial.run();
  const onDecisionError = (error: unknown) => {
    trial.decisionFailed(error);
    onError();
  };
  const counters = withFailurePolicy(redis, { failOpen, outage, onError: onDecisionError });
  return { ...counters, isReady: () => redis.isReady() && trial.hasSucceeded() };
}

/**
 * Counts once at the start, so that the log reports a missing permission or a read-only replica before the first
 * request. After a decision has failed for such a reason, `hasSucceeded` is false until another trial succeeds.
 */
function createTrial(counters: Pick<Counters, 'take'>, onFailure: (error: unknown) => void) {
  let succeeded = false;
  let running: Promise<void> | undefined;

  async function count(): Promise<void> {
    try {
      await counters.take(trialHits);
      succeeded = true;
    } catch (error) {
      onFailure(error);
    } finally {
      running = undefined;
    }
  }

  function run(): Promise<void> {
    running ??= count();
    return running;
  }

  return {
    run,
    decisionFailed(error: unknown): void {
      if (adviseOnRedis(error) !== undefined) succeeded = false;
    },
    /** Starts another trial if not, because a process that is not ready may get no more requests. */
    hasSucceeded(): boolean {
      if (!succeeded) void run();
      return succeeded;
    },
  };
}

/** In a Redis Cluster, the two keys belong to different servers. The limit is never reached, so nothing is cached. */
const trialHits = ['start', 'start 2'].map((key) => {
  const limit = { algorithm: 'fixed_window', windowSeconds: 1, limit: 1_000_000, burst: 1_000_000 } as const;
  return { ...limit, key, hits: 1, shadow: true };
});

const anHourMs = 3_600_000;

/**
 * Logs that the counters are full when a hundredth of them has been evicted, and again after an hour without evictions.
 * A few are evicted earlier, because keys spread unevenly.
 */
function createEvictionReport(stats: LimitStats, { settings, logger }: Pick<Setup, 'settings' | 'logger'>) {
  const { ratelimitKeysMax: keysMax } = settings;
  let lastMs = Number.NEGATIVE_INFINITY;
  let evictions = 0;
  return (): void => {
    stats.evicted();
    const nowMs = performance.now();
    evictions = nowMs - lastMs > anHourMs ? 1 : evictions + 1;
    lastMs = nowMs;
    if (evictions !== Math.ceil(keysMax / 100)) return;
    logger.warn(
      { keysMax },
      'the counters in memory are full, so the least used are evicted: raise RATELIMIT_KEYS_MAX, or look for a flood of clients',
    );
  };
}

function createRefusalReport(stats: LimitStats, logger: Setup['logger']): ReportRefusal {
  const mayLog = createOncePerMinute();
  return (reason) => {
    stats.refused(reason);
    if (!mayLog()) return;
    logger.error(
      { refused: { ...stats.refusals() } },
      `the rate-limit port closes connections or rejects calls: ${portRefusals[reason]}`,
    );
  };
}

export interface ConnectedLimiter {
  readonly limiter: Limiter | undefined;
  readonly close: () => Promise<void>;
}

export interface ConnectLimiterParts {
  /** Undefined when the limiter does not run in this process. */
  readonly limiter: LocalLimiter | undefined;
  /** The `host:port` at which services of this process listen, by name. */
  readonly listenerAddresses: ReadonlyMap<string, string>;
  /** Open responses and connections keep it in memory, so it must not refer to the gateway that began them. */
  readonly resolve: Resolve;
}

/**
 * Returns the limiter of this process or a gRPC client. If the record refers to this process's own gRPC port, but the
 * process does not listen because it is embedded, the client is bypassed and the limiter is called directly.
 */
export function connectLimiter(
  { service, timeoutMs }: RateLimitService,
  limits: readonly LimitDomain[],
  { listenerAddresses, resolve, ...parts }: ConnectLimiterParts,
): ConnectedLimiter {
  // A request that began before a reload has the labels of its own configuration, so it needs those limits as well.
  const limiter = parts.limiter?.withLimits(limits);
  const target = resolveLimiter(resolve, service);
  if (target.kind === 'local') return { limiter, close: async () => {} };
  const client = connectRateLimit({ target: createTargets(target.origins), timeoutMs, connect: connectorTo(target) });
  const name = parseServiceReference(service)?.host ?? '';
  const local = name === 'ratelimit' ? limiter : undefined;
  const isListening = () => listenerAddresses.has(name);
  const clientOrLocal: Limiter = {
    shouldRateLimit: (request) => (local === undefined || isListening() ? client : local).shouldRateLimit(request),
    ...(local?.explain && { explain: local.explain }),
  };
  return { limiter: clientOrLocal, close: client.close };
}

/** What strangers have chosen in a cluster does not lead to this machine. */
function connectorTo({ haveStrangersChosen }: RemoteTarget): RateLimitClientOptions['connect'] {
  if (haveStrangersChosen === undefined) return undefined;
  const guard = createMachineGuard(() => performance.now());
  return (address) => (haveStrangersChosen() ? guard.connect(address) : connect(address));
}

/** The returned function is called for every request, so it parses the origins only when the list has changed. */
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
