/** Routes of the Gateway API: their own order among the mappings of a table, and which of them share requests. */
import assert from 'node:assert/strict';
import { describeConditions, type RequestAttributes, type Rule } from '#routing';
import { gatewayRouteOf } from '../support/edge.ts';
import { attributesOf, ruleOf, tableOf } from './rules.ts';

const exact = (value: string) => ({ kind: 'exact' as const, value });
const suffix = (value: string) => ({ kind: 'suffix' as const, value });

/** A rule of a route that is as specific as any other, unless the fields say more. */
function routeOf(
  name: string,
  { place = `shop/${name} 0001 0001`, createdAtS = 1000, ...fields }: RouteFields = {},
): Rule {
  return ruleOf({ name, prefix: '/', ...fields, gatewayRoute: gatewayRouteOf({ place, createdAtS }) });
}

type RouteFields = Partial<Rule> & { readonly place?: string; readonly createdAtS?: number };

const matched = (rules: readonly Rule[], request: Partial<RequestAttributes>, random = 0) =>
  tableOf(rules).match(attributesOf(request), () => random)?.route.name;

describe('the order of routes of the Gateway API', () => {
  /** `first` is tried before `second`, for the reason that an explanation gives, whatever the order of the records. */
  function check(title: string, first: Rule, second: Rule, reason: string, request: Partial<RequestAttributes> = {}) {
    it(title, () => {
      for (const rules of [
        [first, second],
        [second, first],
      ]) {
        const [one, other] = tableOf(rules).explain(attributesOf(request));
        assert.deepEqual([one?.route, one?.outcome], [first, 'matched']);
        assert.deepEqual([other?.outcome, other?.by, other?.reason], ['lost', 'order', reason]);
        assert.equal(matched(rules, request), first.name);
      }
    });
  }

  const [host, path] = ['a.b.example', '/v1/hotels/x'];
  check(
    'puts an exact host before a longer path',
    routeOf('host', { host: exact(host) }),
    routeOf('path', { prefix: '/v1/hotels' }),
    'it does not specify a host',
    { host, path },
  );
  check(
    'puts a longer wildcard before a shorter one with a longer path',
    routeOf('long', { host: suffix('.b.example') }),
    routeOf('short', { host: suffix('.example'), prefix: '/v1/hotels' }),
    'its host is less specific',
    { host, path },
  );
  check(
    'puts an exact path before a longer pattern',
    routeOf('exact', { prefix: path, prefixMatch: 'exact' }),
    routeOf('pattern', { prefix: '/v1/hotels/(?:x|y|z)', prefixMatch: 'regex' }),
    'its path is not exact',
    { path },
  );
  check(
    'puts a method before headers',
    routeOf('method', { method: exact('GET') }),
    routeOf('headers', { headers: [{ name: 'x-a', match: exact('1') }] }),
    'it does not specify a method',
    { headers: { 'x-a': '1' } },
  );
  check(
    'counts headers and query parameters, whether they are patterns or not',
    routeOf('more', {
      headers: [{ name: 'x-a', match: { kind: 'regex', pattern: '1' } }],
      queryParameters: [
        { name: 'a', match: exact('1') },
        { name: 'b', match: exact('1') },
      ],
    }),
    routeOf('fewer', {
      headers: [{ name: 'x-a', match: exact('1') }],
      queryParameters: [{ name: 'a', match: exact('1') }],
    }),
    'it requires fewer query parameters',
    { headers: { 'x-a': '1' }, search: '?a=1&b=1' },
  );
  check(
    'puts an older route first among those that are as specific',
    routeOf('z', { createdAtS: 999 }),
    routeOf('a'),
    'it is as specific as z, whose route is older',
  );
  check(
    'puts the route first whose namespace and name come first alphabetically',
    routeOf('z', { place: 'shop/a 0009 0001' }),
    routeOf('a', { place: 'shop/a-b 0001 0001' }),
    'it is as specific as z, which comes first alphabetically',
  );
  check(
    'puts an earlier rule of a route first, whatever the names and matches',
    routeOf('z', { place: 'shop/a 0001 0002', headers: [{ name: 'x-z', match: exact('1') }] }),
    routeOf('a', { place: 'shop/a 0002 0001', headers: [{ name: 'x-a', match: exact('1') }] }),
    'it is as specific as an earlier match of its route',
    { headers: { 'x-a': '1', 'x-z': '1' } },
  );
  check(
    'puts a record before a route that is as specific',
    ruleOf({ name: 'z', prefix: '/' }),
    routeOf('a'),
    'it is as specific as z, and routes of the Gateway API come last',
  );
  check(
    'puts a route with a host before a record with a longer path',
    routeOf('route', { host: suffix('.example') }),
    ruleOf({ name: 'record', prefix: '/v1/hotels' }),
    'route is a route of the Gateway API with a host, and those come first',
    { host, path },
  );
  check(
    'puts a record with a longer path before a route without a host',
    ruleOf({ name: 'record', prefix: '/v1/hotels' }),
    routeOf('route'),
    'its prefix / is shorter than /v1/hotels',
    { path },
  );
});

