/** Runs tests of Redis counters on their own Redis, if redis-server is installed. */
import { randomUUID } from 'node:crypto';
import {
  openRedisCounters,
  type RedisCounters,
  type RedisCountersOptions,
} from '../../src/ratelimit/counters/redis.ts';
import { describeWith } from './programs/installed.ts';
import { createRedisServer, type RedisServer } from './programs/redis-server.ts';
import { testServers } from './serve.ts';

export interface TestRedis {
  readonly url: () => string;
  /** Opens counters, which are closed after the test. By default, no other test uses their keys. */
  readonly open: (options?: Partial<RedisCountersOptions>) => Promise<RedisCounters>;
}

/** For tests that do not check outages. */
export const unwatched = Object.freeze({ failed() {}, succeeded() {} });

/** A `describe` that is pending if redis-server is not installed. */
export function describeWithRedis(title: string, body: (redis: TestRedis) => void): void {
  describeWith('redis-server', title, () => body(createTestRedis()));
}

function createTestRedis(): TestRedis {
  let server: RedisServer;
  const servers = testServers();
  const url = () => server.url;

  before(async () => {
    server = await createRedisServer();
    await server.start();
  });

  after(() => server.remove());

  return {
    url,
    async open(options = {}) {
      // The deadline is long, because the machine may be busy and no test measures its speed.
      const patient = { url: url(), timeoutMs: 5_000, keyPrefix: `${randomUUID()}:`, outage: unwatched };
      const counters = await openRedisCounters({ ...patient, ...options });
      servers.later(counters.close);
      return counters;
    },
  };
}
