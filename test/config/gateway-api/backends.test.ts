/** The backends of a rule: which Service gets which share of the requests, how it is called, and when it cannot be. */
import assert from 'node:assert/strict';
import type { Mapping } from '#config';
import { grpcRoute, httpRoute, serviceObject, withSpec } from '../../support/kubernetes/gateway-objects.ts';
import { createCluster, edge, grantIn, mappingsOf, orders } from './cluster.ts';

const cars = { name: 'cars', port: 80 };

/** `orders.default:80 75`, or `500 25: <fault>`. The weight is left out where a Mapping has all requests. */
function shareOf({ service, weight, gatewayRoute }: Mapping): string {
  const fault = gatewayRoute?.fault;
  const share = weight === undefined ? '' : ` ${weight}`;
  return fault === undefined ? `${service}${share}` : `500${share}: ${fault}`;
}

const sharesOf = async (backendRefs: readonly object[]) => (await mappingsOf([{ backendRefs }])).map(shareOf);

describe('the weights of backends', () => {
  for (const [what, backends, expected] of [
    ['are percentages of their sum', [{ ...orders, weight: 3 }, cars], ['orders.default:80 75', 'cars.default:80 25']],
    ['leave out those with none', [{ ...orders, weight: 0 }, cars], ['cars.default:80']],
    ['do not count for one backend', [{ ...orders, weight: 7 }], ['orders.default:80']],
    ['answer 500 if all are 0', [{ ...orders, weight: 0 }], ['500: the rule has no backend']],
    ['answer 500 without backends', [], ['500: the rule has no backend']],
    [
      'count for a backend that does not exist',
      [
        { ...orders, weight: 9 },
        { name: 'none', port: 80 },
      ],
      ['orders.default:80 90', '500 10: there is no Service default/none'],
    ],
  ] as const)
    it(what, async () => assert.deepEqual(await sharesOf(backends), expected));

  it('hold for each match and hostname by itself', async () => {
    const matches = ['/a', '/b'].map((value) => ({ path: { value } }));
    const route = httpRoute('shop', [{ matches, backendRefs: [orders, cars] }]);
    const { mappings } = await createCluster()(...edge, withSpec(route, { hostnames: ['a.example', '*.b.example'] }));
    const hosts = [
      { kind: 'exact', value: 'a.example' },
      { kind: 'suffix', value: '.b.example' },
    ];
    assert.deepEqual(
      mappings.map(({ prefix, host, weight }) => ({ prefix, host, weight })),
      ['/a', '/b'].flatMap((prefix) => [0, 1].flatMap(() => hosts.map((host) => ({ prefix, host, weight: 50 })))),
    );
  });

  it('are in the names of the Mappings as the numbers of the backends, beside that of the rule or its name', async () => {
    const rules = [{ backendRefs: [orders, cars] }, { name: 'all' }];
    assert.deepEqual(
      (await mappingsOf(rules)).map(({ name }) => name),
      ['httproute/default/shop/1/1', 'httproute/default/shop/1/2', 'httproute/default/shop/all'],
    );
  });
});

describe('a rule that calls no Service', () => {
  for (const [what, rule] of [
    ['without a backend', { backendRefs: [] }],
    ['whose backend does not exist', { backendRefs: [{ name: 'none', port: 80 }] }],
    ['which redirects', { filters: [{ type: 'RequestRedirect', requestRedirect: { port: 81 } }] }],
  ] as const)
    it(`names none: one ${what}`, async () => {
      const mappings = await mappingsOf([rule]);
      assert.deepEqual(
        mappings.map(({ service }) => service),
        [''],
      );
    });

  it('names none if the route is refused', async () => {
    const route = httpRoute('shop', [{ backendRefs: [orders], retry: { attempts: 1 } }]);
    const { mappings } = await createCluster()(...edge, route);
    assert.deepEqual(
      mappings.map(({ service, refusal }) => [service, refusal]),
      [['', 'HTTPRoute default/shop is refused']],
    );
  });
});

describe('the port of a backend', () => {
  for (const [appProtocol, expected] of [
    [undefined, { http2: false, grpc: false, allowUpgrade: ['websocket'] }],
    ['kubernetes.io/ws', { http2: false, grpc: false, allowUpgrade: ['websocket'] }],
    ['kubernetes.io/h2c', { http2: true, grpc: false, allowUpgrade: [] }],
  ] as const)
    it(`with the protocol ${appProtocol ?? '(none)'} is called with it`, async () => {
      const service = serviceObject('api', [{ port: 81, appProtocol }]);
      const options = { others: [...edge, service] };
      const [mapping] = await mappingsOf([{ backendRefs: [{ name: 'api', port: 81 }] }], options);
      const { service: reference, http2 = false, grpc, allowUpgrade } = mapping ?? assert.fail();
      assert.equal(reference, 'api.default:81');
      assert.deepEqual({ http2, grpc, allowUpgrade }, expected);
    });

  it('of a GRPCRoute is called over gRPC', async () => {
    const [mapping] = await mappingsOf([{}], { routeOf: grpcRoute });
    assert.equal(mapping?.grpc, true);
  });
});

