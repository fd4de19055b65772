/** Counters in Redis, shared between processes. Decisions in the same turn of the event loop share script calls. */
import { wholeSeconds } from './algorithms.ts';
import type { Counters, Hit, HitResult, Outage, TakeOptions } from './counters.ts';
import { createOverLimitCache, type SharedResult } from './over-limit-cache.ts';
import type { RedisTls } from './redis-client.ts';
import { openRedisConnection, type RedisConnection } from './redis-connection.ts';
import { countScript, digestOf, formatArguments, parseReply, type ScriptCall } from './redis-script.ts';

export interface RedisCountersOptions {
  /**
   * `redis://[user:password@]host[:port][/database]` of a Redis 6 or newer, or
   * `redis+sentinel://[user:password@]host[:port][,host[:port]…]/name[/database]` of the Sentinels that know the primary
   * `name`, with `?sentinel_username=…&sentinel_password=…` if they need them. `rediss` instead of `redis` uses TLS. A
   * cluster does not work, because it would spread the keys of a script call over several servers.
   */
  readonly url: string;
  /** Called at the start and for each connection with TLS, so that renewed files are used. @default Node's authorities */
  readonly tls?: () => RedisTls;
  /**
   * Deadline of a round trip. A decision needs one, or two if Redis has lost the script, for example in a restart.
   * @default 50
   */
  readonly timeoutMs?: number;
  /** Receives failures of the connection. @default they only reject the calls */
  readonly outage?: Outage;
  /** Precedes every key. @default 'frontdesk:' */
  readonly keyPrefix?: string;
  /** Maximum number of exhausted limits to cache in this process, about 400 bytes each. @default 10_000 */
  readonly overLimitCacheMax?: number;
  /** Milliseconds since the epoch. @default the clock of Redis, so that all processes agree */
  readonly clock?: () => number;
  /** Returns a number from 0 up to, but not including, 1, for the jitter of the back-off. @default Math.random */
  readonly random?: () => number;
}

/**
 * `take` rejects when a round trip takes longer than `timeoutMs`, and immediately while Redis is known to be down.
 * `close` can be called more than once.
 */
export type RedisCounters = Required<Counters>;

const unreported: Outage = Object.freeze({ failed() {}, succeeded() {} });

/** Resolves even if Redis is down. Rejects if `url` is invalid, with an error that can be shown to the operator. */
export async function openRedisCounters(options: RedisCountersOptions): Promise<RedisCounters> {
  const { url, timeoutMs = 50, outage = unreported, keyPrefix = 'frontdesk:', overLimitCacheMax = 10_000 } = options;
  const { clock, random = Math.random, tls = () => ({}) } = options;
  // Back-off and cache use a monotonic clock by default, because their time need not agree with other processes.
  const elapsed = clock ?? (() => performance.now());
  const connection = await openRedisConnection({ url, tls, timeoutMs, outage, clock: elapsed, random });
  const cache = createOverLimitCache({ entriesMax: overLimitCacheMax, clock: elapsed });
  const runScript = createScript(connection);
  let batches: Batch[] = [];

  function enqueue(call: ScriptCall): Promise<readonly HitResult[]> {
    return new Promise((resolve, reject) => batchFor(call.keys.length).push({ call, resolve, reject }));
  }

  function batchFor(hits: number): Pending[] {
    let batch = batches.at(-1);
    if (batch === undefined) setImmediate(flush);
    if (batch === undefined || batch.hits + hits > hitsPerCallMax) {
      batch = { pending: [], hits: 0 };
      batches.push(batch);
    }
    batch.hits += hits;
    return batch.pending;
  }

  function flush(): void {
    const flushed = batches;
    batches = [];
    for (const { pending } of flushed) void decide(pending);
  }

  async function decide(pending: readonly Pending[]): Promise<void> {
    try {
      const calls = pending.map(({ call }) => call);
      const timeUs = clock === undefined ? undefined : Math.floor(clock() * 1_000);
      const sentMs = elapsed();
      const results = parseReply(await runScript(formatArguments(calls, timeUs)), calls);
      for (const [index, one] of pending.entries()) settle(one, results[index], sentMs);
    } catch (error) {
      for (const { reject } of pending) reject(error);
    }
  }

  function settle({ call, resolve, reject }: Pending, results: readonly SharedResult[] | undefined, sentMs: number) {
    if (results === undefined) return reject(new Error('a key in Redis holds something other than a counter'));
    cache.store(call.keys, call.hits, results, sentMs);
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

/**
 * The maximum number of hits in a script call, unless a single decision has more. A script blocks all other clients of
 * Redis, and with short calls the first replies travel while Redis works on the next call.
 */
const hitsPerCallMax = 25;

/** Includes the algorithm and the window, so that a changed configuration never misreads counters of the old one. */
function keyOf({ key, algorithm, windowSeconds }: Hit): string {
  return `${algorithm}:${windowSeconds}:${loneSurrogate.test(key) ? inBase64(key) : key}`;
}

/** UTF-8 would encode every lone surrogate as the same replacement character, and merge their counters. */
const loneSurrogate = /\p{Surrogate}/u;

function inBase64(key: string): string {
  return `!${Buffer.from(key, 'utf16le').toString('base64')}`;
}

/** Calls the script by its digest. Sends its source if Redis does not know it, for example after a restart. */
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
