/** Counters in Redis keep the contract of all counters, where TEST_REDIS_URL names a server to try it on. */
import { randomUUID } from 'node:crypto';
import { createClient } from 'redis';
import { openRedisCounters } from '#ratelimit';
import { countersContract } from './counters.ts';

const url = process.env['TEST_REDIS_URL'];

if (url === undefined) {
  describe('counters in Redis', () => {
    it('are tested where TEST_REDIS_URL names a server (6 or newer)');
  });
} else {
  const silent = { info() {}, warn() {} };
  // With and without the cache of exhausted limits: there must be no difference.
  for (const overLimitCacheMax of [10_000, 0]) {
    countersContract(`in Redis, caching ${overLimitCacheMax}`, async () => {
      const keyPrefix = `frontdesk-test-${randomUUID()}:`;
      const counters = await openRedisCounters({ url, keyPrefix, overLimitCacheMax, timeoutMs: 5_000, logger: silent });
      return {
        counters,
        async close() {
          await counters.close();
          await removeKeys(url, keyPrefix);
        },
      };
    });
  }
}

async function removeKeys(serverUrl: string, prefix: string): Promise<void> {
  const client = createClient({ url: serverUrl });
  await client.connect();
  for await (const keys of client.scanIterator({ MATCH: `${prefix}*`, COUNT: 1_000 }))
    if (keys.length > 0) await client.del(keys);
  client.destroy();
}
