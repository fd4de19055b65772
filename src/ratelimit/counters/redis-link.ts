/** Keeps a connection to the Redis that counts: finds it, connects, and starts anew when the connection is lost. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisAddress, RedisUrl } from '#ratelimit/redis-url';
import type { Outage } from './counters.ts';
import { type Connect, loadConnect, type RedisClient, type RedisTls } from './redis-client.ts';
import { createFindPrimary, type FindPrimary } from './sentinels.ts';

export interface RedisLinkOptions {
  readonly url: RedisUrl;
  /** As for `loadConnect`. */
  readonly tls: () => RedisTls;
  readonly outage: Outage;
  /** Returns a number from 0 up to, but not including, 1. */
  readonly random: () => number;
}

export interface RedisLink {
  /** Undefined while it is being searched, and between two attempts. */
  client(): RedisClient | undefined;
  /** Closes the connection of a client that cannot be used any more, and looks for the primary again. */
  replace(used: RedisClient): void;
  /** Resolves on the first connection, the first error, or after a second. */
  readonly settled: Promise<void>;
  close(): void;
}

/** The longest time that start-up waits for Redis. */
const firstConnectMsMax = 1_000;

const connectMsMax = 1_000;
/** Includes the connection and the greeting. A server that hangs accepts connections and does not greet. */
const greetingMsMax = 2_000;

/** How often the Sentinels are asked while there is a connection. */
const checkEveryMs = 1_000;

/** A connection that lasts this long ends an outage, even if no command has been sent. */
const stableMs = 6_000;

/** At any time there is either a search for the primary, a client, or a timer for the next attempt. */
export async function openRedisLink(options: RedisLinkOptions): Promise<RedisLink> {
  const { url, outage, random } = options;
  const connectTo = await loadConnect(options);
  const findPrimary = createSearch(url, connectTo);
  const closing = new AbortController();
  let settle = (): void => {};
  const settled = new Promise<void>((resolve) => {
    settle = resolve;
  });
  let client: RedisClient | undefined;
  let retryTimer: NodeJS.Timeout | undefined;
  let failures = 0;
  let hasFailed = false;

  async function connect(): Promise<void> {
    try {
      const address = await findPrimary(closing.signal);
      if (!closing.signal.aborted) client = open(address);
    } catch (error) {
      retryAfter(error);
    }
  }

  function open(address: RedisAddress): RedisClient {
    const { credentials, database } = url;
    const opened = connectTo(address, { credentials, database, connectMsMax });
    const late = new Error(`Redis at ${address.host}:${address.port} did not greet within ${greetingMsMax} ms`);
    const greeting = setTimeout(() => lose(opened, late), greetingMsMax).unref();
    opened.on('ready', () => {
      clearTimeout(greeting);
      // The library may complete a connection that was given up while it was being made.
      if (opened !== client) return opened.destroy();
      welcome();
      if (url.primaryName !== undefined) void watch(opened, address);
    });
    opened.on('error', (error: Error) => {
      // Redis may also refuse a PING, over a connection that remains.
      if (opened.isReady) outage.failed(error);
      else lose(opened, error);
    });
    // It rejects with what is an 'error' event as well, or because the client has been replaced meanwhile.
    opened.connect().catch(() => undefined);
    return opened;
  }

  function welcome(): void {
    failures = 0;
    settle();
    if (hasFailed) setTimeout(() => client?.isReady && outage.succeeded(), stableMs).unref();
    hasFailed = false;
  }

  /**
   * A primary that an operator replaces, or that the Sentinels cannot reach, goes on counting until it is demoted, which
   * takes ten seconds or more. Ends with the connection.
   */
  async function watch(opened: RedisClient, { host, port }: RedisAddress): Promise<void> {
    while (opened === client) {
      await sleep(checkEveryMs, undefined, { ref: false });
      if (opened !== client) return;
      const found = await findPrimary(closing.signal).catch(() => undefined);
      if (opened !== client || found === undefined || (found.host === host && found.port === port)) continue;
      drop(opened);
      client = open(found);
    }
  }

  function lose(used: RedisClient, error: unknown): void {
    if (used !== client) return;
    drop(used);
    retryAfter(error);
  }

  function retryAfter(error: unknown): void {
    if (closing.signal.aborted) return;
    hasFailed = true;
    outage.failed(error);
    settle();
    const delayMs = Math.min(1_000, 50 * 2 ** Math.min(failures, 10)) * (1 - random() / 3);
    failures += 1;
    retryTimer = setTimeout(connect, delayMs);
  }

  function drop(used: RedisClient): void {
    client = undefined;
    // Later than the library, which rejects pending commands with the error that it has just reported.
    queueMicrotask(() => used.destroy());
  }

  setTimeout(settle, firstConnectMsMax).unref();
  void connect();
  return {
    settled,
    client: () => client,
    replace(used) {
      if (used !== client) return;
      drop(used);
      void connect();
    },
    close() {
      closing.abort();
      clearTimeout(retryTimer);
      if (client !== undefined) drop(client);
    },
  };
}

function createSearch(url: RedisUrl, connect: Connect): FindPrimary {
  if (url.primaryName !== undefined) return createFindPrimary(url, connect);
  const [only] = url.addresses;
  if (only === undefined) throw new TypeError('a URL of Redis has an address');
  return async () => only;
}
