/** Which limit a descriptor meets, by the matching rules of envoyproxy/ratelimit. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Limit, LimitDescriptor } from '#config';
import type { Entry } from '#ratelimit';
import { boundedKey, compileRules, compileWildcard, overrideMatch, withLength } from '../../src/ratelimit/rules.ts';
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

function check(entries: string[], expected: number | undefined, of = 'shop'): void {
  const match = rules.match(of, descriptor(...entries).entries);
  assert.equal(match[0]?.rule.currentLimit.requestsPerUnit, expected, entries.join(' '));
}

describe('rules', () => {
  it('prefer key and value to the key alone', () => {
    check(['user=u'], 1);
    check(['user=vip'], 2);
    check(['user='], 1);
  });

  it('let a descriptor pass that is listed without a limit', () => check(['user=staff'], undefined));

  it('count only where the last entry arrives', () => {
    check(['path=/x'], undefined);
    check(['path=/x', 'method=GET'], 3);
    check(['path=/x', 'method=GET', 'user=u'], 4);
    check(['path=/x', 'method=PUT'], 5);
    check(['path=/x', 'method=PUT', 'user=u'], undefined);
    check(['user=u', 'path=/x'], undefined);
  });

  it('never backtrack: a value hides what lies below its key', () => {
    check(['path=/slow', 'method=POST'], 6);
    check(['path=/slow', 'method=GET'], undefined);
  });

  it('find nothing for other domains, unknown keys and empty descriptors', () => {
    check(['user=u'], 9, 'other');
    check(['user=u'], undefined, 'nowhere');
    check(['unknown=u'], undefined);
    check([], undefined);
    check(['constructor=u', '__proto__=u'], undefined);
  });

  it('try wildcards after the exact value, in the order of the file, and before the key alone', () => {
    const starred = compileRules([
      domain(
        'd',
        node('k', limit(1)),
        node('k=a*', limit(2)),
        node('k=*b', limit(3)),
        node('k=ab', limit(4)),
        node('k=x*y*z', limit(5)),
      ),
    ]);
    const found = (value: string) => starred.match('d', [{ key: 'k', value }])[0]?.rule.currentLimit.requestsPerUnit;
    assert.deepEqual(['ab', 'aab', 'a', 'a*', 'b', 'xyz', 'x1y2z', 'xz', ''].map(found), [4, 2, 2, 2, 3, 5, 5, 1, 1]);
  });

  it('have all limits of a descriptor, each with its place', () => {
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

  it('give the values of a request only with detailed_metric', () => {
    const detail = (detailedMetric: boolean) =>
      compileRules([domain('d', { ...node('a', limit(1)), detailedMetric })]).match('d', descriptor('a=x').entries)[0]
        ?.detail;
    assert.deepEqual([detail(true), detail(false)], ['a=x', undefined]);
  });

  it('find what a plain search of the list finds', () => {
    const keys = fc.constantFrom('a', 'b', 'a_b');
    const values = fc.constantFrom('x', 'y', 'x_y', 'xx', 'xyx');
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
      fc.property(level(3), entries, (tree, asked) => {
        const found = compileRules([domain('d', ...tree)]).match('d', asked);
        assert.deepEqual(
          found.map(({ rule }) => rule.currentLimit.requestsPerUnit),
          search(tree, asked).map(({ requestsPerUnit }) => requestsPerUnit),
        );
      }),
    );
  });
});

/** The same rules, as a plain search. */
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
  const keyOf = (entries: readonly Entry[], of = 'd', using = anything) => using.match(of, entries)[0]?.counterKey;
  const texts = fc.string({ unit: fc.constantFrom('a', '_', ':', '1', '|'), minLength: 0, maxLength: 4 });
  const keys = ['a', 'a_b', 'b', '_'];
  const tree = (depth: number): LimitDescriptor[] =>
    depth === 0 ? [] : keys.map((key) => node(key, limit(1), ...tree(depth - 1)));
  const anything = compileRules([domain('d', ...tree(3)), domain('d:', ...tree(3))]);

  it('differ for every two descriptors', () => {
    const entries = fc.array(fc.record({ key: fc.constantFrom(...keys), value: texts }), {
      minLength: 1,
      maxLength: 3,
    });
    const asked = fc.tuple(fc.constantFrom('d', 'd:'), entries);
    fc.assert(
      fc.property(asked, asked, ([domainA, a], [domainB, b]) => {
        const same = domainA === domainB && JSON.stringify(a) === JSON.stringify(b);
        assert.equal(keyOf(a, domainA) === keyOf(b, domainB), same);
      }),
    );
  });

  it('differ where only the border between two texts differs', () => {
    const entry = (key: string, value: string): Entry => ({ key, value });
    const exact = (key: string, value: string) => ({ ...node('', limit(1)), key, value });
    const using = compileRules([
      domain('d', node('a=1', [], node('b=2', limit(1))), exact('a=1:1b', '2'), exact('a=1:11:b', '2')),
    ]);
    const keys = [
      keyOf([entry('a', 'xy'), entry('b', 'z')]),
      keyOf([entry('a', 'x'), entry('b', 'yz')]),
      keyOf([entry('a', '1'), entry('b', '2')], 'd', using),
      keyOf([entry('a=1:1b', '2')], 'd', using),
      keyOf([entry('a=1:11:b', '2')], 'd', using),
    ];
    assert.ok(!keys.includes(undefined));
    assert.equal(new Set(keys).size, keys.length);
  });

  it('differ for each value below a wildcard, unless the threshold is shared', () => {
    const keyIn = (shareThreshold: boolean, value: string) =>
      keyOf(
        [{ key: 'k', value }],
        'd',
        compileRules([domain('d', { ...node('k=a*', limit(1)), shareThreshold }, node('k', limit(1)))]),
      );
    assert.notEqual(keyIn(false, 'a1'), keyIn(false, 'a2'));
    assert.equal(keyIn(true, 'a1'), keyIn(true, 'a2'));
    assert.notEqual(keyIn(true, 'a1'), keyIn(false, 'a1'));
    assert.notEqual(keyIn(true, 'a1'), keyIn(true, 'b'));
  });

  it('differ for two algorithms, and for a configured limit and one of the request', () => {
    const keys = (['fixed_window', 'sliding_window', 'token_bucket'] as const).map((algorithm) =>
      keyOf([{ key: 'k', value: 'v' }], 'd', compileRules([domain('d', node('k', limit(1, 'minute', { algorithm })))])),
    );
    const override = overrideMatch('d', [{ key: 'k', value: 'v' }], { requestsPerUnit: 1, unit: 'minute' }).counterKey;
    assert.equal(new Set([...keys, override]).size, 4);
  });

  it('differ for two domains', () => {
    const entries = [{ key: 'a', value: 'x' }];
    assert.notEqual(keyOf(entries, 'd'), keyOf(entries, 'd:'));
  });

  it('differ for an underscore in the key and one in the value', () => {
    assert.notEqual(keyOf([{ key: 'a_b', value: 'c' }]), keyOf([{ key: 'a', value: 'b_c' }]));
  });

  it('stay the same over a reload, unless the unit changed', () => {
    const [before, after, changed] = [limit(1), limit(5), limit(1, 'hour')].map((own) =>
      keyOf([{ key: 'k', value: 'v' }], 'd', compileRules([domain('d', node('k', own))])),
    );
    assert.equal(before, after);
    assert.notEqual(before, changed);
  });

  it('are as long as their parts up to 128 characters, and digests of one length above', () => {
    assert.equal(boundedKey('7:'.padEnd(128, 'x')), '7:'.padEnd(128, 'x'));
    const digest = boundedKey('7:'.padEnd(129, 'x'));
    assert.match(digest, /^#[\w+/=]{44}$/);
    assert.equal(boundedKey('7:'.padEnd(16_384, 'x')).length, digest.length);
    assert.notEqual(boundedKey('7:'.padEnd(16_384, 'x')), digest);
  });

  it('differ for texts that UTF-8 cannot tell apart', () => {
    assert.notEqual(boundedKey(`${'x'.repeat(200)}\ud800`), boundedKey(`${'x'.repeat(200)}\ud801`));
  });

  it('keep the borders of texts that are written one behind the other', () => {
    const lists = fc.array(fc.string({ unit: fc.constantFrom('1', ':', '_', 'a', '2', '|', '*') }), { maxLength: 5 });
    fc.assert(
      fc.property(lists, lists, (left, right) => {
        const same = JSON.stringify(left) === JSON.stringify(right);
        assert.equal(left.map(withLength).join('') === right.map(withLength).join(''), same);
      }),
    );
  });
});

describe('a wildcard', () => {
  const check = (pattern: string, text: string, expected: boolean) =>
    assert.equal(compileWildcard(pattern)(text), expected, `${pattern} ${text}`);

  it('matches any text, also the empty one and line breaks', () => {
    for (const text of ['', 'a', 'a\nb', '*']) check('*', text, true);
    check('a*b*c', 'a1b2c', true);
    check('a*b*c', 'acb', false);
  });

  it('does not use a letter twice', () => {
    check('ab*ba', 'aba', false);
    check('a*b*b', 'ab', false);
    check('ab*ba', 'abba', true);
  });

  it('agrees with a regular expression', () => {
    const text = (of: string) => fc.string({ unit: fc.constantFrom(...of), maxLength: 8 });
    fc.assert(
      fc.property(text('ab*.'), text('ab*.'), (pattern, value) => {
        const parts = pattern.split('*').map((part) => part.replaceAll('.', '\\.'));
        check(pattern, value, new RegExp(`^${parts.join('.*')}$`, 's').test(value));
      }),
      { numRuns: 2_000 },
    );
  });

  it('takes linear time for a long text that nearly matches', () => {
    check(`${'*a'.repeat(20)}*b`, 'a'.repeat(16_000), false);
  });
});
