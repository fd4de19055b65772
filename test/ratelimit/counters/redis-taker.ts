/** A process that takes hits from limits in Redis as fast as it can, says how many it got, and ends by itself. */
import { openRedisCounters } from '../../../src/ratelimit/counters/redis.ts';

const [url = '', keyPrefix = '', limit = '', attempts = ''] = process.argv.slice(2);
const silent = { info() {}, warn() {} };
const counters = await openRedisCounters({ url, keyPrefix, timeoutMs: 5_000, logger: silent });
const yearSeconds = 365 * 86_400;
const common = { windowSeconds: yearSeconds, limit: Number(limit), burst: Number(limit), hits: 1, shadow: false };

// All processes start together.
process.stdout.write('ready\n');
await new Promise((resolve) => process.stdin.once('data', resolve));
process.stdin.destroy();

const admitted = { fixed_window: 0, sliding_window: 0, token_bucket: 0 };
for (const algorithm of ['fixed_window', 'sliding_window', 'token_bucket'] as const) {
  const hit = { ...common, key: algorithm, algorithm };
  const takes = Array.from({ length: Number(attempts) }, async () => {
    const [count] = await counters.take([hit]);
    if (count?.over === false) admitted[algorithm] += 1;
  });
  await Promise.all(takes);
}
process.stdout.write(`${JSON.stringify(admitted)}\n`);
await counters.close();