describe('routes of the Gateway API with the same match', () => {
  it('share requests by weight if they come from the same match of a route', () => {
    const rules = [routeOf('a', { place: 'shop/a', weight: 25 }), routeOf('b', { place: 'shop/a', weight: 75 })];
    assert.deepEqual(
      [0, 0.3].map((random) => matched(rules, {}, random)),
      ['a', 'b'],
    );
  });

  it('share none if they come from different ones, nor with a record', () => {
    const rules = [
      routeOf('a', { place: 'shop/a 0001 0001', weight: 50 }),
      routeOf('b', { place: 'shop/a 0002 0001', weight: 50 }),
      ruleOf({ name: 'record', prefix: '/', host: exact('other.example'), weight: 50 }),
    ];
    for (const random of [0, 0.9]) assert.equal(matched(rules, {}, random), 'a');
  });

  it('have copies sent to their own shadow only', () => {
    const rules = [
      routeOf('a', { place: 'shop/a 0001 0001' }),
      routeOf('copy', { place: 'shop/b 0001 0001', shadow: true }),
      routeOf('b', { place: 'shop/b 0001 0001', method: exact('POST') }),
    ];
    assert.equal(tableOf(rules).match(attributesOf())?.shadow, undefined);
  });
});

describe('a route of the Gateway API for one listener', () => {
  const only = (scheme: 'http' | 'https', place = `shop/${scheme}`) =>
    ruleOf({ name: scheme, prefix: '/', gatewayRoute: gatewayRouteOf({ scheme, place }) });

  it('gets the requests of its connections alone, and beside another one each its own', () => {
    for (const place of [undefined, 'shop/same'])
      for (const rules of [
        [only('http', place), only('https', place)],
        [only('https', place), only('http', place)],
      ])
        for (const listener of ['http', 'https'] as const) assert.equal(matched(rules, { listener }), listener);
    assert.equal(matched([only('https')], {}), undefined);
  });

  it('is explained by the protocol of the connection', () => {
    const [verdict] = tableOf([only('https')]).explain(attributesOf());
    assert.deepEqual(
      [verdict?.outcome, verdict?.by, verdict?.reason],
      ['lost', 'listener', 'the connection is http, not https'],
    );
    assert.deepEqual(describeConditions(only('https')), ['over https']);
  });
});

describe('a route of the Gateway API beside other listeners', () => {
  const otherHosts = ['admin.example', '*.eu.example'];
  const rules = [
    ruleOf({ name: 'a', prefix: '/', gatewayRoute: gatewayRouteOf({ otherHosts }) }),
    ruleOf({ name: 'b', prefix: '/', host: { kind: 'exact', value: 'b.example' }, gatewayRoute: gatewayRouteOf() }),
  ];

  it('does not get the requests for their hosts', () => {
    const hosts = ['shop.example', 'admin.example', 'a.eu.example', 'b.a.eu.example', 'eu.example', 'b.example', ''];
    const found = hosts.map((host) => matched(rules, { host }));
    assert.deepEqual(found, ['a', undefined, undefined, undefined, 'a', 'b', 'a']);
  });

  it('is explained by the host', () => {
    const [rule] = rules;
    assert.ok(rule !== undefined);
    const [verdict] = tableOf([rule]).explain(attributesOf({ host: 'admin.example' }));
    assert.deepEqual(
      [verdict?.outcome, verdict?.by, verdict?.reason],
      ['lost', 'host', 'the host admin.example belongs to another listener of the Gateway'],
    );
    assert.deepEqual(describeConditions(rule), ['not host admin.example and 1 more']);
  });
});

it('an exact path of a route of the Gateway API can end with a slash', () => {
  const rules = [
    routeOf('slash', { prefix: '/a/', prefixMatch: 'exact' }),
    routeOf('plain', { prefix: '/a', prefixMatch: 'exact' }),
    routeOf('below', { prefix: '/a' }),
  ];
  const found = ['/a/', '/a', '/a/b', '/a//'].map((path) => matched(rules, { path }));
  assert.deepEqual(found, ['slash', 'plain', 'below', 'below']);
});
