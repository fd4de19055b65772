/** Explanations of routing: they have a reason for every rule, and they agree with the table. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Mapping } from '#config';
import { describeConditions, listRoutes, type RequestAttributes, type Rule } from '#routing';
import { mappingOf } from '../support/edge.ts';
import { anyAttributes, attributesOf, ruleList, ruleOf, tableOf } from './rules.ts';

const exact = (value: string) => ({ kind: 'exact' as const, value });
const regex = (pattern: string) => ({ kind: 'regex' as const, pattern });
const present = { kind: 'present' as const };
const one = (name: string, match: Rule['headers'][number]['match']) => [{ name, match }];

/** Returns `name outcome: reason` for each route, in matching order. */
function verdictsOf(rules: readonly Rule[], request: Partial<RequestAttributes> = {}): string[] {
  return tableOf(rules)
    .explain(attributesOf(request))
    .map(({ route, outcome, reason }) => `${route.name} ${outcome}: ${reason}`);
}

describe('explaining why a rule does not match', () => {
  function check(fields: Partial<Rule>, request: Partial<RequestAttributes>, by: string, reason: string) {
    it(`reports: ${reason}`, () => {
      const [verdict] = tableOf([ruleOf(fields)]).explain(attributesOf(request));
      assert.deepEqual([verdict?.outcome, verdict?.by, verdict?.reason], ['lost', by, reason]);
    });
  }

  check({ prefix: '/v1' }, { path: '/v2/x' }, 'path', 'the path /v2/x is not under /v1');
  check({ prefix: '/v1', prefixMatch: 'exact' }, { path: '/v1/' }, 'path', 'the path /v1/ is not /v1');
  check({ prefix: '/v[12]', prefixMatch: 'regex' }, { path: '/v3' }, 'path', 'the path /v3 does not match /v[12]');
  check({ method: exact('GET') }, { method: 'POST' }, 'method', 'the method is POST, not GET');
  check({ method: regex('GET|HEAD') }, { method: 'PUT' }, 'method', 'the method is PUT, which does not match GET|HEAD');
  check({ host: exact('a.example') }, { host: 'b.example' }, 'host', 'the host is b.example, not a.example');
  check({ host: { kind: 'suffix', value: '.b' } }, { host: '.b' }, 'host', 'the host is .b, not *.b');
  check({ host: { kind: 'prefix', value: 'a.' } }, { host: 'b' }, 'host', 'the host is b, not a.*');
  check({ host: regex('a|b') }, { host: '' }, 'host', 'the host is unknown, which does not match a|b');
  check({ headers: one('x-a', present) }, {}, 'header', 'the header x-a is missing');
  check(
    { headers: one('x-a', exact('1')) },
    { headers: { 'x-a': '2' } },
    'header',
    'the header x-a has a different value',
  );
  check(
    { headers: one('x-api-key', exact('sesame')) },
    { headers: { 'x-api-key': 'guess' } },
    'header',
    'the header x-api-key has a different value',
  );
  check(
    { queryParameters: one('q', exact('1')) },
    { search: '?q=2&q=1' },
    'query',
    'the query parameter q has a different value',
  );
  check(
    { queryParameters: one('q', regex('[0-9]')) },
    { search: '?q=a+b' },
    'query',
    'the query parameter q has a different value',
  );
});

