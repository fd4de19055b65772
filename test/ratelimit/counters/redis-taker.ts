/** A child process that exhausts limits of 100 in Redis and reports how many hits each algorithm admitted. */
import { once } from 'node:events';
import { openRedisCounters } from '../../../src/ratelimit/counters/redis.ts';

const [url = ''] = process.argv.slice(2);
const outage = { failed() {}, succeeded() {} };
const counters = await openRedisCounters({ url, keyPrefix: 'two:', timeoutMs: 5_000, outage });

// All processes start counting simultaneously.
process.send?.('ready');
await once(process, 'message');

const admitted = { fixed_window: 0, sliding_window: 0, token_bucket: 0 };
for (const algorithm of ['fixed_window', 'sliding_window', 'token_bucket'] as const) {
  const windowSeconds = 365 * 86_400;
  const hit = { key: algorithm, algorithm, windowSeconds, limit: 100, burst: 100, hits: 1, shadow: false };
  const taken = await Promise.all(Array.from({ length: 150 }, () => counters.take([hit])));
  admitted[algorithm] = taken.filter(([result]) => result?.over === false).length;
}
process.send?.(admitted);
await counters.close();
process.disconnect();
