/** Runs tests of Redis counters on a Redis that they start, where a redis-server is installed. */
import { randomUUID } from 'node:crypto';
import {
  openRedisCounters,
  type RedisCounters,
  type RedisCountersOptions,
} from '../../src/ratelimit/counters/redis.ts';
import { isInstalled } from './programs/installed.ts';
import { createRedisServer, type RedisServer } from './programs/redis-server.ts';

export interface RedisOfTests {
  readonly url: () => string;
  /** Closed after the test. Unless `options` say otherwise, with keys that no other test uses. */
  readonly open: (options?: Partial<RedisCountersOptions>) => Promise<RedisCounters>;
}

/** For outages that a test does not look at. */
export const unwatched = Object.freeze({ failed() {}, answered() {} });

/** A `describe`, skipped visibly where there is none. */
export function describeWithRedis(title: string, body: (redis: RedisOfTests) => void): void {
  describe(title, () => {
    if (isInstalled('redis-server')) body(redisForAll());
    else it('are tested where there is a redis-server to start');
  });
}

function redisForAll(): RedisOfTests {
  let server: RedisServer;
  let opened: RedisCounters[] = [];
  const url = () => server.url;

  before(async () => {
    server = await createRedisServer();
    await server.start();
  });

  after(() => server.remove());

  afterEach(async () => {
    for (const counters of opened) await counters.close();
    opened = [];
  });

  return {
    url,
    async open(options = {}) {
      // A long deadline: the machine may be busy, and no test is about its speed.
      const patient = { url: url(), timeoutMs: 5_000, keyPrefix: `${randomUUID()}:`, outage: unwatched };
      const counters = await openRedisCounters({ ...patient, ...options });
      opened.push(counters);
      return counters;
    },
  };
}