describe('explaining why a matching rule loses', () => {
  function check(
    winner: Partial<Rule>,
    loser: Partial<Rule>,
    reason: string,
    request: Partial<RequestAttributes> = {},
  ) {
    it(`reports: ${reason}`, () =>
      assert.deepEqual(verdictsOf([ruleOf({ ...loser, name: 'l' }), ruleOf({ ...winner, name: 'w' })], request), [
        'w matched: it is the first match',
        `l lost: ${reason}`,
      ]));
  }

  check({ prefix: '/', precedence: 5 }, {}, 'its precedence is 0, not 5');
  check({}, { prefix: '/v1' }, 'its prefix /v1 is shorter than /v1/hotels');
  check({}, { internal: true }, 'mappings take precedence over built-in routes');
  check({ prefixMatch: 'exact' }, {}, 'its prefix is not exact');
  check({}, { prefix: '/v1/.*', prefixMatch: 'regex' }, 'its prefix /v1/.* is shorter than /v1/hotels/');
  check({}, { prefix: '/v1/.{1,20}', prefixMatch: 'regex' }, 'its prefix is a regular expression');
  check({ prefix: '/v1/.{1,20}', prefixMatch: 'regex', method: exact('GET') }, {}, 'it does not specify a method');
  check({}, { caseSensitive: false }, 'its prefix is not case-sensitive');
  check({ host: exact('gw.example') }, {}, 'it does not specify a host');
  check({ host: exact('gw.example') }, { host: regex('.*') }, 'its host is less specific');
  check(
    { host: { kind: 'suffix', value: '.z.example' } },
    { host: { kind: 'suffix', value: '.example' } },
    'its host is less specific',
    { host: 'gw.z.example' },
  );
  check({ method: exact('GET') }, {}, 'it does not specify a method');
  check({ method: exact('GET') }, { method: regex('.*') }, 'its method is less specific');
  const request = { headers: { 'x-a': '1' }, search: '?q=1' };
  check({ headers: one('x-a', present) }, {}, 'it requires fewer headers', request);
  check(
    { headers: one('x-a', exact('1')) },
    { headers: one('x-a', present) },
    'its headers are less specific',
    request,
  );
  check({ queryParameters: one('q', present) }, {}, 'it requires fewer query parameters', request);
  check(
    { queryParameters: one('q', exact('1')) },
    { queryParameters: one('q', present) },
    'its query parameters are less specific',
    request,
  );
  check(
    { headers: one('x-a', present) },
    { headers: one('x-b', present) },
    'it is as specific as w, which comes first alphabetically',
    { headers: { 'x-a': '1', 'x-b': '1' } },
  );
});

describe('explaining how mappings with the same match share requests', () => {
  const named = (name: string, fields: Partial<Rule> = {}) => ruleOf({ name, ...fields });

  it('reports the weight of each mapping', () => {
    assert.deepEqual(verdictsOf([named('a', { weight: 20 }), named('b'), named('c', { weight: 0 })]), [
      'a matched: weight 20 of 100',
      'b matched: weight 80 of 100',
      'c lost: weight 0 of 100',
    ]);
    assert.deepEqual(verdictsOf([named('a', { weight: 1 }), named('b', { weight: 2 })]), [
      'a matched: weight 33.33 of 100',
      'b matched: weight 66.67 of 100',
    ]);
  });

  it('names the mapping that wins when none has a weight', () => {
    assert.deepEqual(verdictsOf([named('a'), named('b')]), [
      'a matched: it is the first match',
      'b lost: a has the same match, and neither has a weight',
    ]);
  });

  it('describes shadows', () => {
    const shadow = { shadow: true };
    assert.deepEqual(verdictsOf([named('a'), named('s', { ...shadow, weight: 5 }), named('t', shadow)]), [
      'a matched: it is the first match',
      's shadow: it receives copies of 5 of 100 requests',
      't lost: s is already the shadow of this match',
    ]);
    assert.deepEqual(verdictsOf([named('s', shadow), named('u', { prefix: '/v1' })]), [
      's lost: it is a shadow, and no mapping has the same match',
      'u matched: it is the first match',
    ]);
  });
});

