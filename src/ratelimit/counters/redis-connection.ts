/** Sends commands to Redis with a deadline on each, and has advice on its errors. */
import { parseRedisUrl, redisUrlForms } from '#ratelimit/redis-url';
import { type Admission, createBreaker, startDeadline } from '../breaker.ts';
import type { Outage } from './counters.ts';
import type { RedisClient, RedisTls } from './redis-client.ts';
import { openRedisLink } from './redis-link.ts';

export interface RedisConnectionOptions {
  /** As for `openRedisCounters`. */
  readonly url: string;
  readonly tls: () => RedisTls;
  /** Deadline of a command, from the call to the reply. */
  readonly timeoutMs: number;
  readonly outage: Outage;
  /** Milliseconds from any fixed point. */
  readonly clock: () => number;
  /** Returns a number from 0 up to, but not including, 1. */
  readonly random: () => number;
}

export interface RedisConnection {
  /**
   * Rejects immediately if there is no connection, after `timeoutMs` at the latest, and with the error that Redis
   * returns, if any.
   */
  send(command: readonly string[]): Promise<unknown>;
  isReady(): boolean;
  /** Aborts pending commands. Safe to call more than once. */
  close(): Promise<void>;
}

/**
 * Resolves when connected or, failing that, after a second or the first error. Rejects only for an invalid URL, and for
 * what `tls` throws.
 */
export async function openRedisConnection(options: RedisConnectionOptions): Promise<RedisConnection> {
  const { timeoutMs, clock, random } = options;
  const url = parseRedisUrl(options.url);
  if (url === undefined) throw new Error(`the Redis URL is invalid: write ${redisUrlForms}`);
  // Fails at the start rather than at each attempt to connect.
  if (url.tls) options.tls();
  const usesSentinels = url.primaryName !== undefined;
  /** Explains why commands are rejected without a try. */
  let lastFailure: unknown;
  const outage = {
    ...options.outage,
    failed(error: unknown) {
      lastFailure = error;
      options.outage.failed(error);
    },
  };
  const link = await openRedisLink({ url, tls: options.tls, outage, random });
  const breaker = createBreaker({ clock, random });

  async function send(command: readonly string[]): Promise<unknown> {
    const used = link.client();
    if (used?.isReady !== true) throw new Error('there is no connection to Redis', { cause: lastFailure });
    const admission = breaker.admit();
    if (admission === 'rejected') throw new Error(retriedShortly, { cause: lastFailure });
    try {
      const reply = await withDeadline(used.sendCommand([...command], withoutTimer), timeoutMs);
      breaker.responded();
      return reply;
    } catch (error) {
      lastFailure = error;
      report(error, used, admission);
      throw error;
    }
  }

  function report(error: unknown, used: RedisClient, admission: Admission): void {
    if (error instanceof TimedOut) {
      if (breaker.timedOut(admission)) link.replace(used);
    } else if (error instanceof Error && isOfWrongServer(error.message, usesSentinels)) {
      // After a failover another server is the primary. Only a new connection can reach that.
      breaker.failed(admission);
      link.replace(used);
    } else if (used.isReady) breaker.responded();
    // While the connection is broken, `isReady` already keeps commands out. Only a probe has to report its end.
    else if (admission === 'probe') breaker.failed(admission);
  }

  await link.settled;
  return Object.freeze({
    send,
    isReady: () => link.client()?.isReady === true,
    async close(): Promise<void> {
      link.close();
    },
  });
}

/** A primary without replicas may have been cut off from them, so that the Sentinels choose another. */
function isOfWrongServer(message: string, usesSentinels: boolean): boolean {
  return message.startsWith('READONLY') || (usesSentinels && /^(?:NOREPLICAS|MASTERDOWN)/.test(message));
}

const retriedShortly = 'Redis is unavailable and will be retried shortly';

/** Disables the library's timer, which covers only unwritten commands. Our deadline covers the whole round trip. */
const withoutTimer = Object.freeze({ timeout: 0 });

class TimedOut extends Error {}

function withDeadline<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = startDeadline(timeoutMs, () => reject(new TimedOut(`Redis did not respond within ${timeoutMs} ms`)));
    work.then(resolve, reject).finally(stop);
  });
}

/** Returns what an operator can change, or undefined if the message of the error, or of its cause, suffices. */
export function adviseOnRedis(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const text = `${'code' in error ? error.code : ''} ${error.message}`;
  return advice.find(([pattern]) => pattern.test(text))?.[1] ?? adviseOnRedis(error.cause);
}

/** Redis' own errors begin with a word in capitals; those of TLS have a code. */
const advice: readonly (readonly [RegExp, string])[] = [
  [/ monitors no primary named /, 'write the name after "sentinel monitor" in the path of REDIS_URL'],
  [/ the Sentinel at .*(WRONGPASS|NOAUTH) /, 'add ?sentinel_password=PASSWORD to REDIS_URL, or correct it'],
  [/ the Sentinel at .* unknown command '?SENTINEL/i, 'name Sentinels in REDIS_URL, or write redis:// for a Redis'],
  [/ (MOVED|ASK|CROSSSLOT|CLUSTERDOWN) /, 'Redis Cluster is not supported: name a single Redis in REDIS_URL'],
  [/ unknown command '?EVAL/i, 'REDIS_URL leads to a Sentinel: write redis+sentinel://host:26379/NAME'],
  [/ (READONLY|MASTERDOWN) /, 'REDIS_URL leads to a read-only replica: name the primary'],
  [/ (WRONGPASS|NOAUTH) /, 'check the user and the password in REDIS_URL'],
  [
    / NOPERM |user executing the script can't/,
    'the user in REDIS_URL needs ~frontdesk:* +eval +evalsha +time +get +set +ping, and +select for a database other than 0',
  ],
  [/ (MISCONF|NOREPLICAS) /, 'Redis rejects writes until its disk or its replicas recover: see its log'],
  [/ OOM /, 'raise the maxmemory of Redis, or set its maxmemory-policy to volatile-lru'],
  [
    /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT(_LOCALLY)?|UNABLE_TO_VERIFY_LEAF_SIGNATURE) /,
    'set REDIS_TLS_CA to the certificate of the authority that signed the certificate of Redis',
  ],
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID /,
    'name Redis in REDIS_URL as its certificate does, or add the name to the certificate',
  ],
  [
    /^ERR_SSL_(TLSV13_ALERT_CERTIFICATE_REQUIRED|(SSL|TLS)V\d_ALERT_(HANDSHAKE_FAILURE|UNKNOWN_CA|BAD_CERTIFICATE)) /,
    'set REDIS_TLS_CERT and REDIS_TLS_KEY to a client certificate that Redis accepts',
  ],
];
