/** The counters of this process in Redis: what the log says about an outage, and whether Redis lets them count. */
import { createOutageLog } from '#http';
import { adviseOnRedis, type Counters, openRedisCounters, withFailurePolicy } from '#ratelimit';
import type { Setup } from './options.ts';

/**
 * The counters use the clock of Redis, so that all processes that share them agree on the time. `onError` is called for
 * every decision that could not be counted.
 */
export async function openSharedCounters(
  url: string,
  { settings, logger }: Pick<Setup, 'settings' | 'logger'>,
  onError: () => void,
): Promise<Counters> {
  const { redisTimeoutMs: timeoutMs, ratelimitFailOpen: failOpen } = settings;
  const { failed, answered } = createOutageLog({ logger, ended: 'hits are counted in Redis again' });
  const message = `hits cannot be counted in Redis: requests ${failOpen ? 'pass uncounted' : 'are not decided'}`;
  // Logs only the host, because the URL may contain a password.
  const outage = {
    failed(err: unknown) {
      const advice = adviseOnRedis(err);
      failed({ redis: new URL(url).host, err }, advice === undefined ? message : `${message}; ${advice}`);
    },
    succeeded: answered,
  };
  const redis = await openRedisCounters({ url, timeoutMs, outage });
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
