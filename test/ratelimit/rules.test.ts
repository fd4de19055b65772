/** Matching descriptors to limits by the rules of envoyproxy/ratelimit, and the keys of counters. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { LimitDescriptor } from '#config';
import type { Entry } from '#ratelimit';
import type { Limit } from '#ratelimit/limit';
import { boundedKey, compileRules, compileWildcard, overrideMatch } from '../../src/ratelimit/rules.ts';
import { descriptor, domain, limit, node } from '../support/limits.ts';

const rules = compileRules([
  domain(
    'shop',
    node('user', limit(1)),
    node('user=vip', limit(2)),
    node('user=staff'),
    node('path', [], node('method=GET', limit(3), node('user', limit(4))), node('method', limit(5))),
    node('path=/slow', [], node('method=POST', limit(6))),
    node('a', [], node('b', limit(7))),
    node('a_b', limit(8)),
  ),
  domain('other', node('user', limit(9))),
]);

const limitOf = (using: typeof rules, of: string, ...entries: string[]) =>
  using.match(of, descriptor(...entries).entries)[0]?.rule.currentLimit.requestsPerUnit;

describe('rules', () => {
  const check = (expected: number | undefined, ...entries: string[]) =>
    assert.equal(limitOf(rules, 'shop', ...entries), expected, entries.join(' '));

  it('prefer key and value over the key alone, even if the value has no limit', () => {
    check(1, 'user=u');
    check(1, 'user=');
    check(2, 'user=vip');
    check(undefined, 'user=staff');
  });

  it('match nothing for unknown domains, unknown keys and empty descriptors', () => {
    assert.equal(limitOf(rules, 'other', 'user=u'), 9);
    assert.equal(limitOf(rules, 'nowhere', 'user=u'), undefined);
    check(undefined, 'unknown=u');
    check(undefined);
    check(undefined, 'constructor=u', '__proto__=u');
  });

  it('return all limits of a descriptor, with separate counters', () => {
    const several = compileRules([domain('d', node('a', [], node('b=c*', [limit(1), limit(5, 'hour')])))]);
    const found = several.match('d', descriptor('a=1', 'b=cd').entries);
    assert.deepEqual(
      found.map(({ rule }) => [rule.descriptor, rule.currentLimit.windowSeconds]),
      [
        ['a › b=c*', 60],
        ['a › b=c*', 3600],
      ],
    );
    assert.notEqual(found[0]?.counterKey, found[1]?.counterKey);
  });

  it('expose all values of a request to metrics with detailed_metric, and single ones with value_to_metric', () => {
    const check = (outer: object, inner: object, expected: string | undefined, at = 'a') => {
      const own = { ...node(at, [], { ...node('b', limit(1)), ...inner }), ...outer };
      const [found] = compileRules([domain('d', own)]).match('d', descriptor('a=x1', 'b=y').entries);
      assert.equal(found?.detail, expected);
    };
    check({}, {}, undefined);
    check({}, { detailedMetric: true }, 'a=x1 › b=y');
    check({ detailedMetric: true }, {}, undefined);
    check({ valueToMetric: true }, {}, 'a=x1 › b');
    check({}, { valueToMetric: true }, 'a › b=y');
    check({ valueToMetric: true }, { detailedMetric: true }, 'a=x1 › b=y');
    check({ valueToMetric: true }, {}, 'a=x1 › b', 'a=x*');
    check({ valueToMetric: true, shareThreshold: true }, {}, 'a=x* › b', 'a=x*');
    check({ shareThreshold: true }, { detailedMetric: true }, 'a=x* › b=y', 'a=x*');
  });

  it('match the same limits as a plain search of the list', () => {
    const keys = fc.constantFrom('a', 'b', 'a_b');
    const values = fc.constantFrom('', 'x', 'y', 'x_y', 'xx', 'xyx', 'x\nx');
    const patterns = fc.constantFrom('x', 'y', 'x_y', '*', 'x*', '*y', 'x*x', 'x*_*y', '**');
    const level = (depth: number): fc.Arbitrary<LimitDescriptor[]> =>
      fc.uniqueArray(
        fc
          .tuple(keys, fc.option(patterns), fc.option(fc.nat(9)), depth === 0 ? fc.constant([]) : level(depth - 1))
          .map(([key, value, own, below]) =>
            node(value === null ? key : `${key}=${value}`, own === null ? [] : limit(own), ...below),
          ),
        { selector: ({ key, value }) => `${key}=${value}`, maxLength: 4 },
      );
    const entries = fc.array(fc.record({ key: keys, value: values }), { maxLength: 4 });
    fc.assert(
      fc.property(level(3), entries, (tree, query) => {
        const found = compileRules([domain('d', ...tree)]).match('d', query);
        assert.deepEqual(
          found.map(({ rule }) => rule.currentLimit.requestsPerUnit),
          search(tree, query).map(({ requestsPerUnit }) => requestsPerUnit),
        );
      }),
    );
  });
});

/** The matching rules, implemented as a plain search. */
function search(level: readonly LimitDescriptor[], [first, ...rest]: readonly Entry[]): readonly Limit[] {
  const ofKey = level.filter(({ key }) => key === first?.key);
  const pattern = (value: string) => new RegExp(`^${value.split('*').join('.*')}$`, 's');
  const found =
    ofKey.find(({ value }) => value === first?.value) ??
    ofKey.find(({ value }) => value?.includes('*') && pattern(value).test(first?.value ?? '')) ??
    ofKey.find(({ value }) => value === undefined);
  return rest.length === 0 ? (found?.limits ?? []) : search(found?.descriptors ?? [], rest);
}

