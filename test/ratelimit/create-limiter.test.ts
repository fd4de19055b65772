/** The limiter in this process, beyond what every limiter promises in test/contracts/limiter.ts. */
import assert from 'node:assert/strict';
import type { LimitDomain } from '#config';
import { type Counters, createLimiter, createMemoryCounters, type Descriptor, type LimiterOptions } from '#ratelimit';
import { descriptor, domain, limit, node, unlimited } from '../support/limits.ts';

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

describe('the limits of a descriptor', () => {
  function setUp(own: LimitDomain['descriptors'], options: Partial<LimiterOptions> = {}) {
    const counters = createMemoryCounters({ clock: () => 7_200_000 });
    const limiter = createLimiter({ limits: [domain('d', ...own)], counters, ...options });
    const ask = (...descriptors: Descriptor[]) => {
      const decision = limiter.shouldRateLimit({ domain: 'd', descriptors });
      assert.ok(!(decision instanceof Promise));
      return decision;
    };
    const said = (...descriptors: Descriptor[]) =>
      ask(...descriptors).statuses.map(
        ({ code, currentLimit, limitRemaining }) => `${code} ${currentLimit?.unit} ${limitRemaining}`,
      );
    return { ask, said };
  }
  const k = descriptor('k=v');

  it('all count, and the most restrictive speaks', () => {
    const { said } = setUp([node('k', [limit(2), limit(3, 'hour'), limit(1, 'day', { shadowMode: true })])]);
    assert.deepEqual(said(k), ['OK minute 1']);
    assert.deepEqual(said(k), ['OK minute 0']);
    assert.deepEqual(said(k), ['OVER_LIMIT minute 0']);
  });

  it('tell the longest wait when several are over', () => {
    const { said } = setUp([node('k', [limit(1), limit(1, 'hour')])]);
    said(k);
    assert.deepEqual(said(k), ['OVER_LIMIT hour 0']);
  });

  it('let pass in shadow mode what is over', () => {
    const { ask, said } = setUp([node('k', limit(1, 'minute', { shadowMode: true }))]);
    assert.deepEqual([said(k), said(k)], [['OK minute 0'], ['OK minute 0']]);
    assert.equal(ask(k).overallCode, 'OK');
  });

  it('are dropped for a request that meets their replacement, but not for others', () => {
    const { said } = setUp([
      node('all', limit(1, 'minute', { name: 'everybody' })),
      node('k', limit(5, 'hour', { replaces: ['everybody'] })),
      node('free', { ...unlimited, replaces: ['everybody'] }),
    ]);
    const all = descriptor('all=x');
    assert.deepEqual(said(all, k), ['OK undefined 0', 'OK hour 4']);
    assert.deepEqual(said(all, descriptor('free=x')), ['OK undefined 0', 'OK undefined 4294967295']);
    assert.deepEqual([said(all), said(all)], [['OK minute 0'], ['OVER_LIMIT minute 0']]);
  });

  it('give way to the limit that a descriptor brings along, file or no file', () => {
    const { said } = setUp([node('k', limit(9))]);
    const own = { ...k, limit: { requestsPerUnit: 1, unit: 'hour' as const } };
    assert.deepEqual([said(own), said(own), said(k)], [['OK hour 0'], ['OVER_LIMIT hour 0'], ['OK minute 8']]);
    assert.deepEqual(said({ ...own, entries: descriptor('x=y').entries }), ['OK hour 0']);
  });

  it("count the hits of the descriptor in place of the request's, and 0 as none", () => {
    const { said } = setUp([node('k', limit(9))]);
    assert.deepEqual(said({ ...k, hitsAddend: 4 }), ['OK minute 5']);
    assert.deepEqual(said({ ...k, hitsAddend: 0 }), ['OK minute 5']);
    assert.deepEqual(said(k), ['OK minute 4']);
  });

  it('burn no counter of a denied request, unless told to', () => {
    const own = [node('k', limit(9)), node('closed', limit(0))];
    const remaining = (options: Partial<LimiterOptions>) => {
      const { ask, said } = setUp(own, options);
      ask(k, descriptor('closed=x'));
      return said(k);
    };
    assert.deepEqual([remaining({}), remaining({ countDenied: true })], [['OK minute 8'], ['OK minute 7']]);
  });

  it('have windows of several units', () => {
    const { ask } = setUp([node('k', limit(9, 'second', { unitMultiplier: 30 }))]);
    assert.deepEqual(ask(k).statuses[0]?.currentLimit, {
      requestsPerUnit: 9,
      unit: 'second',
      unitMultiplier: 30,
      windowSeconds: 30,
      name: undefined,
    });
  });

  it('are told in headers on request: of the one that is over, or has the least left', () => {
    const { ask } = setUp([node('k', limit(2)), node('j', limit(9, 'hour'))], { responseHeaders: true });
    const told = () => ask(descriptor('j=1'), k).responseHeaders?.map(({ name, value }) => `${name}: ${value}`);
    assert.deepEqual(told(), ['RateLimit-Limit: 2', 'RateLimit-Remaining: 1', 'RateLimit-Reset: 60']);
    told();
    assert.deepEqual(told(), ['RateLimit-Limit: 2', 'RateLimit-Remaining: 0', 'RateLimit-Reset: 60']);
    assert.deepEqual(ask(descriptor('x=y')).responseHeaders, []);
    assert.equal(setUp([]).ask(k).responseHeaders, undefined);
  });

  it('are told to an observer, each with its count', () => {
    const seen: string[] = [];
    const { ask } = setUp([node('k', [limit(2), limit(1, 'hour')])], {
      observer: {
        counted: ({ rule }, hit, count) =>
          seen.push(`${rule.descriptor} ${rule.currentLimit.unit} ${hit.hits} ${count.over}`),
        failed: () => seen.push('failed'),
      },
    });
    ask(k);
    assert.deepEqual(seen, ['k minute 1 false', 'k hour 1 false']);
  });

  it('tell an observer when the counters fail', async () => {
    const seen: string[] = [];
    const limiter = createLimiter({
      limits,
      counters: { take: () => Promise.reject(new Error('away')) },
      observer: { counted() {}, failed: () => seen.push('failed') },
    });
    await assert.rejects(async () => limiter.shouldRateLimit(request), /away/);
    assert.deepEqual(seen, ['failed']);
  });
});
