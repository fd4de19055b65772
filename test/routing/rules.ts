/** Generates rules, requests and rewrites from small, similar vocabularies, so that near misses are common. */
import fc from 'fast-check';
import { type HostMatch, mappingDefaults, type NamedMatch, type TextMatch } from '#config';
import { createTable, type RequestAttributes, type Rule, type Table } from '#routing';
import { gatewayRouteOf } from '../support/edge.ts';

export function ruleOf(fields: Partial<Rule> = {}): Rule {
  return { ...mappingDefaults, name: 'hotel', prefix: '/v1/hotels', ...fields };
}

export function tableOf<R extends Rule>(rules: readonly R[]): Table<R> {
  return createTable(rules);
}

export function attributesOf(fields: Partial<RequestAttributes> = {}): RequestAttributes {
  return {
    method: 'GET',
    path: '/v1/hotels',
    search: '',
    host: 'gw.example',
    headers: {},
    client: '127.0.0.1',
    listener: 'http',
    ...fields,
  };
}

const segment = fc.constantFrom('a', 'b', 'A', 'ab', '%2F', '__proto__');
const literalPrefix = fc.array(segment, { maxLength: 3 }).map((parts) => `/${parts.join('/')}`);
const patternPrefix = fc.constantFrom('/a/.*', '/[ab]', '/.*', '(?i)/a/b', '/a(/b)?');

const anyText = fc.constantFrom('1', '2', '', 'x y');
const textMatch: fc.Arbitrary<TextMatch> = fc.oneof(
  anyText.map((value) => ({ kind: 'exact' as const, value })),
  fc.constantFrom('[12]', '1?', '.*').map((pattern) => ({ kind: 'regex' as const, pattern })),
  fc.constant({ kind: 'present' as const }),
);
const methodMatch: fc.Arbitrary<TextMatch> = fc.oneof(
  fc.constantFrom('GET', 'POST').map((value) => ({ kind: 'exact' as const, value })),
  fc.constantFrom('GET|HEAD', 'P.*').map((pattern) => ({ kind: 'regex' as const, pattern })),
);
const hostMatch: fc.Arbitrary<HostMatch> = fc.oneof(
  fc.constantFrom('a.example', 'b.example').map((value) => ({ kind: 'exact' as const, value })),
  fc.constantFrom('.example', 'a.example').map((value) => ({ kind: 'suffix' as const, value })),
  fc.constantFrom('a.', 'a.ex').map((value) => ({ kind: 'prefix' as const, value })),
  fc.constantFrom('[ab]\\.example', '.*').map((pattern) => ({ kind: 'regex' as const, pattern })),
);
const named = (names: readonly string[]): fc.Arbitrary<readonly NamedMatch[]> =>
  fc.uniqueArray(fc.record({ name: fc.constantFrom(...names), match: textMatch }), {
    maxLength: 2,
    selector: ({ name }) => name,
  });

const seldom = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 });

const place = fc.oneof(
  { weight: 5, arbitrary: fc.record({ prefix: literalPrefix, prefixMatch: fc.constantFrom('segments', 'exact') }) },
  { weight: 1, arbitrary: fc.record({ prefix: patternPrefix, prefixMatch: fc.constant('regex' as const) }) },
);

const gatewayRoute = fc
  .record({
    scheme: fc.constantFrom(undefined, undefined, 'http' as const, 'https' as const),
    createdAtS: fc.constantFrom(1000, 2000),
    place: fc.constantFrom('a/b 0001 0001', 'a/b 0002 0001', 'a/c 0001 0001'),
  })
  .map((fields) => gatewayRouteOf(fields));

const rule: fc.Arbitrary<Rule> = fc
  .tuple(
    place,
    fc.record({
      name: fc.constantFrom('p', 'q', 'r', 's', 't', 'u', 'v', 'w'),
      caseSensitive: fc.boolean(),
      precedence: fc.constantFrom(0, 0, 0, 1, -1),
      host: seldom(hostMatch),
      method: seldom(methodMatch),
      headers: named(['x-a', 'x-b']),
      queryParameters: named(['q', 'x y']),
      internal: fc.constantFrom(false, false, true),
      gatewayRoute: seldom(gatewayRoute),
    }),
  )
  .map(([where, what]) => ruleOf({ ...where, ...what } as Partial<Rule>));

/** Rules with unique names, as in a configuration. */
export const ruleList = fc.uniqueArray(rule, { maxLength: 8, selector: ({ name }) => name });

const query = fc
  .array(fc.tuple(fc.constantFrom('q', 'x+y', 'x%20y', '%71', 'other'), fc.constantFrom('1', '2', '', 'x+y', '%31')), {
    maxLength: 3,
  })
  .map((pairs) => (pairs.length === 0 ? '' : `?${pairs.map(([name, value]) => `${name}=${value}`).join('&')}`));

export const anyAttributes: fc.Arbitrary<RequestAttributes> = fc.record({
  method: fc.constantFrom('GET', 'POST', 'HEAD'),
  path: fc
    .tuple(fc.array(segment, { maxLength: 4 }), fc.constantFrom('', '', '/', '//a'))
    .map(([parts, end]) => `/${parts.join('/')}${end}`),
  search: query,
  host: fc.constantFrom('a.example', 'a.example', 'b.example', '.example', 'other', ''),
  headers: fc.record({ 'x-a': anyText, 'x-b': anyText }, { requiredKeys: [] }),
  client: fc.constant('127.0.0.1'),
  listener: fc.constantFrom('http', 'https'),
});

const pathSegment = fc.constantFrom('v1', 'hotels', 'bookings', '1', 'a', 'b', '%2F', 'x.y');
const prefix = fc.array(pathSegment, { minLength: 1, maxLength: 3 }).map((parts) => `/${parts.join('/')}`);
export const anyPrefix = fc.oneof(fc.constant('/'), prefix);
export const rewrite = fc.oneof(fc.constant('/'), fc.constant(''), prefix);
export const rest = fc
  .tuple(fc.array(pathSegment, { maxLength: 3 }), fc.constantFrom('', '/'))
  .map(([parts, end]) => (parts.length === 0 ? end : `/${parts.join('/')}${end}`));

export const joinPrefix = (before: string, after: string) => (before === '/' ? after || '/' : before + after);
