/** What routes and policies of a namespace that is not trusted cannot do. */
import assert from 'node:assert/strict';
import { type ClusterObject, createGatewayApi, createObjectAcceptance, type Mapping } from '#config';
import type { KubernetesObject } from '../../support/kubernetes/client.ts';
import { clusterObject, resource } from '../../support/kubernetes/cluster-objects.ts';
import {
  gateway,
  gatewayClass,
  httpListener,
  httpRoute,
  objectOf,
  policyFilter,
  withSpec,
} from '../../support/kubernetes/gateway-objects.ts';
import { createCluster, edge as usualEdge } from './cluster.ts';

const trusted = ['default'];
const allowedRoutes = { namespaces: { from: 'All' } };
const edge = objectOf(gateway('edge', [{ name: 'http', port: 80, protocol: 'HTTP', allowedRoutes }]));
const services = ['default/orders', 'evil/own', 'evil/localhost', 'evil/auth', 'evil/frontdesk', '10/own'].map((path) =>
  clusterObject('Service', path, { spec: { ports: [{ port: 80 }] } }, 'v1'),
);
const usual = [objectOf(gatewayClass), edge, ...services];

async function accept(
  rule: object,
  records: readonly ClusterObject[] = [],
  namespace = 'evil',
  more: readonly ClusterObject[] = [],
) {
  const api = createGatewayApi({ trusted, addresses: [], ports: { http: [80], https: [443] } });
  const route = objectOf(httpRoute('shop', [rule], namespace));
  const { routes, certificates } = await api.resolve([...usual, ...more, route], records);
  const options = { gatewayDomain: 'gateway.local', directory: '.', strictPaths: true, findUnservable: () => [] };
  const accepted = await createObjectAcceptance({ ...options, trusted }).accept([...records, ...routes]);
  return { ...accepted, certificates };
}

/** What a Mapping calls, as whom, and why it calls nothing. */
function outcomeOf({ service, authService, bypassAuth, shadow, refusal, gatewayRoute }: Mapping): string {
  if (refusal !== undefined) return 'refused';
  if (gatewayRoute?.fault !== undefined) return 'no backend';
  const auth = bypassAuth ? 'open' : authService === undefined ? '' : `as ${authService}`;
  return [service, auth, shadow ? 'shadow' : ''].filter((word) => word !== '').join(' ');
}

const outcomes = async (...given: Parameters<typeof accept>) =>
  (await accept(...given)).records.mappings.map(outcomeOf);

const own = [{ name: 'own', port: 80 }];
const filterOf = (name: string, fields: object = {}) => ({
  type: 'ExtensionRef',
  extensionRef: { group: 'gateway.local', kind: 'RoutePolicy', name, ...fields },
});

describe('a route of a namespace that is not trusted', () => {
  for (const [what, backend, expected] of [
    ['calls a Service of its own', {}, 'own.evil:80'],
    ['does not call one of another namespace', { name: 'orders', namespace: 'default' }, 'no backend'],
    ['calls one with the name of this machine', { name: 'localhost' }, 'localhost.evil:80'],
    ['calls one with the name of a module', { name: 'auth' }, 'auth.evil:80'],
    ['calls one with the name of frontdesk', { name: 'frontdesk' }, 'frontdesk.evil:80'],
    ['calls nothing outside of the cluster', { name: 'example.com' }, 'no backend'],
    ['calls no other kind', { kind: 'Pod' }, 'no backend'],
  ] as const)
    it(what, async () => {
      assert.deepEqual(await outcomes({ backendRefs: [{ ...own[0], ...backend }] }), [expected]);
    });

  it('calls a Service in a namespace that is a number by a name that is no address', async () => {
    assert.deepEqual(await outcomes({ backendRefs: own }, [], '10'), ['own.10.svc:80']);
  });

  it('copies no request to a Service of another namespace', async () => {
    const backendRef = { name: 'orders', namespace: 'default', port: 80 };
    const filters = [{ type: 'RequestMirror', requestMirror: { backendRef } }];
    assert.deepEqual(await outcomes({ backendRefs: own, filters }), ['own.evil:80']);
  });

  it('must not lead to this machine, whatever DNS says', async () => {
    const { records } = await accept({ backendRefs: own });
    assert.deepEqual(
      records.mappings.map(({ isUntrusted }) => isUntrusted),
      [true],
    );
  });

  it('does not have the policy of another namespace', async () => {
    const open = resource('RoutePolicy', 'default/open', { bypass_auth: true });
    for (const filter of [filterOf('open'), filterOf('open', { namespace: 'default' }), filterOf('default/open')])
      assert.deepEqual(await outcomes({ backendRefs: own, filters: [filter] }, [open]), ['no backend']);
  });

  it('does not name an AuthService that is not of a trusted namespace', async () => {
    for (const auth_service of ['own', 'own.evil', 'tokens.shop', 'tokens']) {
      const records = [
        resource('AuthService', 'default/auth', { auth_service: 'frontdesk:auth' }),
        resource('AuthService', 'evil/own', { auth_service: 'own', default: false }),
        resource('AuthService', 'shop/tokens', { auth_service: 'own', default: false }),
        resource('RoutePolicy', 'evil/mine', { auth_service }),
      ];
      assert.deepEqual(await outcomes({ backendRefs: own, filters: [filterOf('mine')] }, records), ['refused']);
    }
  });
});

