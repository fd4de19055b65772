/** The limiter in this process, beyond what every limiter promises in test/contracts/limiter.ts. */
import assert from 'node:assert/strict';
import { type Counters, createLimiter, createMemoryCounters } from '#ratelimit';
import { descriptor, domain, limit, node } from './build-limits.ts';

const limits = [domain('d', node('k', limit(1)))];
const request = { domain: 'd', descriptors: [descriptor('k=v')] };

describe('the limiter in this process', () => {
  it('answers at once, without a promise', () => {
    assert.ok(!(createLimiter({ limits }).shouldRateLimit(request) instanceof Promise));
  });

  it('answers a promise when its counters do', async () => {
    const memory = createMemoryCounters();
    const counters: Counters = { take: (hits) => Promise.resolve(memory.take(hits)) };
    const answer = createLimiter({ limits, counters }).shouldRateLimit(request);
    assert.ok(answer instanceof Promise);
    assert.equal((await answer).overallCode, 'OK');
  });

  it('does not ask its counters about what has no limit', () => {
    const counters: Counters = { take: () => assert.fail('asked') };
    const answer = createLimiter({ limits, counters }).shouldRateLimit({
      domain: 'd',
      descriptors: [descriptor('x=y')],
    });
    assert.deepEqual(answer, {
      overallCode: 'OK',
      statuses: [{ code: 'OK', currentLimit: undefined, limitRemaining: 0, resetSeconds: undefined }],
    });
  });

  it('shares nothing with another one, and keeps counting on the same counters', () => {
    const counters = createMemoryCounters();
    createLimiter({ limits, counters }).shouldRateLimit(request);
    const code = (answer: unknown) => (answer as { overallCode: string }).overallCode;
    assert.equal(code(createLimiter({ limits, counters }).shouldRateLimit(request)), 'OVER_LIMIT');
    assert.equal(code(createLimiter({ limits }).shouldRateLimit(request)), 'OK');
  });

  it('says so when its counters answer too little', () => {
    const limiter = createLimiter({ limits, counters: { take: () => [] } });
    assert.throws(() => limiter.shouldRateLimit(request), /fewer counts/);
  });
});
