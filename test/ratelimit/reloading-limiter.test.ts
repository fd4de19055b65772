/** Limits that are replaced while their limiter answers. */
import assert from 'node:assert/strict';
import { type Counters, createMemoryCounters, createReloadingLimiter, type Limiter } from '#ratelimit';
import { descriptor, domain, limit, node } from '../support/limits.ts';

const limits = (requests: number) => [domain('d', node('k', limit(requests)))];
const request = { domain: 'd', descriptors: [descriptor('k=v')] };
const clock = () => 0;

async function codeOf(limiter: Limiter): Promise<string> {
  return (await limiter.shouldRateLimit(request)).overallCode;
}

describe('the reloading limiter', () => {
  it('decides by the limits that it was given last, and goes on counting where it was', async () => {
    const limiter = createReloadingLimiter({ limits: limits(2), counters: createMemoryCounters({ clock }) });
    for (const expected of ['OK', 'OK', 'OVER_LIMIT']) assert.equal(await codeOf(limiter), expected);
    limiter.reload(limits(3));
    for (const expected of ['OK', 'OVER_LIMIT']) assert.equal(await codeOf(limiter), expected);
    limiter.reload(limits(1));
    assert.equal(await codeOf(limiter), 'OVER_LIMIT');
    limiter.reload([]);
    assert.equal(await codeOf(limiter), 'OK');
  });

  it('keeps its counters over a reload when it was given none', async () => {
    const limiter = createReloadingLimiter({ limits: [domain('d', node('k', limit(1, 'year')))] });
    assert.equal(await codeOf(limiter), 'OK');
    limiter.reload([domain('d', node('k', limit(1, 'year')))]);
    assert.equal(await codeOf(limiter), 'OVER_LIMIT');
  });

  it('finishes a request by the limits that it began with', async () => {
    const memory = createMemoryCounters({ clock });
    let answer = () => {};
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const counters: Counters = { take: (hits) => held.then(() => memory.take(hits)) };
    const limiter = createReloadingLimiter({ limits: limits(5), counters });
    const decision = limiter.shouldRateLimit(request);
    limiter.reload(limits(9));
    answer();
    assert.equal((await decision).statuses[0]?.currentLimit?.requestsPerUnit, 5);
  });

  it('keeps the limits that it has when the new ones cannot be compiled', async () => {
    const limiter = createReloadingLimiter({ limits: limits(1), counters: createMemoryCounters({ clock }) });
    const broken = [{ ...domain('d'), descriptors: undefined }] as never;
    assert.throws(() => limiter.reload(broken));
    for (const expected of ['OK', 'OVER_LIMIT']) assert.equal(await codeOf(limiter), expected);
  });
});
