/** A Redis connection that reconnects automatically and puts a deadline on every command, and advice on its errors. */
import type { RedisClientType } from 'redis';
import { type Admission, createBreaker, startDeadline } from '../breaker.ts';
import type { Outage } from './counters.ts';

export interface RedisConnectionOptions {
  /** `redis://[user:password@]host[:port][/database]`, `rediss://…` for TLS. */
  readonly url: string;
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

type Client = Pick<RedisClientType, 'connect' | 'destroy' | 'sendCommand' | 'isReady' | 'isOpen'>;

/** Resolves when connected or, failing that, after a second or the first error. Rejects only for an invalid URL. */
export async function openRedisConnection(options: RedisConnectionOptions): Promise<RedisConnection> {
  const { timeoutMs, clock, random } = options;
  /** Explains why commands are rejected without a try. */
  let lastFailure: unknown;
  const outage = {
    ...options.outage,
    failed(error: unknown) {
      lastFailure = error;
      options.outage.failed(error);
    },
  };
  const open = await loadClient({ ...options, outage });
  const breaker = createBreaker({ clock, random });
  const first = open();
  let client = first.client;
  let closed = false;

  async function send(command: readonly string[]): Promise<unknown> {
    if (closed || !client.isReady) throw new Error('there is no connection to Redis', { cause: lastFailure });
    const admission = breaker.admit();
    if (admission === 'rejected') throw new Error(retriedShortly, { cause: lastFailure });
    const used = client;
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

  function report(error: unknown, used: Client, admission: Admission): void {
    if (error instanceof TimedOut) {
      if (breaker.timedOut(admission)) replace(used);
    } else if (error instanceof Error && error.message.startsWith('READONLY')) {
      // After a failover the host name may resolve to another server. Only a new connection can reach that.
      breaker.failed(admission);
      replace(used);
    } else if (used.isReady) breaker.responded();
    // While the connection is broken, `isReady` already keeps commands out. Only a probe has to report its end.
    else if (admission === 'probe') breaker.failed(admission);
  }

  function replace(used: Client): void {
    if (closed || used !== client) return;
    used.destroy();
    client = open().client;
  }

  await first.settled;
  return Object.freeze({
    send,
    isReady: () => !closed && client.isReady,
    async close(): Promise<void> {
      closed = true;
      client.destroy();
    },
  });
}

const retriedShortly = 'Redis is unavailable and will be retried shortly';

/** Disables the library's timer, which covers only unwritten commands. Our deadline covers the whole round trip. */
const withoutTimer = Object.freeze({ timeout: 0 });

/** The longest time that start-up waits for Redis. */
const firstConnectMsMax = 1_000;

/** A connection that lasts this long ends an outage, even if no command has been sent. */
const stableMs = 6_000;

interface Opening {
  readonly client: Client;
  /** Resolves on the first connection, the first error, or after `firstConnectMsMax`. */
  readonly settled: Promise<void>;
}

/** Loads the library on demand, because most processes do not use Redis. */
async function loadClient({ url, outage, random }: RedisConnectionOptions): Promise<() => Opening> {
  const { createClient } = await import('redis');
  checkUrl(url);
  const reconnectStrategy = (retries: number): number =>
    Math.min(1_000, 50 * 2 ** Math.min(retries, 10)) * (1 - random() / 3);
  function open(): Opening {
    const client = createClient({
      url,
      disableOfflineQueue: true,
      maintNotifications: 'disabled',
      // Together these detect a server that has vanished, even between commands or during a handshake.
      pingInterval: 2_000,
      socket: { connectTimeout: 1_000, socketTimeout: 5_000, reconnectStrategy },
    });
    let hasFailed = false;
    const settled = new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, firstConnectMsMax).unref();
      const settle = (): void => {
        clearTimeout(timer);
        resolve();
      };
      client.once('ready', settle);
      client.once('error', settle);
    });
    client.on('error', (error: Error) => {
      // We closed the connection ourselves, so this is not a failure.
      if (!client.isOpen) return;
      outage.failed(error);
      hasFailed = true;
    });
    client.on('ready', () => {
      if (hasFailed) setTimeout(() => client.isReady && outage.succeeded(), stableMs).unref();
      hasFailed = false;
    });
    // This rejects only when the client is closed before it has connected. All other errors are 'error' events.
    client.connect().catch(() => undefined);
    return { client, settled };
  }
  return open;
}

function checkUrl(url: string): void {
  const { protocol } = URL.canParse(url) ? new URL(url) : { protocol: '' };
  if (protocol === 'redis:' || protocol === 'rediss:') return;
  throw new Error('the Redis URL is invalid: write redis://host:6379, or rediss://user:password@host:6379 for TLS');
}

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
  if (error.cause !== undefined) return adviseOnRedis(error.cause);
  const text = `${'code' in error ? error.code : ''} ${error.message}`;
  return advice.find(([pattern]) => pattern.test(text))?.[1];
}

/** Redis' own errors begin with a word in capitals; those of TLS have a code. */
const advice: readonly (readonly [RegExp, string])[] = [
  [/ (MOVED|ASK|CROSSSLOT|CLUSTERDOWN) /, 'Redis Cluster is not supported: name a single Redis in REDIS_URL'],
  [/ unknown command '?EVAL/i, 'name a Redis server that runs scripts in REDIS_URL, not a Sentinel'],
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
    'set NODE_EXTRA_CA_CERTS to the certificate of the authority that signed the certificate of Redis',
  ],
];
