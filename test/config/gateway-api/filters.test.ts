/** What the filters of a rule do to its Mappings. */
import assert from 'node:assert/strict';
import type { Mapping } from '#config';
import { gateway, gatewayClass, httpRoute } from '../../support/kubernetes/gateway-objects.ts';
import { createCluster, edge, mappingsOf, orders } from './cluster.ts';

/** The only Mapping of a rule with these filters. */
async function mappingWith(filters: readonly object[], rule: object = {}): Promise<Mapping> {
  const [mapping, ...others] = await mappingsOf([{ filters, ...rule }]);
  assert.deepEqual(others, []);
  return mapping ?? assert.fail();
}

describe('the header filters of a route', () => {
  const request = (requestHeaderModifier: object) => ({ type: 'RequestHeaderModifier', requestHeaderModifier });
  const response = (responseHeaderModifier: object) => ({ type: 'ResponseHeaderModifier', responseHeaderModifier });
  const setting = (name: string, value: string) => ({ name, value });

  it('set, add and remove headers of requests and of responses', async () => {
    const changes = { set: [setting('x-set', '1')], add: [setting('x-add', '2')], remove: ['X-Old'] };
    for (const [filter, key] of [
      [request(changes), 'requestHeaders'],
      [response(changes), 'responseHeaders'],
    ] as const) {
      const added = [
        { name: 'x-set', value: '1', append: false },
        { name: 'x-add', value: '2', append: true },
      ];
      assert.deepEqual((await mappingWith([filter]))[key], { add: added, remove: ['x-old'] });
    }
  });

  for (const [what, changes] of [
    ['set and add', { set: [setting('X-A', '1')], add: [setting('x-a', '2')] }],
    ['set and remove', { set: [setting('X-A', '1')], remove: ['x-a'] }],
    ['add and remove', { add: [setting('X-A', '1')], remove: ['x-a'] }],
    ['twice set', { set: ['X-A', 'x-a', 'X-a'].map((name) => setting(name, '1')) }],
    ['twice remove', { remove: ['X-A', 'x-a'] }],
  ] as const)
    it(`refuse the route if they ${what} the same header, because the Gateway API permits one action`, async () => {
      for (const filter of [request(changes), response(changes)])
        for (const rule of [
          { filters: [filter], backendRefs: [orders] },
          { backendRefs: [{ ...orders, filters: [filter] }] },
        ]) {
          const { errors } = await createCluster()(...edge, httpRoute('shop', [rule]));
          const message = 'for the header x-a is not supported: several values are one, with commas';
          assert.deepEqual(errors, [`spec.rules[0]: a second action of a ${filter.type} ${message}`]);
        }
    });

  it('take values as they are, percent signs too', async () => {
    const filters = [request({ set: [setting('x-off', '20%CLIENT_IP%')] })];
    const { requestHeaders } = await mappingWith(filters);
    assert.deepEqual(requestHeaders.add, [{ name: 'x-off', value: '20%%CLIENT_IP%%', append: false }]);
  });

  it('of a backend come after those of the rule, and replace them', async () => {
    const ofRule = request({ set: [setting('x-a', '1'), setting('x-b', '1')], remove: ['x-c'] });
    const ofBackend = request({ set: [setting('X-A', '2')], remove: ['x-d'] });
    const { requestHeaders } = await mappingWith([ofRule], { backendRefs: [{ ...orders, filters: [ofBackend] }] });
    assert.deepEqual(requestHeaders, {
      add: [
        { name: 'x-a', value: '2', append: false },
        { name: 'x-b', value: '1', append: false },
      ],
      remove: ['x-c', 'x-d'],
    });
  });
});

