/** The limiter in this process, beyond what every limiter promises in test/contracts/limiter.ts. */
import assert from 'node:assert/strict';
import type { Limit, LimitDomain } from '#config';
import { type Counters, createLimiter, createMemoryCounters, type Descriptor, type LimiterOptions } from '#ratelimit';
import { descriptor, domain, limit, node, unlimited } from '../support/limits.ts';
import { createSignal } from '../support/waiting.ts';

const limits = [domain('d', node('k', limit(1)))];
const request = { domain: 'd', descriptors: [descriptor('k=v')] };

describe('the limiter in this process', () => {
  it('shares nothing with another limiter unless it has the same counters', () => {
    const counters = createMemoryCounters();
    createLimiter({ limits, counters }).shouldRateLimit(request);
    const code = (answer: unknown) => (answer as { overallCode: string }).overallCode;
    assert.equal(code(createLimiter({ limits, counters }).shouldRateLimit(request)), 'OVER_LIMIT');
    assert.equal(code(createLimiter({ limits }).shouldRateLimit(request)), 'OK');
  });

  it('fails when the counters of a program return anything but a result for each hit', async () => {
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
      const message = `the counters returned no result with over, remaining and resetSeconds for each hit: ${shown}`;
      for (const take of [() => returned, async () => returned]) {
        const limiter = createLimiter({ limits, counters: { take } as unknown as Counters });
        await assert.rejects(async () => limiter.shouldRateLimit(request), { message });
      }
    }
  });

  it('cannot be made with what are no counters', () => {
    const counters = {} as Counters;
    assert.throws(() => createLimiter({ limits, counters }), /^TypeError: the counters have no function `take`/);
  });

  it('can be made only with limits that have been read', () => {
    const asInFiles = {
      domain: 'd',
      descriptors: [{ key: 'k', rate_limit: { unit: 'minute', requests_per_unit: 1 } }],
    };
    for (const raw of [undefined, { limits }, [asInFiles], [undefined]]) {
      const make = () => createLimiter({ limits: raw as unknown as LimitDomain[] });
      assert.throws(make, /^TypeError: the limits are none that configurationFrom has read/);
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

  it('all count, and the most restrictive is shown: the longest wait when several are over', () => {
    const check = (own: readonly Limit[], ...expected: string[]) => {
      const { summary } = setUp([node('k', own)]);
      for (const one of expected) assert.deepEqual(summary(k), [one]);
    };
    const shadow = limit(1, 'day', { shadowMode: true });
    check([limit(2), limit(3, 'hour'), shadow], 'OK minute 1', 'OK minute 0', 'OVER_LIMIT minute 0');
    check([limit(1), limit(1, 'hour')], 'OK minute 0', 'OVER_LIMIT hour 0');
  });

  it('deny by what responses have cost, which Envoy reports after it has asked with no hits', () => {
    const { ask } = setUp([node('k', limit(100))], { countDenied: true });
    const code = (hitsAddend: number) => ask({ ...k, hitsAddend }).overallCode;
    assert.deepEqual([code(0), code(70), code(0), code(70), code(0)], ['OK', 'OK', 'OK', 'OVER_LIMIT', 'OVER_LIMIT']);
  });

  it('are dropped for a request that also meets their replacement, but not for others', () => {
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

  it('stay unlimited for a request that also meets their replacement', () => {
    const { summary } = setUp([
      node('free', { ...unlimited, name: 'general' }),
      node('k', limit(5, 'hour', { replaces: ['general'] })),
    ]);
    assert.deepEqual(summary(descriptor('free=x'), k), ['OK undefined 4294967295', 'OK hour 4']);
  });

  it('are in response headers on request: the one that is over, or has the least remaining', () => {
    const { ask } = setUp([node('k', limit(2)), node('j', limit(9, 'hour'))], { responseHeaders: true });
    const headers = () => ask(descriptor('j=1'), k).responseHeaders?.map(({ name, value }) => `${name}: ${value}`);
    assert.deepEqual(headers(), ['RateLimit-Limit: 2', 'RateLimit-Remaining: 1', 'RateLimit-Reset: 60']);
    headers();
    assert.deepEqual(headers(), ['RateLimit-Limit: 2', 'RateLimit-Remaining: 0', 'RateLimit-Reset: 60']);
    assert.deepEqual(ask(descriptor('x=y')).responseHeaders, []);
    assert.equal(setUp([]).ask(k).responseHeaders, undefined);
  });
});

describe('a request that meets no limit', () => {
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

  it('has one line at debug, with its domain and the descriptors that meet none', () => {
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

  it('has none where a limit comes with it or is replaced by another, and where debug is off', () => {
    const { ask, lines } = setUp();
    ask('d', descriptor('k=1'), descriptor('j=1'));
    ask('e', { ...descriptor('x=1'), limit: { requestsPerUnit: 1, unit: 'minute' } });
    const quiet = setUp(() => false);
    quiet.ask('d', descriptor('x=1'));
    assert.deepEqual([lines, quiet.lines], [[], []]);
  });

  it('has a line of a few kilobytes, whatever the client sends', () => {
    const { ask, lines } = setUp();
    const long = 'x'.repeat(16_384);
    ask(long, ...Array.from({ length: 20 }, () => descriptor(...Array.from({ length: 4 }, () => `${long}=${long}`))));
    assert.equal(lines.length, 1);
    assert.ok(JSON.stringify(lines).length < 4096);
  });
});

it('a reload of the limits does not change a decision that has begun', async () => {
  const own = (requests: number) => [domain('d', node('k', limit(requests)))];
  const memory = createMemoryCounters();
  const released = createSignal();
  const counters: Counters = { take: (hits) => released.given.then(() => memory.take(hits)) };
  const limiter = createLimiter({ limits: own(2), counters });
  const decision = limiter.shouldRateLimit(request);
  limiter.reload(own(9));
  released.give();
  assert.equal((await decision).statuses[0]?.currentLimit?.requestsPerUnit, 2);
});