describe('a route beside guards that are refused', () => {
  const rule = { backendRefs: own };
  const wrong = { auth_service: 'frontdesk:auth', proto: 3 };

  it('is closed without the default AuthService, unless it does not need one', async () => {
    const auth = resource('AuthService', 'default/auth', wrong);
    const open = resource('RoutePolicy', 'evil/open', { bypass_auth: true });
    assert.deepEqual(await outcomes(rule, [auth]), ['refused']);
    assert.deepEqual(await outcomes({ ...rule, filters: [filterOf('open')] }, [auth, open]), ['own.evil:80 open']);
  });

  it('is closed without the AuthService of its own namespace, but not without that of another one', async () => {
    assert.deepEqual(await outcomes(rule, [resource('AuthService', 'evil/auth', wrong)]), ['refused']);
    assert.deepEqual(await outcomes(rule, [resource('AuthService', 'shop/auth', wrong)]), ['own.evil:80']);
  });

  it('is closed without the RateLimitService that would reject what it cannot count', async () => {
    const limits = resource('RateLimitService', 'default/limits', {
      service: 'frontdesk:ratelimit',
      failure_mode_deny: true,
      timeout_ms: 'x',
    });
    const policy = resource('RoutePolicy', 'evil/few', {
      labels: { gateway: [{ orders: [{ generic_key: { value: 'a' } }] }] },
    });
    assert.deepEqual(await outcomes({ ...rule, filters: [filterOf('few')] }, [limits, policy]), ['refused']);
  });

  it('is closed if it is open, and the match of another object of its namespace cannot be read', async () => {
    const open = resource('RoutePolicy', 'evil/open', { bypass_auth: true });
    const unknown = resource('Mapping', 'evil/guarded', { prefix: 3, service: 'own' });
    assert.deepEqual(await outcomes({ ...rule, filters: [filterOf('open')] }, [open, unknown]), ['refused']);
  });
});

describe('a Gateway of a namespace that is not trusted', () => {
  it('serves no route, and its Secret is used for nothing', async () => {
    const https = { name: 'https', port: 443, protocol: 'HTTPS', tls: { certificateRefs: [{ name: 'own' }] } };
    const mine = objectOf(gateway('mine', [https, { name: 'http', port: 80, protocol: 'HTTP' }], 'evil'));
    const secret = clusterObject('Secret', 'evil/own', { data: {} }, 'v1');
    const route = objectOf(httpRoute('shop', [{ backendRefs: own }], 'evil'));
    const value = { spec: { parentRefs: [{ name: 'mine' }], hostnames: ['victim.example'] } };
    const { records, certificates } = await accept({ backendRefs: own }, [], 'evil', [
      mine,
      secret,
      { ...route, uid: 'other', value },
    ]);
    assert.deepEqual(
      records.mappings.map(({ host }) => host && 'value' in host && host.value),
      ['shop.example'],
    );
    assert.deepEqual(certificates, []);
  });
});