describe('a redirect of a route', () => {
  const redirectTo = (requestRedirect: object) => [{ type: 'RequestRedirect', requestRedirect }];

  /** The redirect of a route whose Gateway has listeners of HTTP at these ports. */
  async function redirectOf(spec: object, ports: readonly number[] = [80]) {
    const listeners = ports.map((port) => ({ name: `http-${port}`, port, protocol: 'HTTP' }));
    const others = [gatewayClass, gateway('edge', listeners)];
    const [mapping] = await mappingsOf([{ backendRefs: [], filters: redirectTo(spec) }], { others });
    return mapping?.redirect;
  }

  const hostname = 'new.example';
  for (const [what, spec, ports, expected] of [
    ['keeps the usual port out', { hostname }, [80], { host: hostname }],
    ['keeps the port of a listener for another host', { hostname }, [8080], { host: hostname, port: 8080 }],
    ['leaves the port out if there are several', { hostname }, [80, 8080], { host: hostname }],
    ['has the usual port of its scheme', { hostname, scheme: 'https' }, [8080], { scheme: 'https', host: hostname }],
    ['has the port that it names', { hostname, port: 81 }, [8080], { host: hostname, port: 81 }],
    ['keeps the host and the port of the client', { path: { type: 'ReplaceFullPath' } }, [8080], {}],
  ] as const)
    it(what, async () => {
      const { scheme, host, port, status } = (await redirectOf(spec, ports)) ?? {};
      const all = { scheme: undefined, host: undefined, port: undefined, status: 302, ...expected };
      assert.deepEqual({ scheme, host, port, status }, all);
    });

  for (const [what, path, expected] of [
    ['another prefix', { type: 'ReplacePrefixMatch', replacePrefixMatch: '/v2' }, { kind: 'prefix', value: '/v2' }],
    ['no prefix', { type: 'ReplacePrefixMatch', replacePrefixMatch: '' }, { kind: 'prefix', value: '/' }],
    ['another path', { type: 'ReplaceFullPath', replaceFullPath: '/new' }, { kind: 'path', value: '/new' }],
    ['the root', { type: 'ReplaceFullPath', replaceFullPath: '' }, { kind: 'path', value: '/' }],
  ] as const)
    it(`may have ${what}`, async () => {
      const redirect = await redirectOf({ path, statusCode: 308 });
      assert.deepEqual([redirect?.path, redirect?.status], [expected, 308]);
    });
});

