/** Which limit a descriptor meets, by the matching rules of envoyproxy/ratelimit. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { LimitDescriptor } from '#config';
import type { Entry } from '#ratelimit';
import { compileRules } from '../../src/ratelimit/rules.ts';
import { descriptor, domain, limit, node } from './build-limits.ts';

const rules = compileRules([
  domain(
    'shop',
    node('user', limit(1)),
    node('user=vip', limit(2)),
    node('user=staff'),
    node('path', undefined, node('method=GET', limit(3), node('user', limit(4))), node('method', limit(5))),
    node('path=/slow', undefined, node('method=POST', limit(6))),
    node('a', undefined, node('b', limit(7))),
    node('a_b', limit(8)),
  ),
  domain('other', node('user', limit(9))),
]);

function check(entries: string[], expected: number | undefined, of = 'shop'): void {
  const match = rules.match(of, descriptor(...entries).entries);
  assert.equal(match?.rule.currentLimit.requestsPerUnit, expected, entries.join(' '));
}

describe('rules', () => {
  it('prefer key and value to the key alone', () => {
    check(['user=anybody'], 1);
    check(['user=vip'], 2);
    check(['user='], 1);
  });

  it('let pass what is listed without a limit', () => check(['user=staff'], undefined));

  it('count only where the last entry arrives', () => {
    check(['path=/x'], undefined);
    check(['path=/x', 'method=GET'], 3);
    check(['path=/x', 'method=GET', 'user=u'], 4);
    check(['path=/x', 'method=PUT'], 5);
    check(['path=/x', 'method=PUT', 'user=u'], undefined);
    check(['user=u', 'path=/x'], undefined);
  });

  it('do not go back: a value hides what lies below its key', () => {
    check(['path=/slow', 'method=POST'], 6);
    check(['path=/slow', 'method=GET'], undefined);
  });

  it('know nothing of other domains, unknown keys and empty descriptors', () => {
    check(['user=u'], 9, 'other');
    check(['user=u'], undefined, 'nowhere');
    check(['nobody=u'], undefined);
    check([], undefined);
    check(['constructor=u', '__proto__=u'], undefined);
  });

  it('find what a plain search of the list finds', () => {
    const keys = fc.constantFrom('a', 'b', 'a_b');
    const values = fc.constantFrom('x', 'y', 'x_y');
    const level = (depth: number): fc.Arbitrary<LimitDescriptor[]> =>
      fc.uniqueArray(
        fc
          .tuple(keys, fc.option(values), fc.option(fc.nat(9)), depth === 0 ? fc.constant([]) : level(depth - 1))
          .map(([key, value, own, below]) =>
            node(value === null ? key : `${key}=${value}`, own === null ? undefined : limit(own), ...below),
          ),
        { selector: ({ key, value }) => `${key}=${value}`, maxLength: 4 },
      );
    const entries = fc.array(fc.record({ key: keys, value: values }), { maxLength: 4 });
    fc.assert(
      fc.property(level(3), entries, (tree, asked) => {
        const found = compileRules([domain('d', ...tree)]).match('d', asked);
        assert.equal(found?.rule.currentLimit.requestsPerUnit, search(tree, asked)?.requestsPerUnit);
      }),
    );
  });
});

/** The rules once more, in the shortest way there is. */
function search(level: readonly LimitDescriptor[], [first, ...rest]: readonly Entry[]): LimitDescriptor['limit'] {
  const ofKey = level.filter(({ key }) => key === first?.key);
  const found = ofKey.find(({ value }) => value === first?.value) ?? ofKey.find(({ value }) => value === undefined);
  return rest.length === 0 ? found?.limit : search(found?.descriptors ?? [], rest);
}

describe('counter keys of rules', () => {
  const keyOf = (entries: readonly Entry[], of = 'd', using = anything) => using.match(of, entries)?.counterKey;
  const texts = fc.string({ unit: fc.constantFrom('a', '_', ':', '1', '|'), minLength: 0, maxLength: 4 });
  const keys = ['a', 'a_b', 'b', '_'];
  const tree = (depth: number): LimitDescriptor[] =>
    depth === 0 ? [] : keys.map((key) => node(key, limit(1), ...tree(depth - 1)));
  const anything = compileRules([domain('d', ...tree(3)), domain('d:', ...tree(3))]);

  it('are shared by no two descriptors', () => {
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

  it('are not shared where only the border between two texts differs', () => {
    const entry = (key: string, value: string): Entry => ({ key, value });
    const exact = (key: string, value: string) => ({ ...node('', limit(1)), key, value });
    const using = compileRules([
      domain('d', node('a=1', undefined, node('b=2', limit(1))), exact('a=1:1b', '2'), exact('a=1:11:b', '2')),
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

  it('are not shared by two domains', () => {
    const entries = [{ key: 'a', value: 'x' }];
    assert.notEqual(keyOf(entries, 'd'), keyOf(entries, 'd:'));
  });

  it('are not shared by an underscore in the key and one in the value', () => {
    assert.notEqual(keyOf([{ key: 'a_b', value: 'c' }]), keyOf([{ key: 'a', value: 'b_c' }]));
  });

  it('are the same after the limits were read again, unless the unit changed', () => {
    const [before, after, changed] = [limit(1), limit(5), limit(1, 'hour')].map((own) =>
      keyOf([{ key: 'k', value: 'v' }], 'd', compileRules([domain('d', node('k', own))])),
    );
    assert.equal(before, after);
    assert.notEqual(before, changed);
  });
});