describe('counter keys of rules', () => {
  const keyOf = (using: typeof rules, entries: readonly Entry[], of = 'd') => using.match(of, entries)[0]?.counterKey;
  const keyIn = (descriptors: readonly LimitDescriptor[], ...entries: string[]) =>
    keyOf(compileRules([domain('d', ...descriptors)]), descriptor(...entries).entries) ?? assert.fail('no rule');

  function checkDifferent(...keys: readonly string[]): void {
    assert.equal(new Set(keys).size, keys.length, keys.join(' '));
  }

  it('differ for any two descriptors or domains', () => {
    const texts = fc.string({ unit: fc.constantFrom('a', '_', ':', '1', '|'), maxLength: 4 });
    const keys = ['a', 'a_b', 'b', '_'];
    const entries = fc.array(fc.record({ key: fc.constantFrom(...keys), value: texts }), {
      minLength: 1,
      maxLength: 3,
    });
    const tree = (depth: number): LimitDescriptor[] =>
      depth === 0 ? [] : keys.map((key) => node(key, limit(1), ...tree(depth - 1)));
    const anything = compileRules([domain('d', ...tree(3)), domain('d:', ...tree(3))]);
    const queries = fc.tuple(fc.constantFrom('d', 'd:'), entries);
    fc.assert(
      fc.property(queries, queries, ([domainA, a], [domainB, b]) => {
        const same = domainA === domainB && JSON.stringify(a) === JSON.stringify(b);
        assert.equal(keyOf(anything, a, domainA) === keyOf(anything, b, domainB), same);
      }),
    );
  });

  it('differ if only the boundary between two texts differs', () => {
    const exact = (key: string, value: string) => ({ ...node('', limit(1)), key, value });
    const using = [node('a=1', [], node('b=2', limit(1))), exact('a=1:1b', '2'), exact('a=1:11:b', '2')];
    const nested = [node('a', [], node('b', limit(1))), node('a_b', limit(1))];
    const ofExact = (key: string) =>
      keyOf(compileRules([domain('d', ...using)]), [{ key, value: '2' }]) ?? assert.fail('no rule');
    checkDifferent(keyIn(nested, 'a=xy', 'b=z'), keyIn(nested, 'a=x', 'b=yz'));
    checkDifferent(keyIn(using, 'a=1', 'b=2'), ofExact('a=1:1b'), ofExact('a=1:11:b'));
    checkDifferent(keyIn(nested, 'a_b=c'), keyIn([node('a', limit(1))], 'a=b_c'));
    const long = 'x'.repeat(200);
    checkDifferent(boundedKey(`${long}\ud800`), boundedKey(`${long}\ud801`));
  });

  it('differ for each value of a wildcard, unless the threshold is shared', () => {
    const below = (shareThreshold: boolean, value: string) =>
      keyIn([{ ...node('k=a*', limit(1)), shareThreshold }, node('k', limit(1))], `k=${value}`);
    checkDifferent(below(false, 'a1'), below(false, 'a2'), below(true, 'a1'), below(true, 'b'));
    assert.equal(below(true, 'a1'), below(true, 'a2'));
  });

  it('differ by algorithm, unit and origin of the limit, but not by its number of requests', () => {
    const ofLimit = (...own: Parameters<typeof limit>) => keyIn([node('k', limit(...own))], 'k=v');
    const override = { requestsPerUnit: 1, unit: 'minute' } as const;
    checkDifferent(
      ofLimit(1, 'minute', { algorithm: 'fixed_window' }),
      ofLimit(1, 'minute', { algorithm: 'sliding_window' }),
      ofLimit(1, 'minute', { algorithm: 'token_bucket' }),
      overrideMatch('d', descriptor('k=v').entries, override).counterKey,
      ofLimit(1, 'hour'),
    );
    assert.equal(ofLimit(1), ofLimit(5));
  });

  it('are kept up to 128 characters, and replaced with a digest of fixed length beyond', () => {
    assert.equal(boundedKey('7:'.padEnd(128, 'x')), '7:'.padEnd(128, 'x'));
    const digest = boundedKey('7:'.padEnd(129, 'x'));
    assert.match(digest, /^#[\w+/=]{44}$/);
    assert.equal(boundedKey('7:'.padEnd(16_384, 'x')).length, digest.length);
    assert.notEqual(boundedKey('7:'.padEnd(16_384, 'x')), digest);
  });
});

describe('a wildcard', () => {
  const check = (pattern: string, text: string, expected: boolean) =>
    assert.equal(compileWildcard(pattern)(text), expected, `${pattern} ${text}`);

  it('matches line breaks and empty text, and uses no character twice', () => {
    for (const text of ['', 'a', 'a\nb', '*']) check('*', text, true);
    check('ab*ba', 'aba', false);
    check('ab*ba', 'abba', true);
  });

  it('takes linear time for a long text that nearly matches', () => {
    check(`${'*a'.repeat(20)}*b`, 'a'.repeat(16_000), false);
  });
});