describe('the rewrites of a route', () => {
  const rewriteTo = (urlRewrite: object) => [{ type: 'URLRewrite', urlRewrite }];
  const matches = [{ path: { value: '/v1' } }];

  for (const [what, filters, expected] of [
    ['leaves the path and the host', [], { rewrite: '' }],
    ['has another host', rewriteTo({ hostname: 'one.example' }), { rewrite: '', hostRewrite: 'one.example' }],
    [
      'has another prefix',
      rewriteTo({ path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/v2' } }),
      { rewrite: '/v2' },
    ],
    ['has no prefix', rewriteTo({ path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '' } }), { rewrite: '/' }],
    [
      'has another path',
      rewriteTo({ path: { type: 'ReplaceFullPath', replaceFullPath: '/one' } }),
      { rewrite: '', fullPath: '/one' },
    ],
    [
      'has the path of the root',
      rewriteTo({ path: { type: 'ReplaceFullPath', replaceFullPath: '' } }),
      { rewrite: '', fullPath: '/' },
    ],
  ] as const)
    it(what, async () => {
      const { rewrite, hostRewrite, gatewayRoute } = await mappingWith(filters, { matches });
      const fullPath = gatewayRoute?.fullPath;
      assert.deepEqual(
        { rewrite, hostRewrite, fullPath },
        { hostRewrite: undefined, fullPath: undefined, ...expected },
      );
    });
});

describe('the CORS filter of a route', () => {
  for (const allowCredentials of [true, false])
    it(`may have stars ${allowCredentials ? 'with' : 'without'} credentials`, async () => {
      const cors = { allowOrigins: ['*'], allowMethods: ['*'], allowHeaders: ['*'], exposeHeaders: ['x-a'], maxAge: 9 };
      const mapping = await mappingWith([{ type: 'CORS', cors: { ...cors, allowCredentials } }]);
      assert.deepEqual(mapping.cors, {
        origins: ['*'],
        methods: ['*'],
        headers: ['*'],
        exposedHeaders: ['x-a'],
        maxAgeSeconds: 9,
        credentials: allowCredentials,
      });
    });
});

describe('the mirror of a route', () => {
  const mirror = (fields: object = {}) => [
    { type: 'RequestMirror', requestMirror: { backendRef: { name: 'cars', port: 80 }, ...fields } },
  ];
  const sharesOf = (mappings: readonly Mapping[]) =>
    mappings.map(({ service, shadow, weight }) => `${service}${shadow ? ' copy' : ''} ${weight ?? 100}`);

  for (const [what, fields, expected] of [
    ['all requests', {}, 100],
    ['a percentage', { percent: 7 }, 7],
    ['a fraction', { fraction: { numerator: 1, denominator: 8 } }, 12.5],
    ['a fraction of a hundred', { fraction: { numerator: 3 } }, 3],
    ['no request', { percent: 0 }, 0],
  ] as const)
    it(`copies ${what}`, async () => {
      const mappings = await mappingsOf([{ filters: mirror(fields) }]);
      assert.deepEqual(sharesOf(mappings), ['orders.default:80 100', `cars.default:80 copy ${expected}`]);
    });

  it('copies nothing to a Service that does not exist, which the status says', async () => {
    const route = httpRoute('shop', [
      { filters: mirror({ backendRef: { name: 'none', port: 80 } }), backendRefs: [orders] },
    ]);
    const { mappings, conditionsOf } = await createCluster()(...edge, route);
    assert.deepEqual(sharesOf(mappings), ['orders.default:80 100']);
    assert.deepEqual(conditionsOf(route), ['edge: Accepted ResolvedRefs=False (BackendNotFound)']);
  });
});

describe('a route with a filter that is not supported', () => {
  const rewrite = { type: 'URLRewrite', urlRewrite: { hostname: 'one.example' } };
  const headers = { type: 'RequestHeaderModifier', requestHeaderModifier: { set: [{ name: 'a', value: '1' }] } };
  const mirror = { type: 'RequestMirror', requestMirror: { backendRef: orders } };
  const prefix = { type: 'URLRewrite', urlRewrite: { path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/b' } } };
  const matches = [{ path: { type: 'Exact', value: '/a' } }];

  for (const [rule, message] of [
    [{ filters: [{ type: 'ExternalAuth' }] }, 'a filter of the type ExternalAuth in a rule is not supported'],
    [{ filters: [headers, headers] }, 'a second filter of the type RequestHeaderModifier is not supported'],
    [{ filters: [mirror, mirror] }, 'a second filter of the type RequestMirror is not supported'],
    [
      { filters: [{ type: 'RequestRedirect', requestRedirect: {} }, rewrite], backendRefs: [] },
      'a filter of the type URLRewrite beside RequestRedirect is not supported',
    ],
    [
      { backendRefs: [{ ...orders, filters: [rewrite] }] },
      'a filter of the type URLRewrite in a backend is not supported',
    ],
    [{ matches, filters: [prefix] }, 'replacePrefixMatch needs a PathPrefix'],
    [{ retry: { attempts: 2 } }, 'retry is not supported'],
  ] as const)
    it(`is refused: ${message}`, async () => {
      const route = httpRoute('shop', [{ backendRefs: [orders] }, { backendRefs: [orders], ...rule }]);
      const { errors, mappings, conditionsOf } = await createCluster()(...edge, route);
      assert.deepEqual(errors, [`spec.rules[1]: ${message}`]);
      assert.deepEqual(conditionsOf(route), ['edge: Accepted=False (UnsupportedValue) ResolvedRefs']);
      assert.ok(mappings.every(({ refusal }) => refusal !== undefined));
    });
});
