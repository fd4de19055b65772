/** Counters in Redis, for processes that count together: a round trip for the decisions of a turn, none for what is known to be over. */
import { createBatches } from './batches.ts';
import type { Counters, Hit, HitResult, TakeOptions } from './counters/counters.ts';
import type { Logger } from './limiter.ts';
import { createOverMemory, type SharedCount } from './over-memory.ts';
import { openRedisConnection, type RedisConnection } from './redis-connection.ts';
import { argumentsOf, countScript, countsOf, digestOf, type Question } from './redis-script.ts';

export interface RedisCountersOptions {
  /** `redis://[user:password@]host[:port][/database]`, `rediss://…` for TLS. A single instance, of Redis 6 or newer: a cluster would spread the keys. */
  readonly url: string;
  /** For a round trip: a decision has one, and a second after Redis has lost the script. @default 50 */
  readonly timeoutMs?: number;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  /** Before every key. @default 'frontdesk:' */
  readonly keyPrefix?: string;
  /** Counters that are over and remembered here, about 400 bytes each; 0 asks Redis every time. @default 10_000 */
  readonly overMemoryMax?: number;
  /** Milliseconds since the epoch. @default the time of Redis, on which all processes agree */
  readonly clock?: () => number;
  /** From 0 up to 1, for the jitter of the back-off. @default Math.random */
  readonly random?: () => number;
}

export interface RedisCounters extends Counters {
  /** Rejects when a round trip takes longer than `timeoutMs`, and at once while Redis is known to be down; it connects again by itself. */
  take: Counters['take'];
  isReady(): boolean;
  /** May be called again. */
  close(): Promise<void>;
}

/** Resolves also when Redis is down. Rejects with an error fit for a terminal when `url` cannot be one. */
export async function openRedisCounters(options: RedisCountersOptions): Promise<RedisCounters> {
  const { url, timeoutMs = 50, logger, keyPrefix = 'frontdesk:', overMemoryMax = 10_000 } = options;
  const { clock, random = Math.random } = options;
  // Remembered answers are dated by a clock that nobody sets, if it need not agree with anybody's.
  const elapsed = clock ?? (() => performance.now());
  const connection = await openRedisConnection({ url, timeoutMs, logger, clock: elapsed, random });
  const memory = createOverMemory({ entriesMax: overMemoryMax, clock: elapsed });
  const run = createScript(connection);

  function learned({ keys, hits }: Question, counts: readonly SharedCount[] | undefined, askedMs: number) {
    if (counts === undefined) return new Error('a key in Redis holds something else than a counter');
    memory.learn(keys, hits, counts, askedMs);
    return counts.map(countOf);
  }

  const ask = createBatches<Question, readonly HitResult[]>({
    async ask(questions) {
      const timeUs = clock === undefined ? undefined : Math.floor(clock() * 1_000);
      const askedMs = elapsed();
      const answers = countsOf(await run(argumentsOf(questions, timeUs)), questions);
      return questions.map((question, index) => learned(question, answers[index], askedMs));
    },
    weightOf: ({ keys }) => keys.length,
    weightMax: hitsAtOnceMax,
  });

  return Object.freeze({
    take(hits: readonly Hit[], { countDenied = false }: TakeOptions = {}) {
      const keys = hits.map((hit) => keyPrefix + keyOf(hit));
      return memory.recall(keys, hits, countDenied) ?? ask({ keys, hits, countDenied });
    },
    isReady: connection.isReady,
    close: connection.close,
  });
}

/** In one command. Redis does nothing else meanwhile, and the answers to the first are on their way while it works on the next. */
const hitsAtOnceMax = 25;

/** With the algorithm and the window, so that a changed configuration starts anew instead of misreading. */
function keyOf({ key, algorithm, windowSeconds }: Hit): string {
  return `${algorithm}:${windowSeconds}:${loneSurrogate.test(key) ? inBase64(key) : key}`;
}

/** UTF-8 would write every lone surrogate as the same replacement character, and two counters would be one. */
const loneSurrogate = /\p{Surrogate}/u;

function inBase64(key: string): string {
  return `!${Buffer.from(key, 'utf16le').toString('base64')}`;
}

/** By its digest; Redis is given the text when it does not know the digest, after a restart or a flush. */
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

function countOf({ over, remaining, resetMs }: SharedCount): HitResult {
  return { over, remaining, resetSeconds: Math.max(1, Math.ceil(resetMs / 1_000)) };
}
