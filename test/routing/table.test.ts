/** The routing table: it tries rules in the documented order and returns the first match. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { TextMatch } from '#config';
import type { RequestAttributes, Rule } from '#routing';
import { modelLead, modelMatches } from './model.ts';
import { anyAttributes, attributesOf, ruleList, ruleOf, tableOf } from './rules.ts';

const rulesAt = (...prefixes: readonly string[]) => prefixes.map((prefix) => ruleOf({ prefix, name: prefix }));

function matched(rules: readonly Rule[], request: Partial<RequestAttributes>): string | undefined {
  return tableOf(rules).match(attributesOf(request))?.route.name;
}

describe('the routing table', () => {
  const rules = [
    ...rulesAt('/v1', '/v1/hotels', '/v1/hotels/bookings', '/v2'),
    ruleOf({ prefix: '/v2/exact', prefixMatch: 'exact', name: 'exact' }),
    ruleOf({ prefix: '/V1/Cars', caseSensitive: false, name: 'cars' }),
    ruleOf({ prefix: '/v1/[a-z]+/secret/?', prefixMatch: 'regex', name: 'secret' }),
  ];

  function check(path: string, expected: string | undefined) {
    it(`finds ${expected ?? 'no route'} for ${path}`, () => assert.equal(matched(rules, { path }), expected));
  }

  check('/v1/hotels/', '/v1/hotels');
  check('/v1/hotels/bookings/1', '/v1/hotels/bookings');
  check('/v1/hotelsx', '/v1');
  check('/v1/Hotels', '/v1');
  check('/v1//hotels', '/v1');
  check('/V1', undefined);
  check('/v2/exact', 'exact');
  check('/v2/exact/', '/v2');
  check('/V1/caRS/x', 'cars');
  check('/v1/hotels/secret', 'secret');
  check('/v1/hotels/secret/', 'secret');
  check('/v1/hotels/secret/x', '/v1/hotels');

  it('finds the mapping with the host of the request', () => {
    const hosts = Array.from({ length: 50 }, (_, index) =>
      ruleOf({ prefix: '/', name: `m${index}`, host: { kind: 'exact', value: `t${index}.example` } }),
    );
    const withAny = [...hosts, ...rulesAt('/')];
    assert.equal(matched(withAny, { host: 't7.example' }), 'm7');
    assert.equal(matched(withAny, { host: 't7.example.evil' }), '/');
    assert.equal(matched(hosts, { host: '' }), undefined);
  });

  it('throws at creation for a pattern that does not compile', () => {
    const regex = { kind: 'regex' as const, pattern: '(' };
    const faulty: readonly Partial<Rule>[] = [
      { prefix: '(', prefixMatch: 'regex' },
      { host: regex },
      { method: regex },
      { headers: [{ name: 'a', match: regex }] },
      { queryParameters: [{ name: 'a', match: regex }] },
    ];
    for (const fields of faulty) assert.throws(() => tableOf([ruleOf(fields)]), TypeError);
  });

  it('agrees with a linear scan in matching order', () => {
    fc.assert(
      fc.property(ruleList, anyAttributes, (list, request) => {
        const table = tableOf(list);
        const expected = table.routes.find((rule) => modelMatches(rule, request));
        assert.equal(table.match(request, () => 0)?.route, expected);
      }),
      { numRuns: 500 },
    );
  });
});

describe('the matching order', () => {
  it('puts a shorter prefix with a higher precedence first, even beyond a prefix that loses to both', () => {
    const [root, middle, deep] = [
      ruleOf({ name: 'root', prefix: '/', precedence: 2 }),
      ruleOf({ name: 'middle', prefix: '/a' }),
      ruleOf({ name: 'deep', prefix: '/a/b', precedence: 1 }),
    ];
    const { match } = tableOf([root, middle, deep]);
    assert.equal(match(attributesOf({ path: '/a/b/c' }))?.route, root);
  });

  it('skips a prefix whose only match is worse than the one that was found, even if it has a better one', () => {
    const [unmet, worse, best] = [
      ruleOf({ name: 'unmet', prefix: '/a', precedence: 2, method: { kind: 'exact', value: 'POST' } }),
      ruleOf({ name: 'worse', prefix: '/a' }),
      ruleOf({ name: 'best', prefix: '/a/b', precedence: 1 }),
    ];
    const { match } = tableOf([unmet, worse, best]);
    assert.equal(match(attributesOf({ path: '/a/b/c' }))?.route, best);
  });

  const asks = (match: TextMatch) => ({ headers: [{ name: 'x-a', match }] });
  for (const [what, first, second] of [
    ['a pattern of a header before its presence', asks({ kind: 'regex', pattern: '1' }), asks({ kind: 'present' })],
    [
      'a prefix in any case before a pattern of its length',
      { prefix: '/abc', caseSensitive: false },
      { prefix: '/ab.*', prefixMatch: 'regex' },
    ],
    ['a pattern before the prefix /', { prefix: '.*', prefixMatch: 'regex' }, { prefix: '/' }],
  ] as const satisfies readonly (readonly [string, Partial<Rule>, Partial<Rule>])[])
    it(`puts ${what}`, () => {
      const routes = [ruleOf({ ...first, name: 'z' }), ruleOf({ ...second, name: 'a' })];
      assert.deepEqual(tableOf(routes.toReversed()).routes, routes);
    });

  it('is by name among mappings with the same match', () => {
    const named = ['a', 'b', 'c'].map((name) => ruleOf({ name, weight: 30 }));
    assert.deepEqual(tableOf(named.toReversed()).routes, named);
  });

  it('follows the table in config/README.md, whatever the order of the rules', () => {
    const shuffled = ruleList.chain((rules) =>
      fc.tuple(fc.constant(rules), fc.shuffledSubarray(rules, { minLength: rules.length })),
    );
    fc.assert(
      fc.property(shuffled, ([rules, others]) => {
        const { routes } = tableOf(rules);
        assert.deepEqual(routes, tableOf(others).routes);
        for (const [index, later] of routes.entries())
          for (const earlier of routes.slice(0, index)) assert.ok(modelLead(earlier, later) >= 0);
      }),
      { numRuns: 500 },
    );
  });
});
