/** A connection to Redis that comes and goes by itself, and never makes a caller wait longer than its deadline. */
import type { RedisClientType } from 'redis';
import { type Admission, type Breaker, createBreaker } from './breaker.ts';
import type { Logger } from './limiter.ts';

export interface RedisConnectionOptions {
  /** `redis://[user:password@]host[:port][/database]`, `rediss://…` for TLS. */
  readonly url: string;
  /** For one command, from the call to the answer. */
  readonly timeoutMs: number;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  /** Milliseconds. */
  readonly clock: () => number;
  /** From 0 up to 1. */
  readonly random: () => number;
}

export interface RedisConnection {
  /** Rejects at once without a connection, and at the latest after `timeoutMs`; with Redis's own error if it has one. */
  send(command: readonly string[]): Promise<unknown>;
  isReady(): boolean;
  /** Ends the commands that run. May be called again. */
  close(): Promise<void>;
}

/** Redis may be slow now and then; silent for so long it is given up. */
const silenceMsMax = 1_000;

/** A start does not wait longer for Redis than this; it goes on without. */
const firstConnectMsMax = 1_000;

type Client = Pick<RedisClientType, 'connect' | 'destroy' | 'sendCommand' | 'isReady' | 'isOpen'>;

/** Resolves when there is a connection, or when there is none for now. Rejects only for a URL that cannot be one. */
export async function openRedisConnection(options: RedisConnectionOptions): Promise<RedisConnection> {
  const { timeoutMs, clock, random } = options;
  const open = await loadClient(options);
  const breaker = createBreaker({ clock, random });
  const first = open();
  let client = first.client;
  let closed = false;
  let silentSinceMs: number | undefined;

  async function send(command: readonly string[]): Promise<unknown> {
    if (closed || !client.isReady) throw new Error('there is no connection to Redis');
    const admission = breaker.admit();
    if (admission === 'refused') throw new Error('Redis is silent, and asked again in a while');
    const startedMs = clock();
    const asked = client;
    try {
      const answer = await withDeadline(asked.sendCommand([...command], withoutTimer), timeoutMs);
      learnAnswer(breaker);
      return answer;
    } catch (error) {
      learnFailure(error, asked, admission, startedMs);
      throw error;
    }
  }

  function learnFailure(error: unknown, asked: Client, admission: Admission, startedMs: number): void {
    if (error instanceof Late) learnSilence(asked, admission, startedMs);
    // After a failover the name may lead to another server by now, which this connection would never meet.
    else if (error instanceof Error && error.message.startsWith('READONLY')) abandon(asked, admission);
    else if (asked.isReady) learnAnswer(breaker);
    // A connection that broke makes itself known by not being ready; only a probe has more to tell.
    else if (admission === 'probe') breaker.failed(admission);
  }

  /** An error, too, is an answer. */
  function learnAnswer({ succeeded }: Breaker): void {
    silentSinceMs = undefined;
    succeeded();
  }

  /** Being late is forgiven, until Redis has been silent for too long. */
  function learnSilence(asked: Client, admission: Admission, startedMs: number): void {
    silentSinceMs ??= startedMs;
    if (admission === 'open' && clock() - silentSinceMs < silenceMsMax) return;
    abandon(asked, admission);
  }

  /** It is asked again in a while, on a new connection. */
  function abandon(asked: Client, admission: Admission): void {
    silentSinceMs = undefined;
    breaker.failed(admission);
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

/** The library has a timer for commands that it has not written yet; ours covers the whole of it. */
const withoutTimer = Object.freeze({ timeout: 0 });

interface Opening {
  readonly client: Client;
  /** Connected, failed for the first time, or waited for long enough. */
  readonly settled: Promise<void>;
}

/** Loaded here, so that a process without Redis does not pay for the library. */
async function loadClient({ url, logger, random }: RedisConnectionOptions): Promise<() => Opening> {
  const { createClient } = await import('redis');
  const address = addressOf(url);
  const reconnectStrategy = (retries: number): number =>
    Math.min(1_000, 50 * 2 ** Math.min(retries, 10)) * (1 - random() / 3);
  let told = false;

  function open(): Opening {
    const client = createClient({
      url,
      disableOfflineQueue: true,
      maintNotifications: 'disabled',
      // Between them they find a server that is gone without a word while nobody asks, and during a handshake.
      pingInterval: 2_000,
      socket: { connectTimeout: 1_000, socketTimeout: 5_000, reconnectStrategy },
    });
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
      // What fails because we closed it is no news; an outage is one line, not one for each attempt to end it.
      if (!client.isOpen) return;
      if (!told) logger.warn({ redis: address, err: error }, 'there is no connection to Redis');
      told = true;
    });
    client.on('ready', () => {
      if (told) logger.info({ redis: address }, 'the connection to Redis is back');
      told = false;
    });
    // It rejects when the connection is closed before it was made; all else is an 'error' event.
    client.connect().catch(() => undefined);
    return { client, settled };
  }
  return open;
}

/** For the log: the URL may hold a password. */
function addressOf(url: string): string {
  const { protocol, host } = URL.canParse(url) ? new URL(url) : { protocol: '', host: '' };
  if (protocol === 'redis:' || protocol === 'rediss:') return host;
  throw new Error('The URL of Redis is none: it has the form redis://host:6379, or rediss://host:6379 for TLS.');
}

class Late extends Error {}

function withDeadline<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Late(`Redis said nothing for ${timeoutMs} ms`)), timeoutMs);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