describe('a backend that cannot be used', () => {
  const other = { name: 'api', namespace: 'other', port: 80 };
  const api = serviceObject('api', [{ port: 80 }], { namespace: 'other' });
  const httpRoutes = { kind: 'HTTPRoute', namespace: 'default' };
  const services = { group: '', kind: 'Service' };

  for (const [what, backend, others, reason, fault] of [
    ['does not exist', { name: 'none', port: 80 }, [], 'BackendNotFound', 'there is no Service default/none'],
    ['has no such port', { ...orders, port: 81 }, [], 'BackendNotFound', 'Service default/orders has no port 81'],
    [
      'is named without a port',
      { name: 'orders' },
      [],
      'BackendNotFound',
      'Service default/orders has no port that is named here',
    ],
    [
      'has the port for UDP',
      { name: 'dns', port: 53 },
      [serviceObject('dns', [{ port: 53, protocol: 'UDP' }])],
      'BackendNotFound',
      'Service default/dns has no port 53',
    ],
    [
      'is an ExternalName',
      { name: 'far', port: 80 },
      [serviceObject('far', [{ port: 80 }], { type: 'ExternalName', externalName: 'localhost' })],
      'BackendNotFound',
      'Service default/far is an ExternalName, which is not supported',
    ],
    [
      'is of another kind',
      { ...orders, group: 'example.com', kind: 'Bucket' },
      [],
      'InvalidKind',
      'Bucket default/orders of the group "example.com" is no Service',
    ],
    [
      'is of another namespace without a grant',
      other,
      [api],
      'RefNotPermitted',
      'no ReferenceGrant in the namespace other permits the use of Service other/api',
    ],
    [
      'has a grant of its own name in the namespace of the route',
      other,
      [api, grantIn('default', httpRoutes, services)],
      'RefNotPermitted',
      'no ReferenceGrant in the namespace other permits the use of Service other/api',
    ],
    [
      'has a grant for another kind of route',
      other,
      [api, grantIn('other', { ...httpRoutes, kind: 'GRPCRoute' }, services)],
      'RefNotPermitted',
      'no ReferenceGrant in the namespace other permits the use of Service other/api',
    ],
    [
      'has a grant for another namespace',
      other,
      [api, grantIn('other', { ...httpRoutes, namespace: 'shop' }, services)],
      'RefNotPermitted',
      'no ReferenceGrant in the namespace other permits the use of Service other/api',
    ],
    [
      'has a grant for another Service',
      other,
      [api, grantIn('other', httpRoutes, { ...services, name: 'web' })],
      'RefNotPermitted',
      'no ReferenceGrant in the namespace other permits the use of Service other/api',
    ],
  ] as const)
    it(`answers 500, which the status says, because it ${what}`, async () => {
      const route = httpRoute('shop', [{ backendRefs: [backend] }]);
      const { mappings, conditionsOf, notices } = await createCluster()(...edge, ...others, route);
      assert.deepEqual(mappings.map(shareOf), [`500: ${fault}`]);
      assert.deepEqual(conditionsOf(route), [`edge: Accepted ResolvedRefs=False (${reason})`]);
      assert.deepEqual(notices, [`HTTPRoute default/shop: ${fault}`]);
    });

  for (const [what, to] of [
    ['all Services', services],
    ['this one', { ...services, name: 'api' }],
  ] as const)
    it(`can be of another namespace with a grant for ${what}`, async () => {
      const others = [...edge, api, grantIn('other', httpRoutes, to)];
      const mappings = await mappingsOf([{ backendRefs: [other] }], { others });
      assert.deepEqual(mappings.map(shareOf), ['api.other:80']);
    });

  it('is no fault in the status if the rule has no backends on purpose', async () => {
    const route = httpRoute('shop', [{ backendRefs: [] }]);
    const { conditionsOf, notices } = await createCluster()(...edge, route);
    assert.deepEqual(conditionsOf(route), ['edge: Accepted ResolvedRefs']);
    assert.deepEqual(notices, []);
  });

  it('answers a call of a GRPCRoute in the way of gRPC', async () => {
    const [mapping] = await mappingsOf([{ backendRefs: [{ name: 'none', port: 80 }] }], { routeOf: grpcRoute });
    assert.equal(mapping?.grpc, true);
  });
});
