/** One Redis client that reconnects, and never keeps a caller longer than its deadline. */
import type { RedisClientType } from 'redis';
import { type Admission, createBreaker, startDeadline } from '../breaker.ts';
import type { Outage } from './failure-policy.ts';

export interface RedisConnectionOptions {
  /** `redis://[user:password@]host[:port][/database]`, `rediss://…` for TLS. */
  readonly url: string;
  /** For one command, from the call to the answer. */
  readonly timeoutMs: number;
  readonly outage: Outage;
  /** Milliseconds. */
  readonly clock: () => number;
  /** From 0 up to 1. */
  readonly random: () => number;
}

export interface RedisConnection {
  /** Rejects at once without a connection, and at the latest after `timeoutMs`; with the error of Redis if it has one. */
  send(command: readonly string[]): Promise<unknown>;
  isReady(): boolean;
  /** Ends the commands that run. May be called again. */
  close(): Promise<void>;
}

type Client = Pick<RedisClientType, 'connect' | 'destroy' | 'sendCommand' | 'isReady' | 'isOpen'>;

/** Resolves when there is a connection, or none within a second. Rejects only for an invalid URL. */
export async function openRedisConnection(options: RedisConnectionOptions): Promise<RedisConnection> {
  const { timeoutMs, clock, random } = options;
  const open = await loadClient(options);
  const breaker = createBreaker({ clock, random });
  const first = open();
  let client = first.client;
  let closed = false;

  async function send(command: readonly string[]): Promise<unknown> {
    if (closed || !client.isReady) throw new Error('there is no connection to Redis');
    const admission = breaker.admit();
    if (admission === 'refused') throw new Error('Redis did not answer, and is asked again in a while');
    const asked = client;
    try {
      const answer = await withDeadline(asked.sendCommand([...command], withoutTimer), timeoutMs);
      breaker.answered();
      return answer;
    } catch (error) {
      report(error, asked, admission);
      throw error;
    }
  }

  function report(error: unknown, asked: Client, admission: Admission): void {
    if (error instanceof TimedOut) {
      if (breaker.timedOut(admission)) replace(asked);
    } else if (error instanceof Error && error.message.startsWith('READONLY')) {
      // After a failover the name may lead to another server, which this connection would never reach.
      breaker.failed(admission);
      replace(asked);
    } else if (asked.isReady) breaker.answered();
    // A broken connection is not ready, which refuses commands already; a probe must report that it has ended.
    else if (admission === 'probe') breaker.failed(admission);
  }

  function replace(asked: Client): void {
    if (closed || asked !== client) return;
    asked.destroy();
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

/** The library's own timer covers only commands that are not written yet; ours covers the whole round trip. */
const withoutTimer = Object.freeze({ timeout: 0 });

/** A start does not wait longer for Redis. */
const firstConnectMsMax = 1_000;

/** A connection that lasts as long ends an outage, also when nothing is decided. */
const stableMs = 6_000;

interface Opening {
  readonly client: Client;
  /** Connected, failed for the first time, or waited for long enough. */
  readonly settled: Promise<void>;
}

/** Loads the library only in a process that uses Redis. */
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
      // Together these notice a server that has vanished, also between commands and during a handshake.
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
      // Our own close is no failure.
      if (!client.isOpen) return;
      outage.failed(error);
      hasFailed = true;
    });
    client.on('ready', () => {
      if (hasFailed) setTimeout(() => client.isReady && outage.answered(), stableMs).unref();
      hasFailed = false;
    });
    // It rejects when the connection is closed before it was made; all else is an 'error' event.
    client.connect().catch(() => undefined);
    return { client, settled };
  }
  return open;
}

function checkUrl(url: string): void {
  const { protocol } = URL.canParse(url) ? new URL(url) : { protocol: '' };
  if (protocol === 'redis:' || protocol === 'rediss:') return;
  throw new Error('The URL of Redis is invalid: it has the form redis://host:6379, or rediss://host:6379 for TLS.');
}

class TimedOut extends Error {}

function withDeadline<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = startDeadline(timeoutMs, () => reject(new TimedOut(`Redis did not answer within ${timeoutMs} ms`)));
    work.then(resolve, reject).finally(stop);
  });
}