describe('a condition on a header that JavaScript has a use of its own for', () => {
  const spec = { prefix: '/', service: 'own', bypass_auth: true };
  const name = '__proto__';
  const named = JSON.parse(`{ "${name}": "secret" }`);

  for (const fields of [{ headers: named }, { regex_headers: named }, { query_parameters: named }])
    it(`refuses a record, which would be open without it: ${Object.keys(fields)}`, async () => {
      const records = [resource('Mapping', 'evil/open', { ...spec, ...fields })];
      const { verdicts } = await accept({ backendRefs: own }, records);
      assert.deepEqual(
        verdicts.map(({ state, errors }) => [state, ...errors.map(({ message }) => message)]),
        [['refused', '__proto__ is not a name that can be used'], ['accepted']],
      );
    });

  for (const match of [{ headers: [{ name, value: 'secret' }] }, { queryParams: [{ name, value: 'secret' }] }])
    it(`refuses a route: ${Object.keys(match)}`, async () => {
      assert.deepEqual(await outcomes({ backendRefs: own, matches: [match] }), []);
    });
});

describe('the Mappings of a namespace that is not trusted', () => {
  const open = gateway('edge', [{ ...httpListener, allowedRoutes }]);
  const cluster = () => createCluster({ mappingsMax: 10 });
  const record = { apiVersion: 'gateway.local/v1', kind: 'Mapping', metadata: { name: 'own', namespace: 'evil' } };
  const own = { ...record, spec: { prefix: '/own', service: 'own' } };

  /** A route with two Mappings for each path. */
  function routeWith(
    name: string,
    paths: number,
    fields: object = {},
    namespace = 'evil',
    filters: readonly object[] = [],
  ): KubernetesObject {
    const matches = Array.from({ length: paths }, (_, index) => ({ path: { value: `/${index}` }, ...fields }));
    return withSpec(httpRoute(name, [{ matches, filters }], namespace), { hostnames: [`a.${name}`, `b.${name}`] });
  }

  it('include those of its routes, the older ones first, and of its records', async () => {
    const [old, young, small] = [routeWith('old', 3), routeWith('young', 2), routeWith('small', 1)];
    const { mappings, errors, conditionsOf } = await cluster()(gatewayClass, open, old, own, young, small);
    assert.deepEqual([mappings.length, errors.length], [9, 1]);
    assert.match(errors[0] ?? '', /^this object counts as 4 Mappings, .* namespace evil .* the 10 of KUBERNETES_/);
    assert.deepEqual(conditionsOf(small), ['edge: Accepted ResolvedRefs']);
    assert.match(conditionsOf(young)?.join() ?? '', /^edge: Accepted=False \(UnsupportedValue\)/);
  });

  it('include a regular expression of a route as often as its hostnames and paths', async () => {
    const headers = [{ type: 'RegularExpression', name: 'a', value: 'b.*' }];
    const { errors } = await cluster()(gatewayClass, open, routeWith('regex', 3, { headers }));
    assert.match(errors.join(), /^this object counts as 36 Mappings/);
  });

  it('include what is long in a route or its policy as often as its hostnames and paths', async () => {
    const policy = { ...record, kind: 'RoutePolicy', metadata: { name: 'long', namespace: 'evil' } };
    const long = { ...policy, spec: { deny_addresses: Array.from({ length: 800 }, () => '10.0.0.1') } };
    const header = { name: 'a', value: 'x'.repeat(8000) };
    for (const filter of [
      policyFilter('long'),
      { type: 'RequestHeaderModifier', requestHeaderModifier: { set: [header] } },
    ]) {
      const { errors } = await cluster()(gatewayClass, open, long, routeWith('shop', 2, {}, 'evil', [filter]));
      assert.match(errors.join(), /^this object counts as 12 Mappings/);
    }
  });

  it('do not count for a trusted one, or for others', async () => {
    const others = [routeWith('trusted', 6, {}, 'default'), routeWith('other', 5, {}, 'other'), routeWith('evil', 5)];
    const { errors } = await cluster()(gatewayClass, open, ...others);
    assert.deepEqual(errors, []);
  });

  it('do not stay in a last valid version of a route that has more than there is room for', async () => {
    const resolve = cluster();
    const wrong = withSpec(routeWith('shop', 1), { rules: [{ matches: [{ cookies: [] }] }] });
    await resolve(gatewayClass, open, routeWith('shop', 4));
    assert.equal((await resolve(gatewayClass, open, wrong, own)).mappings.filter(isUsed).length, 9);
    await resolve(gatewayClass, open, wrong, own, routeWith('young', 3));
    assert.equal((await resolve(gatewayClass, open, wrong, own)).mappings.filter(isUsed).length, 1);
  });

  const isUsed = ({ refusal }: Mapping) => refusal === undefined;
});

