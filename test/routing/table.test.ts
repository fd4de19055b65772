/** The routing table against a plain scan: of the rules that match, the first in the order of trial. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createTable, type RequestAttributes, type Rule } from '#routing';
import { modelMatches } from './model.ts';
import { facts, factsOf, ruleList, ruleOf } from './rules.ts';

const rulesAt = (...prefixes: readonly string[]) => prefixes.map((prefix) => ruleOf({ prefix, name: prefix }));

function matched(rules: readonly Rule[], asked: Partial<RequestAttributes>): string | undefined {
  return createTable(rules).match(factsOf(asked))?.route.name;
}

describe('the routing table', () => {
  const rules = [
    ...rulesAt('/v1', '/v1/hotels', '/v1/hotels/bookings', '/v2'),
    ruleOf({ prefix: '/v2/exact', prefixMatch: 'exact', name: 'exact' }),
    ruleOf({ prefix: '/V1/Cars', caseSensitive: false, name: 'cars' }),
    ruleOf({ prefix: '/v1/[a-z]+/secret/?', prefixMatch: 'regex', name: 'secret' }),
  ];

  function check(path: string, expected: string | undefined) {
    it(`${expected === undefined ? 'has no route for' : `takes ${expected} for`} ${path}`, () =>
      assert.equal(matched(rules, { path }), expected));
  }

  check('/v1/hotels', '/v1/hotels');
  check('/v1/hotels/', '/v1/hotels');
  check('/v1/hotels/x', '/v1/hotels');
  check('/v1/hotels/bookings/1', '/v1/hotels/bookings');
  check('/v1/hotelsx', '/v1');
  check('/v1/Hotels', '/v1');
  check('/v1//hotels', '/v1');
  check('/v1', '/v1');
  check('/v3', undefined);
  check('/V1', undefined);
  check('/', undefined);
  check('/v2/exact', 'exact');
  check('/v2/exact/', '/v2');
  check('/v2/exact/x', '/v2');
  check('/v2/Exact', '/v2');
  check('/V1/caRS/x', 'cars');
  check('/v1/carsx', '/v1');
  check('/v1/hotels/secret', 'secret');
  check('/v1/hotels/secret/', 'secret');
  check('/v1/hotels/secret/x', '/v1/hotels');
  check('/x/v1/hotels/secret', undefined);

  it('sends everything to / when nothing else matches', () => {
    const withRoot = rulesAt('/v1', '/');
    assert.equal(matched(withRoot, { path: '/' }), '/');
    assert.equal(matched(withRoot, { path: '/other' }), '/');
    assert.equal(matched(withRoot, { path: '/v1/x' }), '/v1');
  });

  it('goes on to a shorter prefix when a condition of the longer one fails, and says 404 rather than 405', () => {
    const post = ruleOf({ name: 'post', method: { kind: 'exact', value: 'POST' } });
    assert.equal(matched([post, ...rulesAt('/v1')], { method: 'GET' }), '/v1');
    assert.equal(matched([post], { method: 'GET' }), undefined);
    assert.equal(matched([post], { method: 'POST' }), 'post');
  });

  it('lets a precedence lift a short prefix over a long one, and drop a long one', () => {
    const lifted = ruleOf({ prefix: '/', name: 'lifted', precedence: 1, headers: [canary] });
    assert.equal(matched([lifted, ...rulesAt('/v1')], { headers: { 'x-canary': '1' } }), 'lifted');
    assert.equal(matched([lifted, ...rulesAt('/v1')], {}), '/v1');
    assert.equal(matched([lifted, ...rulesAt('/v1', '/v1/hotels')], { headers: { 'x-canary': '1' } }), 'lifted');
    assert.equal(matched([ruleOf({ name: 'low', precedence: -1 }), ...rulesAt('/v1')], {}), '/v1');
  });

  it('gives a request to the mapping of its host', () => {
    const hosts = Array.from({ length: 50 }, (_, index) =>
      ruleOf({ prefix: '/', name: `m${index}`, host: { kind: 'exact', value: `t${index}.example` } }),
    );
    const withAny = [...hosts, ...rulesAt('/')];
    assert.equal(matched(withAny, { host: 't7.example' }), 'm7');
    assert.equal(matched(withAny, { host: 't7.example.evil' }), '/');
    assert.equal(matched(hosts, { host: '' }), undefined);
  });

  it('refuses a pattern that does not compile when it is made, with what is wrong and a remedy', () => {
    const regex = { kind: 'regex' as const, pattern: '(' };
    const faulty: readonly Partial<Rule>[] = [
      { prefix: '(', prefixMatch: 'regex' },
      { host: regex },
      { method: regex },
      { headers: [{ name: 'a', match: regex }] },
      { queryParameters: [{ name: 'a', match: regex }] },
    ];
    for (const fields of faulty) assert.throws(() => createTable([ruleOf(fields)]), TypeError);
  });

  it('agrees with a plain scan in the order of trial', () => {
    fc.assert(
      fc.property(ruleList, facts, (list, asked) => {
        const table = createTable(list);
        const expected = table.routes.find((rule) => modelMatches(rule, asked));
        assert.equal(table.match(asked, () => 0)?.route, expected);
      }),
      { numRuns: 1000 },
    );
  });

  it('lets the longest prefix win where no rule asks for more than a path', () => {
    const segment = fc.constantFrom('v1', 'v2', 'hotels', 'hotelsx', 'Hotels', '%2F', '__proto__');
    const segments = fc.array(segment, { maxLength: 5 }).map((parts) => `/${parts.join('/')}`);
    fc.assert(
      fc.property(
        fc.uniqueArray(segments, { maxLength: 12 }),
        segments,
        fc.constantFrom('', '/', '//'),
        (all, at, end) => {
          const path = at + end;
          const longest = all
            .filter((prefix) => prefix === '/' || path === prefix || path.startsWith(`${prefix}/`))
            .sort((a, b) => b.length - a.length)[0];
          assert.equal(matched(rulesAt(...all), { path }), longest);
        },
      ),
    );
  });
});

const canary = { name: 'x-canary', match: { kind: 'present' as const } };
