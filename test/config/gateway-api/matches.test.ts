/** Which requests the matches of a rule take, and which they leave. */
import assert from 'node:assert/strict';
import { createTable, type RequestAttributes } from '#routing';
import { attributesOf } from '../../routing/rules.ts';
import { grpcRoute, httpRoute } from '../../support/kubernetes/gateway-objects.ts';
import { mappingsOf } from './cluster.ts';

type Request = Partial<RequestAttributes>;

/** The rule with these matches takes the `taken` requests, and none of the `left`. */
function check(
  title: string,
  matches: readonly object[],
  {
    taken,
    left,
    routeOf = httpRoute,
  }: { taken: readonly Request[]; left: readonly Request[]; routeOf?: typeof httpRoute },
) {
  it(title, async () => {
    const table = createTable(await mappingsOf([{ matches }], { routeOf }));
    const isTaken = (request: Request) =>
      table.match(attributesOf({ host: 'shop.example', ...request }), () => 0) !== undefined;
    assert.deepEqual([taken.filter((request) => !isTaken(request)), left.filter(isTaken)], [[], []]);
  });
}

const paths = (...all: readonly string[]): readonly Request[] => all.map((path) => ({ path }));

describe('the path of an HTTPRoute', () => {
  const path = (type: string, value: string) => [{ path: { type, value } }];

  check('is a prefix of whole segments', path('PathPrefix', '/v1/orders'), {
    taken: paths('/v1/orders', '/v1/orders/', '/v1/orders/7'),
    left: paths('/', '/v1', '/v1/orders7', '/v2/orders', '/V1/orders'),
  });
  check('is the same prefix with a slash at its end', path('PathPrefix', '/v1/orders/'), {
    taken: paths('/v1/orders', '/v1/orders/', '/v1/orders/7'),
    left: paths('/v1', '/v1/orders7'),
  });
  check('is a whole path', path('Exact', '/v1/orders'), {
    taken: paths('/v1/orders'),
    left: paths('/v1/orders/', '/v1/orders/7', '/v1'),
  });
  check('is a whole path with a slash at its end', path('Exact', '/v1/orders/'), {
    taken: paths('/v1/orders/'),
    left: paths('/v1/orders', '/v1/orders/7'),
  });
  check('is the root', path('Exact', '/'), { taken: paths('/'), left: paths('/v1') });
  check('is a regular expression for the whole path', path('RegularExpression', '/v[12]/orders'), {
    taken: paths('/v1/orders', '/v2/orders'),
    left: paths('/v3/orders', '/v1/orders/7', '/x/v1/orders'),
  });
  check('is any without matches', [], { taken: paths('/', '/v1/orders'), left: [{ host: 'other.example' }] });
  check('is any in a match without a path', [{ method: 'GET' }], {
    taken: paths('/', '/v1'),
    left: [{ method: 'PUT' }],
  });
  check('is one of several', [...path('Exact', '/a'), ...path('Exact', '/b')], {
    taken: paths('/a', '/b'),
    left: paths('/c'),
  });
});

describe('the other conditions of an HTTPRoute', () => {
  check('hold together', [{ method: 'POST', headers: [{ name: 'X-A', value: '1' }], path: { value: '/v1' } }], {
    taken: [{ method: 'POST', headers: { 'x-a': '1' }, path: '/v1/orders' }],
    left: [
      { method: 'GET', headers: { 'x-a': '1' }, path: '/v1' },
      { method: 'POST', path: '/v1' },
      { method: 'POST', headers: { 'x-a': '1' }, path: '/v2' },
    ],
  });
  check(
    'take the first of two for a header, whatever its letters',
    [
      {
        headers: [
          { name: 'X-A', value: '1' },
          { name: 'x-a', value: '2', type: 'RegularExpression' },
        ],
      },
    ],
    { taken: [{ headers: { 'x-a': '1' } }], left: [{ headers: { 'x-a': '2' } }, {}] },
  );
  check('may be regular expressions', [{ headers: [{ name: 'x-a', value: '[12]', type: 'RegularExpression' }] }], {
    taken: [{ headers: { 'x-a': '1' } }, { headers: { 'x-a': '2' } }],
    left: [{ headers: { 'x-a': '3' } }, { headers: { 'x-a': '12' } }],
  });
  check(
    'take the first of two for a query parameter, and of two that a request has',
    [
      {
        queryParams: [
          { name: 'a', value: '1' },
          { name: 'a', value: '2' },
          { name: 'A', value: '.', type: 'RegularExpression' },
        ],
      },
    ],
    {
      taken: [{ search: '?a=1&A=x' }, { search: '?a=1&A=x&a=2' }],
      left: [{ search: '?a=2&A=x' }, { search: '?a=2&a=1&A=x' }, { search: '?a=1' }],
    },
  );
});

describe('the method of a GRPCRoute', () => {
  const method = (fields: object) => [{ method: fields }];
  const [list, get, other] = ['/shop.Orders/List', '/shop.Orders/Get', '/shop.Cars/List'];

  check('is a service and a method', method({ service: 'shop.Orders', method: 'List' }), {
    taken: paths(list),
    left: paths(get, other, `${list}/x`),
    routeOf: grpcRoute,
  });
  check('is any of a service', method({ service: 'shop.Orders' }), {
    taken: paths(list, get),
    left: paths(other, '/shop.OrdersOld/List'),
    routeOf: grpcRoute,
  });
  check('is one of any service', method({ method: 'List' }), {
    taken: paths(list, other),
    left: paths(get),
    routeOf: grpcRoute,
  });
  check(
    'is two regular expressions',
    method({ type: 'RegularExpression', service: 'shop\\.Orders|shop\\.Cars', method: 'L.*|X' }),
    { taken: paths(list, other), left: paths(get, '/shopXCars/List', '/shop.Orders'), routeOf: grpcRoute },
  );
  check(
    'is any method where only the service is a regular expression',
    method({ type: 'RegularExpression', service: '.*s' }),
    {
      taken: paths(list, get),
      left: paths('/shop.Order/Get'),
      routeOf: grpcRoute,
    },
  );
  check('has conditions on metadata beside it', [{ headers: [{ name: 'Tenant', value: 'a' }] }], {
    taken: [{ path: list, headers: { tenant: 'a' } }],
    left: paths(list),
    routeOf: grpcRoute,
  });
});