describe('an explanation', () => {
  it('has a verdict for each route in matching order, and the first `matched` is the route of the request', () => {
    fc.assert(
      fc.property(ruleList, anyAttributes, (rules, request) => {
        const table = tableOf(rules);
        const verdicts = table.explain(request);
        assert.deepEqual(
          verdicts.map(({ route }) => route),
          table.routes,
        );
        const first = verdicts.find(({ outcome }) => outcome === 'matched');
        assert.equal(first?.route, table.match(request, () => 0)?.route);
        for (const { reason } of verdicts) assert.match(reason, /^[^\n]+[^.]$/);
      }),
      { numRuns: 200 },
    );
  });

  it('reports `matched` for every route that can receive requests, and `shadow` for the one that receives copies', () => {
    const weight = fc.option(fc.integer({ min: 0, max: 50 }), { nil: undefined });
    const group = fc.array(weight, { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(group, fc.array(fc.boolean(), { minLength: 5, maxLength: 5 }), (weights, shadows) => {
        const rules = weights.map((weight, index) =>
          ruleOf({ name: `${index}`, weight: shadows[index] ? undefined : weight, shadow: shadows[index] ?? false }),
        );
        const table = tableOf(rules);
        const matches = Array.from({ length: 200 }, (_, step) => table.match(attributesOf(), () => step / 200));
        const routesWith = (outcome: string) =>
          new Set(
            table.explain(attributesOf()).flatMap((verdict) => (verdict.outcome === outcome ? [verdict.route] : [])),
          );
        assert.deepEqual(routesWith('matched'), new Set(matches.flatMap((match) => (match ? [match.route] : []))));
        assert.deepEqual(routesWith('shadow'), new Set(matches.flatMap((match) => match?.shadow ?? [])));
      }),
    );
  });
});

describe('the list of mappings', () => {
  const listed = (...mappings: readonly Mapping[]) =>
    listRoutes(mappings).map(({ mapping, conditions }) => [mapping.name, mapping.prefix, ...conditions].join('  '));

  it('has each mapping with its conditions, in matching order', () => {
    const list = listed(
      mappingOf({ name: 'all', prefix: '/' }),
      mappingOf(),
      mappingOf({ name: 'book', method: { kind: 'exact', value: 'POST' } }),
      mappingOf({ name: 'long', prefix: '/long' }),
    );
    assert.deepEqual(list, ['book  /v1/hotels  POST', 'hotel  /v1/hotels', 'long  /long', 'all  /']);
  });

  it('shows the share of each mapping that shares requests, even without a weight', () => {
    const list = listed(
      mappingOf(),
      mappingOf({ name: 'beta', weight: 20.5 }),
      mappingOf({ name: 'copy', shadow: true, weight: 5 }),
      mappingOf({ name: 'alone', prefix: '/alone' }),
    );
    assert.deepEqual(list, [
      'beta  /v1/hotels  20.5 %',
      'copy  /v1/hotels  5 %  shadow',
      'hotel  /v1/hotels  79.5 %',
      'alone  /alone',
    ]);
  });

  it('is empty without mappings', () => assert.deepEqual(listRoutes([]), []));

  function check(fields: Partial<Mapping>, ...expected: string[]) {
    it(`describes ${expected.join(' and ') || 'nothing that is the default'}`, () =>
      assert.deepEqual(describeConditions(mappingOf(fields)), expected));
  }

  check({});
  check({ prefixMatch: 'exact' }, 'exact');
  check({ prefixMatch: 'regex', prefix: '/v\\d+/.*' }, 'regex');
  check({ caseSensitive: false }, 'case-insensitive');
  check({ method: regex('GET|HEAD') }, '~ GET|HEAD');
  check({ host: exact('api.example') }, 'host api.example');
  check({ host: { kind: 'suffix', value: '.example' } }, 'host *.example');
  check({ host: { kind: 'prefix', value: 'api.' } }, 'host api.*');
  check({ host: regex('a+') }, 'host ~ a+');
  check({ headers: [...one('x-a', exact('1')), ...one('x-b', present)] }, 'x-a: …', 'x-b');
  check({ queryParameters: [...one('a', exact('1')), ...one('b', regex('[0-9]+'))] }, '?a=…', '?b ~ …');
  check({ precedence: -1, weight: 20 }, 'precedence -1', '20 %');
  check({ shadow: true, weight: 5 }, '5 %', 'shadow');

  it('includes the values of headers and query parameters, which describeConditions leaves out', () => {
    const mapping = mappingOf({
      headers: [...one('x-plan', exact('gold')), ...one('x-beta', regex('a+'))],
      queryParameters: one('v', exact('2')),
    });
    assert.deepEqual(listRoutes([mapping])[0]?.conditions, ['x-plan: gold', 'x-beta ~ a+', '?v=2']);
    assert.deepEqual(describeConditions(mapping), ['x-plan: …', 'x-beta ~ …', '?v=…']);
  });
});
