/** Why a request gets its route: the reasons in words, which always agree with the table. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Mapping } from '#config';
import { describeConditions, listRoutes, listVersions, type RequestAttributes, type Rule } from '#routing';
import { mappingOf } from '../support/edge.ts';
import { facts, factsOf, ruleList, ruleOf, tableOf } from './rules.ts';

const exact = (value: string) => ({ kind: 'exact' as const, value });
const regex = (pattern: string) => ({ kind: 'regex' as const, pattern });
const present = { kind: 'present' as const };
const one = (name: string, match: Rule['headers'][number]['match']) => [{ name, match }];

/** `name outcome reason` of each route, in the order of trial. */
function verdictsOf(rules: readonly Rule[], asked: Partial<RequestAttributes> = {}): string[] {
  return tableOf(rules)
    .explain(factsOf(asked))
    .map(({ route, outcome, reason }) => `${route.name} ${outcome}: ${reason}`);
}

describe('explaining why a rule does not match', () => {
  function check(fields: Partial<Rule>, asked: Partial<RequestAttributes>, by: string, reason: string) {
    it(`gives the reason: ${reason}`, () => {
      const [verdict] = tableOf([ruleOf(fields)]).explain(factsOf(asked));
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
  check({ headers: one('x-a', exact('1')) }, { headers: { 'x-a': '2' } }, 'header', 'the header x-a has another value');
  check(
    { headers: one('x-api-key', exact('sesame')) },
    { headers: { 'x-api-key': 'guess' } },
    'header',
    'the header x-api-key has another value',
  );
  check(
    { queryParameters: one('q', exact('1')) },
    { search: '?q=2&q=1' },
    'query',
    'the query parameter q has another value',
  );
  check(
    { queryParameters: one('q', regex('[0-9]')) },
    { search: '?q=a+b' },
    'query',
    'the query parameter q has another value',
  );
});

describe('explaining why a rule that matches loses', () => {
  function check(winner: Partial<Rule>, loser: Partial<Rule>, reason: string, asked: Partial<RequestAttributes> = {}) {
    it(`gives the reason: ${reason}`, () =>
      assert.deepEqual(verdictsOf([ruleOf({ ...loser, name: 'l' }), ruleOf({ ...winner, name: 'w' })], asked), [
        'w matched: it is the first that matches',
        `l lost: ${reason}`,
      ]));
  }

  check({ prefix: '/', precedence: 5 }, {}, 'its precedence is 0, not 5');
  check({}, { prefix: '/v1' }, 'its prefix /v1 is shorter than /v1/hotels');
  check({}, { internal: true }, 'a mapping goes before a route of the server');
  check({ prefixMatch: 'exact' }, {}, 'its prefix is not exact');
  check({ prefixMatch: 'regex' }, {}, 'its prefix is not for the whole path');
  check({}, { caseSensitive: false }, 'its prefix is not case-sensitive');
  check({ host: exact('gw.example') }, {}, 'it names no host');
  check({ host: exact('gw.example') }, { host: regex('.*') }, 'the host that it names is less exact');
  check(
    { host: { kind: 'suffix', value: '.z.example' } },
    { host: { kind: 'suffix', value: '.example' } },
    'the host that it names is less exact',
    { host: 'gw.z.example' },
  );
  check({ method: exact('GET') }, {}, 'it names no method');
  check({ method: exact('GET') }, { method: regex('.*') }, 'the method that it names is less exact');
  const asked = { headers: { 'x-a': '1' }, search: '?q=1' };
  check({ headers: one('x-a', present) }, {}, 'it asks for fewer headers', asked);
  check(
    { headers: one('x-a', exact('1')) },
    { headers: one('x-a', present) },
    'the headers that it asks for are less exact',
    asked,
  );
  check({ queryParameters: one('q', present) }, {}, 'it asks for fewer query parameters', asked);
  check(
    { queryParameters: one('q', exact('1')) },
    { queryParameters: one('q', present) },
    'the query parameters that it asks for are less exact',
    asked,
  );
  check(
    { headers: one('x-a', present) },
    { headers: one('x-b', present) },
    'it asks for as much as w, which the alphabet puts first',
    { headers: { 'x-a': '1', 'x-b': '1' } },
  );
});

describe('explaining how mappings of one match share', () => {
  const named = (name: string, fields: Partial<Rule> = {}) => ruleOf({ name, ...fields });

  it('gives the weight of each', () => {
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

  it('names the first of mappings that clash', () => {
    assert.deepEqual(verdictsOf([named('a'), named('b')]), [
      'a matched: it is the first that matches',
      'b lost: a has the same match, and neither of them a weight',
    ]);
  });

  it('describes shadows', () => {
    const shadow = { shadow: true };
    assert.deepEqual(verdictsOf([named('a'), named('s', { ...shadow, weight: 5 }), named('t', shadow)]), [
      'a matched: it is the first that matches',
      's shadow: a copy of 5 of 100 requests',
      't lost: s is the shadow of this match',
    ]);
    assert.deepEqual(verdictsOf([named('s', shadow), named('u', { prefix: '/v1' })]), [
      's lost: it is a shadow, and no mapping has the same match',
      'u matched: it is the first that matches',
    ]);
  });
});

describe('an explanation', () => {
  it('has a verdict for each route in the order of trial, and the first that matched is the one that is taken', () => {
    fc.assert(
      fc.property(ruleList, facts, (rules, asked) => {
        const table = tableOf(rules);
        const verdicts = table.explain(asked);
        assert.deepEqual(
          verdicts.map(({ route }) => route),
          table.routes,
        );
        const first = verdicts.find(({ outcome }) => outcome === 'matched');
        assert.equal(first?.route, table.match(asked, () => 0)?.route);
        for (const { reason } of verdicts) assert.match(reason, /^[^\n]+[^.]$/);
      }),
      { numRuns: 200 },
    );
  });

  it('has the outcome matched for all routes that can be taken, and shadow for the one that gets copies', () => {
    const weight = fc.option(fc.integer({ min: 0, max: 50 }), { nil: undefined });
    const group = fc.array(weight, { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(group, fc.array(fc.boolean(), { minLength: 5, maxLength: 5 }), (weights, shadows) => {
        const rules = weights.map((weight, index) =>
          ruleOf({ name: `${index}`, weight: shadows[index] ? undefined : weight, shadow: shadows[index] ?? false }),
        );
        const table = tableOf(rules);
        const matches = Array.from({ length: 200 }, (_, step) => table.match(factsOf(), () => step / 200));
        const saidOf = (outcome: string) =>
          new Set(table.explain(factsOf()).flatMap((verdict) => (verdict.outcome === outcome ? [verdict.route] : [])));
        assert.deepEqual(saidOf('matched'), new Set(matches.flatMap((match) => (match ? [match.route] : []))));
        assert.deepEqual(saidOf('shadow'), new Set(matches.flatMap((match) => match?.shadow ?? [])));
      }),
    );
  });
});

describe('the list of mappings', () => {
  const times = {
    upstreamTimeoutMs: 60_000,
    upstreamIdleTimeoutMs: 30_000,
    isLocal: (name: string) => name === 'hotel',
  };

  it('is in the order of trial, with the conditions of each mapping, its target, its time-outs and its source', () => {
    const source = { file: 'services/hotel.yaml', line: 9 };
    const lines = listRoutes(
      [
        mappingOf({ name: 'all', prefix: '/', source }),
        mappingOf({ source }),
        mappingOf({ name: 'book', method: { kind: 'exact', value: 'POST' }, service: 'booking:8080', source }),
        mappingOf({ name: 'long', prefix: '/long', service: 'http://far', timeoutMs: 0, idleTimeoutMs: 9, source }),
        mappingOf({ name: 'old', prefix: '/old', source, redirect: { host: undefined, path: undefined, status: 308 } }),
      ],
      times,
    );
    assert.deepEqual(lines, [
      '/v1/hotels  POST  ->  booking:8080  time-out 60000 ms, pauses 30000 ms  (Mapping book, services/hotel.yaml:9)',
      '/v1/hotels        ->  hotel  (Mapping hotel, services/hotel.yaml:9)',
      '/long             ->  http://far  time-out none, pauses 9 ms  (Mapping long, services/hotel.yaml:9)',
      '/old              ->  redirect (308)  (Mapping old, services/hotel.yaml:9)',
      '/                 ->  hotel  (Mapping all, services/hotel.yaml:9)',
    ]);
  });

  it('has the part of each mapping that shares its requests, also of one without a weight', () => {
    const lines = listRoutes(
      [
        mappingOf(),
        mappingOf({ name: 'beta', weight: 20.5 }),
        mappingOf({ name: 'copy', shadow: true, weight: 5 }),
        mappingOf({ name: 'alone', prefix: '/alone' }),
      ],
      times,
    );
    assert.deepEqual(
      lines.map((line) => line.split(/ +->/)[0]),
      ['/v1/hotels  20.5 %', '/v1/hotels  5 %  shadow', '/v1/hotels  79.5 %', '/alone'],
    );
  });

  it('is followed by the versions, with their times', () => {
    const version = {
      kind: 'Version',
      successor: undefined,
      info: undefined,
      source: { file: 'v.yaml', line: 3 },
    } as const;
    const times = { deprecatedAtMs: Date.UTC(2026, 5, 30), endsAtMs: Date.UTC(2027, 5, 30, 12) };
    assert.deepEqual(
      listVersions([
        { ...version, name: 'v1', prefix: '/v1', ...times },
        { ...version, name: 'v0', prefix: '/v0', ...times, deprecatedAtMs: undefined },
      ]),
      [
        '/v1  deprecated from 2026-06-30T00:00:00Z, 410 from 2027-06-30T12:00:00Z  (Version v1, v.yaml:3)',
        '/v0  410 from 2027-06-30T12:00:00Z  (Version v0, v.yaml:3)',
      ],
    );
  });

  it('is empty without mappings', () => assert.deepEqual(listRoutes([], times), []));

  function check(fields: Partial<Mapping>, ...expected: string[]) {
    it(`describes ${expected.join(' and ') || 'none of the defaults'}`, () =>
      assert.deepEqual(describeConditions(mappingOf(fields)), expected));
  }

  check({});
  check({ prefixMatch: 'exact' }, 'exact');
  check({ prefixMatch: 'regex', prefix: '/v\\d+/.*' }, 'regex');
  check({ caseSensitive: false }, 'in any case');
  check({ method: regex('GET|HEAD') }, '~ GET|HEAD');
  check({ host: exact('api.example') }, 'host api.example');
  check({ host: { kind: 'suffix', value: '.example' } }, 'host *.example');
  check({ host: { kind: 'prefix', value: 'api.' } }, 'host api.*');
  check({ host: regex('a+') }, 'host ~ a+');
  check({ headers: [...one('x-a', exact('1')), ...one('x-b', present)] }, 'x-a: …', 'x-b');
  check({ queryParameters: [...one('a', exact('1')), ...one('b', regex('[0-9]+'))] }, '?a=…', '?b ~ …');
  check({ precedence: -1, weight: 20 }, 'precedence -1', '20 %');
  check({ shadow: true, weight: 5 }, '5 %', 'shadow');

  it('has the values of headers and query parameters, which the list of conditions alone leaves out', () => {
    const mapping = mappingOf({
      headers: [...one('x-plan', exact('gold')), ...one('x-beta', regex('a+'))],
      queryParameters: one('v', exact('2')),
    });
    assert.match(listRoutes([mapping], times)[0] ?? '', /x-plan: gold {2}x-beta ~ a\+ {2}\?v=2/);
    assert.deepEqual(describeConditions(mapping), ['x-plan: …', 'x-beta ~ …', '?v=…']);
  });
});
