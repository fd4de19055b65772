/** The in-process limiter, beyond the contract of all limiters in test/contracts/limiter.ts. */
import assert from 'node:assert/strict';
import type { LimitDomain } from '#config';
import { type Counters, createLimiter, createMemoryCounters, type Descriptor, type LimiterOptions } from '#ratelimit';
import type { Limit } from '#ratelimit/limit';
import { descriptor, domain, limit, node, unlimited } from '../support/limits.ts';
import { createDeferred } from '../support/waiting.ts';

const limits = [domain('d', node('k', limit(1)))];
const request = { domain: 'd', descriptors: [descriptor('k=v')] };

describe('the in-process limiter', () => {
  it('shares limits with another limiter only if both use the same counters', () => {
    const counters = createMemoryCounters();
    void createLimiter({ limits, counters }).shouldRateLimit(request);
    const code = (decision: unknown) => (decision as { overallCode: string }).overallCode;
    assert.equal(code(createLimiter({ limits, counters }).shouldRateLimit(request)), 'OVER_LIMIT');
    assert.equal(code(createLimiter({ limits }).shouldRateLimit(request)), 'OK');
  });

  it('fails when custom counters do not return a valid result for every hit', async () => {
    const result = { over: false, remaining: 1, resetSeconds: 1 };
    for (const [returned, shown] of [
      [undefined, 'undefined'],
      [[], 'undefined'],
      [[null], 'null'],
      [[{}], '{}'],
      [[{ ...result, over: 'true' }], "{ over: 'true', remaining: 1, resetSeconds: 1 }"],
      [[{ ...result, remaining: Number.NaN }], '{ over: false, remaining: NaN, resetSeconds: 1 }'],
      [[{ ...result, remaining: -1 }], '{ over: false, remaining: -1, resetSeconds: 1 }'],
    ] as const) {
      const message = `the counters did not return over, remaining and resetSeconds for every hit: ${shown}`;
      for (const take of [() => returned, async () => returned]) {
        const limiter = createLimiter({ limits, counters: { take } as unknown as Counters });
        await assert.rejects(async () => limiter.shouldRateLimit(request), { message });
      }
    }
  });

  it('rejects counters without a take function', () => {
    const counters = {} as Counters;
    assert.throws(() => createLimiter({ limits, counters }), /^TypeError: the counters have no function `take`/);
  });

  it('rejects limits that were not parsed by configurationFrom', () => {
    const asInFiles = {
      domain: 'd',
      descriptors: [{ key: 'k', rate_limit: { unit: 'minute', requests_per_unit: 1 } }],
    };
    for (const raw of [undefined, { limits }, [asInFiles], [undefined]]) {
      const create = () => createLimiter({ limits: raw as unknown as LimitDomain[] });
      assert.throws(create, /^TypeError: the limits were not parsed by configurationFrom/);
    }
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
    const summary = (...descriptors: Descriptor[]) =>
      ask(...descriptors).statuses.map(
        ({ code, currentLimit, limitRemaining }) => `${code} ${currentLimit?.unit} ${limitRemaining}`,
      );
    return { ask, summary };
  }
  const k = descriptor('k=v');

  it('are all counted, and the most restrictive is reported: the one with the longest wait if several are over', () => {
    const check = (own: readonly Limit[], ...expected: string[]) => {
      const { summary } = setUp([node('k', own)]);
      for (const one of expected) assert.deepEqual(summary(k), [one]);
    };
    const shadow = limit(1, 'day', { shadowMode: true });
    check([limit(2), limit(3, 'hour'), shadow], 'OK minute 1', 'OK minute 0', 'OVER_LIMIT minute 0');
    check([limit(1), limit(1, 'hour')], 'OK minute 0', 'OVER_LIMIT hour 0');
  });

  it('deny a hit of 0 after Envoy has reported response costs that exhaust the limit', () => {
    const { ask } = setUp([node('k', limit(100))], { countDenied: true });
    const code = (hitsAddend: number) => ask({ ...k, hitsAddend }).overallCode;
    assert.deepEqual([code(0), code(70), code(0), code(70), code(0)], ['OK', 'OK', 'OK', 'OVER_LIMIT', 'OVER_LIMIT']);
  });

  it('are dropped only for requests that also match their replacement', () => {
    const { summary } = setUp([
      node('all', limit(1, 'minute', { name: 'general' })),
      node('k', limit(5, 'hour', { replaces: ['general'] })),
      node('free', { ...unlimited, replaces: ['general'] }),
    ]);
    const all = descriptor('all=x');
    assert.deepEqual(summary(all, k), ['OK undefined 0', 'OK hour 4']);
    assert.deepEqual(summary(all, descriptor('free=x')), ['OK undefined 0', 'OK undefined 4294967295']);
    assert.deepEqual([summary(all), summary(all)], [['OK minute 0'], ['OVER_LIMIT minute 0']]);
  });

  it('stay unlimited for a request that also matches their replacement', () => {
    const { summary } = setUp([
      node('free', { ...unlimited, name: 'general' }),
      node('k', limit(5, 'hour', { replaces: ['general'] })),
    ]);
    assert.deepEqual(summary(descriptor('free=x'), k), ['OK undefined 4294967295', 'OK hour 4']);
  });

  it('appear in response headers if enabled: the last that denies or, failing that, has the least remaining', () => {
    const { ask } = setUp(
      [node('k', limit(2)), node('j', limit(9, 'hour')), node('q', limit(2, 'day', { quotaMode: true }))],
      { responseHeaders: true },
    );
    const headers = (...names: string[]) =>
      ask(...names.map((name) => descriptor(`${name}=1`))).responseHeaders?.map(
        ({ name, value }) => `${name}: ${value}`,
      );
    const limitOf = (...names: string[]) => headers(...names)?.[0];
    assert.deepEqual(headers('j', 'k'), ['RateLimit-Limit: 2', 'RateLimit-Remaining: 1', 'RateLimit-Reset: 60']);
    headers('j', 'k');
    assert.deepEqual(headers('j', 'k'), ['RateLimit-Limit: 2', 'RateLimit-Remaining: 0', 'RateLimit-Reset: 60']);
    for (const name of ['j', 'q']) for (let count = 0; count < 7; count += 1) headers(name);
    assert.deepEqual([limitOf('j', 'k'), limitOf('k', 'j')], ['RateLimit-Limit: 2', 'RateLimit-Limit: 9']);
    assert.deepEqual([limitOf('q', 'j'), limitOf('j', 'q')], ['RateLimit-Limit: 9', 'RateLimit-Limit: 9']);
    assert.deepEqual(headers('x'), []);
    assert.equal(setUp([]).ask(k).responseHeaders, undefined);
  });
});

describe('a request that matches no limit', () => {
  function setUp(isLevelEnabled?: () => boolean) {
    const lines: unknown[] = [];
    const debug = (fields: object, message?: string) => void lines.push({ ...fields, message });
    const below = node('plan', [], node('user', limit(1)));
    const limiter = createLimiter({
      limits: [
        domain(
          'd',
          node('k', limit(1, 'minute', { name: 'k' })),
          node('j', limit(1, 'day', { replaces: ['k'] })),
          below,
        ),
      ],
      logger: isLevelEnabled === undefined ? { debug } : { debug, isLevelEnabled },
    });
    const ask = (name: string, ...descriptors: Descriptor[]) =>
      void limiter.shouldRateLimit({ domain: name, descriptors });
    return { ask, lines };
  }
  const matching = 'a descriptor matches no limit';

  it('is logged once at debug level, with its domain and the unmatched descriptors', () => {
    const { ask, lines } = setUp();
    ask('d', descriptor('k=1'), descriptor('x=1'), descriptor('plan=gold'), descriptor('plan=gold', 'user='));
    ask('e', descriptor('plan=gold', 'user=ann'), descriptor('k=1'));
    assert.deepEqual(lines, [
      { domain: 'd', unmatched: 2, descriptors: ['(x=1)', '(plan=gold)'], message: matching },
      {
        domain: 'e',
        unmatched: 2,
        descriptors: ['(plan=gold),(user=ann)', '(k=1)'],
        message: 'unknown domain, so no limit applies',
      },
    ]);
  });

  it('is not logged if its own limit applies, if its limit was replaced, or if debug is disabled', () => {
    const { ask, lines } = setUp();
    ask('d', descriptor('k=1'), descriptor('j=1'));
    ask('e', { ...descriptor('x=1'), limit: { requestsPerUnit: 1, unit: 'minute' } });
    const quiet = setUp(() => false);
    quiet.ask('d', descriptor('x=1'));
    assert.deepEqual([lines, quiet.lines], [[], []]);
  });

  it('is logged in at most a few kilobytes, whatever the client sends', () => {
    const { ask, lines } = setUp();
    const long = 'x'.repeat(16_384);
    ask(long, ...Array.from({ length: 20 }, () => descriptor(...Array.from({ length: 4 }, () => `${long}=${long}`))));
    assert.equal(lines.length, 1);
    assert.ok(JSON.stringify(lines).length < 4096);
  });
});

it('a reload of the limits does not affect a decision in progress', async () => {
  const own = (requests: number) => [domain('d', node('k', limit(requests)))];
  const memory = createMemoryCounters();
  const released = createDeferred();
  const counters: Counters = { take: (hits) => released.promise.then(() => memory.take(hits)) };
  const limiter = createLimiter({ limits: own(2), counters });
  const decision = limiter.shouldRateLimit(request);
  limiter.reload(own(9));
  released.resolve();
  assert.equal((await decision).statuses[0]?.currentLimit?.requestsPerUnit, 2);
});