describe('a route that is too long', () => {
  const headers = [{ name: 'a', value: 'x'.repeat(70_000) }];
  const route = httpRoute('shop', [{ matches: [{ headers }] }]);

  it('is refused unread', async () => {
    const { errors } = await createCluster()(...usualEdge, route);
    assert.deepEqual(errors, ['the route has more than 65536 characters: split it']);
  });

  it('closes nothing if it has no Gateway of frontdesk', async () => {
    const record = {
      apiVersion: 'gateway.local/v1',
      kind: 'Mapping',
      metadata: { name: 'open', namespace: 'default' },
    };
    const open = { ...record, spec: { prefix: '/open', service: 'orders', bypass_auth: true } };
    const { mappings, errors } = await createCluster()(...usualEdge, withSpec(route, { parentRefs: [] }), open);
    assert.deepEqual([mappings.map(outcomeOf), errors], [['orders.default open'], []]);
  });
});

describe('a route whose policy is long', () => {
  it('is refused if all its Mappings with it would take the time and the memory of others', async () => {
    const policy = {
      apiVersion: 'gateway.local/v1',
      kind: 'RoutePolicy',
      metadata: { name: 'long', namespace: 'default' },
    };
    const long = { ...policy, spec: { deny_addresses: Array.from({ length: 5000 }, () => '10.0.0.1') } };
    const matches = Array.from({ length: 64 }, (_, index) => ({ path: { value: `/${index}` } }));
    const hostnames = ['a.example', 'b.example', 'c.example'];
    const route = withSpec(httpRoute('shop', [{ matches, filters: [policyFilter('long')] }]), { hostnames });
    const { errors, mappings } = await createCluster()(...usualEdge, long, route);
    assert.deepEqual(errors, [
      'more than 2000 Mappings, as each 4,000 characters of one count as another: split the route, or shorten its policies and filters',
    ]);
    assert.deepEqual(mappings, []);
  });
});

describe('a route with more than 200 regular expressions', () => {
  it('is refused, because compiling them would hold up requests', async () => {
    const headers = Array.from({ length: 16 }, (_, index) => {
      return { type: 'RegularExpression', name: `x-${index}`, value: 'a+' };
    });
    const matches = Array.from({ length: 13 }, (_, index) => ({ path: { value: `/${index}` }, headers }));
    const { errors } = await createCluster()(...usualEdge, httpRoute('shop', [{ matches }]));
    assert.deepEqual(errors, ['the route has more than 200 regular expressions: split it']);
  });
});

describe('what other versions of the definitions can say', () => {
  it('is refused where leaving out a condition would match more requests', async () => {
    const matches = [{ path: { value: '/admin' }, cookies: [{ name: 'a', value: 'b' }] }];
    assert.deepEqual(await outcomes({ backendRefs: own, matches }), ['refused']);
  });

  it('is not served where it would ask clients for certificates', async () => {
    const tls = { certificateRefs: [{ name: 'own' }], frontendValidation: { caCertificateRefs: [{ name: 'ca' }] } };
    const listener = { name: 'https', port: 443, protocol: 'HTTPS', tls, allowedRoutes };
    const api = createGatewayApi({ trusted, addresses: [], ports: { http: [80], https: [443] } });
    const mutual = objectOf(gateway('edge', [listener]));
    const { notices } = await api.resolve([objectOf(gatewayClass), mutual], []);
    assert.match(notices[0]?.message ?? '', /^listener https: tls\.frontendValidation is not supported$/);
  });
});

describe('a path that a route sends instead of that of the client', () => {
  for (const replaceFullPath of [
    '/../admin',
    '/a?admin=1',
    '/a#b',
    '/a\r\nx-evil: 1',
    '/a\\b',
    '//evil.example',
    'evil',
  ])
    it(`is refused if it is not one: ${JSON.stringify(replaceFullPath)}`, async () => {
      const filters = [{ type: 'URLRewrite', urlRewrite: { path: { type: 'ReplaceFullPath', replaceFullPath } } }];
      assert.deepEqual(await outcomes({ backendRefs: own, filters }), ['refused']);
    });
});
