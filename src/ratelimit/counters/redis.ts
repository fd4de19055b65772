/** Counters in Redis, shared by processes: one script call for all decisions of one turn of the event loop. */
import { wholeSeconds } from './algorithms.ts';
import type { Counters, Hit, HitResult, TakeOptions } from './counters.ts';
import type { Outage } from './failure-policy.ts';
import { createOverLimitCache, type SharedResult } from './over-limit-cache.ts';
import { openRedisConnection, type RedisConnection } from './redis-connection.ts';
import { argumentsOf, countScript, digestOf, readResults, type ScriptCall } from './redis-script.ts';

export interface RedisCountersOptions {
  /** `redis://[user:password@]host[:port][/database]`, `rediss://…` for TLS. A single instance, of Redis 6 or newer: a cluster would spread the keys. */
  readonly url: string;
  /** For a round trip: a decision has one, and a second after Redis has lost the script. @default 50 */
  readonly timeoutMs?: number;
  /** Of Redis: connections that break, or cannot be made. */
  readonly outage: Outage;
  /** Before every key. @default 'frontdesk:' */
  readonly keyPrefix?: string;
  /** Exhausted limits that are cached in this process, about 400 bytes each; 0 asks Redis every time. @default 10_000 */
  readonly overLimitCacheMax?: number;
  /** Milliseconds since the epoch. @default the time of Redis, on which all processes agree */
  readonly clock?: () => number;
  /** From 0 up to 1, for the jitter of the back-off. @default Math.random */
  readonly random?: () => number;
}

export interface RedisCounters extends Counters {
  /** Rejects when a round trip takes longer than `timeoutMs`, and at once while Redis is known to be down; reconnects by itself. */
  take: Counters['take'];
  isReady(): boolean;
  /** May be called again. */
  close(): Promise<void>;
}

/** Resolves also when Redis is down. Rejects with an error fit for a terminal when `url` is invalid. */
export async function openRedisCounters(options: RedisCountersOptions): Promise<RedisCounters> {
  const { url, timeoutMs = 50, outage, keyPrefix = 'frontdesk:', overLimitCacheMax = 10_000 } = options;
  const { clock, random = Math.random } = options;
  // Without a given clock, a monotonic one: it need agree with no other process.
  const elapsed = clock ?? (() => performance.now());
  const connection = await openRedisConnection({ url, timeoutMs, outage, clock: elapsed, random });
  const cache = createOverLimitCache({ entriesMax: overLimitCacheMax, clock: elapsed });
  const runScript = createScript(connection);
  let batches: Batch[] = [];

  function enqueue(call: ScriptCall): Promise<readonly HitResult[]> {
    return new Promise((resolve, reject) => batchFor(call.keys.length).push({ call, resolve, reject }));
  }

  function batchFor(hits: number): Pending[] {
    let batch = batches.at(-1);
    if (batch === undefined) setImmediate(flush);
    if (batch === undefined || batch.hits + hits > hitsAtOnceMax) {
      batch = { pending: [], hits: 0 };
      batches.push(batch);
    }
    batch.hits += hits;
    return batch.pending;
  }

  function flush(): void {
    const full = batches;
    batches = [];
    for (const { pending } of full) void decide(pending);
  }

  async function decide(pending: readonly Pending[]): Promise<void> {
    try {
      const calls = pending.map(({ call }) => call);
      const timeUs = clock === undefined ? undefined : Math.floor(clock() * 1_000);
      const askedMs = elapsed();
      const results = readResults(await runScript(argumentsOf(calls, timeUs)), calls);
      for (const [index, one] of pending.entries()) settle(one, results[index], askedMs);
    } catch (error) {
      for (const { reject } of pending) reject(error);
    }
  }

  function settle({ call, resolve, reject }: Pending, results: readonly SharedResult[] | undefined, askedMs: number) {
    if (results === undefined) return reject(new Error('a key in Redis holds something else than a counter'));
    cache.store(call.keys, call.hits, results, askedMs);
    resolve(results.map(resultOf));
  }

  return Object.freeze({
    take(hits: readonly Hit[], { countDenied = false }: TakeOptions = {}) {
      const keys = hits.map((hit) => keyPrefix + keyOf(hit));
      return cache.lookUp(keys, hits, countDenied) ?? enqueue({ keys, hits, countDenied });
    },
    isReady: connection.isReady,
    close: connection.close,
  });
}

interface Batch {
  readonly pending: Pending[];
  hits: number;
}

interface Pending {
  readonly call: ScriptCall;
  readonly resolve: (results: readonly HitResult[]) => void;
  readonly reject: (error: unknown) => void;
}

/** In one script call, unless a single decision has more. Redis serves no other client meanwhile, and the answers to the first call travel while it works on the next. */
const hitsAtOnceMax = 25;

/** With the algorithm and the window, so that a changed configuration starts with new counters instead of misreading. */
function keyOf({ key, algorithm, windowSeconds }: Hit): string {
  return `${algorithm}:${windowSeconds}:${loneSurrogate.test(key) ? inBase64(key) : key}`;
}

/** UTF-8 would write every lone surrogate as the same replacement character, and two counters would be one. */
const loneSurrogate = /\p{Surrogate}/u;

function inBase64(key: string): string {
  return `!${Buffer.from(key, 'utf16le').toString('base64')}`;
}

/** Calls the script by its digest, and sends its text when Redis does not know it, after a restart or a flush. */
function createScript({ send }: RedisConnection) {
  const digest = digestOf(countScript);
  return async (rest: readonly string[]): Promise<unknown> => {
    try {
      return await send(['EVALSHA', digest, ...rest]);
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
      return await send(['EVAL', countScript, ...rest]);
    }
  };
}

function resultOf({ over, remaining, resetMs }: SharedResult): HitResult {
  return { over, remaining, resetSeconds: wholeSeconds(resetMs) };
}
