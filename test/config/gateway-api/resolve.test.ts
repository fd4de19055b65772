/** What is resolved of a cluster whose objects are strange, too many, or change while they are served. */
import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type ClusterObject, createGatewayApi } from '#config';
import { clusterObject } from '../../support/kubernetes/cluster-objects.ts';
import { gateway, gatewayClass, grant, httpRoute, objectOf } from '../../support/kubernetes/gateway-objects.ts';
import { createGateways } from './cluster.ts';

const trusted = ['default'];
const service = clusterObject('Service', 'default/orders', { spec: { ports: [{ port: 80 }] } }, 'v1');
const everybody = { namespaces: { from: 'All' } };
const edge = objectOf(gateway('edge', [{ name: 'http', port: 80, protocol: 'HTTP', allowedRoutes: everybody }]));
const ownClass = objectOf(gatewayClass);
const backendRefs = [{ name: 'orders', namespace: 'default', port: 80 }];
const routeOf = (name: string, namespace = 'default', rules: readonly object[] = [{ backendRefs }]) =>
  objectOf(httpRoute(name, rules, namespace));

function gatewayApi() {
  const resolveAll = createGateways();

  /** The hosts of the Mappings, or their names, and what the statuses say that is not in order. */
  return async function resolve(objects: readonly ClusterObject[], records: readonly ClusterObject[] = []) {
    const { accepted, statuses: all } = await resolveAll(objects, records);
    const hosts = accepted.records.mappings.map(({ name, host, refusal, gatewayRoute }) =>
      [host?.kind === 'exact' ? host.value : name, refusal && ' refused', gatewayRoute?.fault && ' fault'].join(''),
    );
    const statuses = all.map(({ object, status }) => {
      const conditions = status.kind === 'Route' ? status.parents.flatMap((one) => one.conditions) : status.conditions;
      const wrong = conditions.filter((one) => one.status === 'False').map(({ type, reason }) => `${type}: ${reason}`);
      const parents = status.kind === 'Route' ? `${status.parents.length} parents` : '';
      return [object.kind, object.name, parents, ...wrong].filter((word) => word !== '').join(' ');
    });
    return { hosts, statuses };
  };
}

describe('an object that another version of its definition has let through', () => {
  const good = routeOf('good', 'shop');
  const from = [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: 'shop' }];
  const permit = objectOf(grant('permit', from, [{ group: '', kind: 'Service' }]));

  for (const [what, object] of [
    ['a Gateway without a spec', { ...edge, name: 'bad', uid: 'bad', value: {} }],
    ['a Gateway whose spec is null', { ...edge, name: 'bad', uid: 'bad', value: { spec: null } }],
    ['a Gateway with listeners that are null', objectOf(gateway('bad', [null as unknown as object]))],
    ['a GatewayClass without a spec', { ...ownClass, name: 'bad', uid: 'bad', value: {} }],
    ['a ReferenceGrant without a spec', { ...objectOf(grant('bad', [], [])), value: {} }],
    ['a ReferenceGrant of nothing', objectOf(grant('bad', [null as unknown as object], [{}]))],
    ['a route without a spec', { ...good, name: 'bad', uid: 'bad', value: {} }],
    ['a route with parents that are no list', { ...good, name: 'bad', uid: 'bad', value: { spec: { parentRefs: 1 } } }],
    ['a route with rules that are null', routeOf('bad', 'default', [null as unknown as object])],
    ['a route with matches that are null', routeOf('bad', 'default', [{ matches: [null] }])],
    ['a route with a header without a name', routeOf('bad', 'default', [{ matches: [{ headers: [{ value: 3 }] }] }])],
    ['a route with filters that are no list', routeOf('bad', 'default', [{ filters: {}, backendRefs }])],
    ['a route with backends that are null', routeOf('bad', 'default', [{ backendRefs: [null] }])],
    [
      'a route with a status that is null',
      { ...good, name: 'bad', uid: 'bad', value: { spec: {}, status: { parents: null } } },
    ],
  ] as const)
    it(`does not stop the others: ${what}`, async () => {
      const { hosts } = await gatewayApi()([ownClass, edge, service, object, permit, good]);
      assert.deepEqual(hosts, ['good.example']);
    });

  it('is refused, and closes what it may guard in its namespace', async () => {
    const open = clusterObject('Mapping', 'default/open', {
      spec: { prefix: '/', service: 'orders', bypass_auth: true },
    });
    const bad = routeOf('bad', 'default', [null as unknown as object]);
    const { hosts, statuses } = await gatewayApi()([ownClass, edge, service, bad], [open]);
    assert.deepEqual(hosts, ['open refused']);
    assert.deepEqual(statuses.at(-1), 'HTTPRoute bad 1 parents Accepted: UnsupportedValue');
  });
});

describe('a route with more Mappings than can be kept', () => {
  it('is refused before they are made, and closes what it may guard in its namespace', async () => {
    const matches = Array.from({ length: 128 }, (_, index) => ({ path: { value: `/${index}` } }));
    const many = Array.from({ length: 16 }, () => backendRefs[0]);
    const huge = routeOf('huge', 'default', [{ matches, backendRefs: many }, { backendRefs }]);
    const open = clusterObject('Mapping', 'default/open', {
      spec: { prefix: '/', service: 'orders', bypass_auth: true },
    });
    const { hosts, statuses } = await gatewayApi()([ownClass, edge, service, huge], [open]);
    assert.deepEqual(hosts, ['huge.example refused', 'open refused']);
    assert.deepEqual(statuses.at(-1), 'HTTPRoute huge 1 parents Accepted: UnsupportedValue');
  });
});

describe('the last valid version of a refused route', () => {
  const from = [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: 'shop' }];
  const permit = objectOf(grant('permit', from, [{ group: '', kind: 'Service' }]));
  const valid = routeOf('shop', 'shop');
  const refused = { ...routeOf('shop', 'shop', [{ backendRefs, retry: {} }]), createdAt: valid.createdAt };

  it('stays as it is while nothing else changes', async () => {
    const resolve = gatewayApi();
    await resolve([ownClass, edge, service, permit, valid]);
    const { hosts, statuses } = await resolve([ownClass, edge, service, permit, refused]);
    assert.deepEqual(hosts, ['shop.example']);
    assert.deepEqual(statuses.at(-1), 'HTTPRoute shop 1 parents Accepted: UnsupportedValue');
  });

  it('does not call a Service of another namespace that permits it no longer', async () => {
    const resolve = gatewayApi();
    await resolve([ownClass, edge, service, permit, valid]);
    await resolve([ownClass, edge, service, permit, refused]);
    for (const _ of [1, 2])
      assert.deepEqual((await resolve([ownClass, edge, service, refused])).hosts, ['shop.example fault']);
    assert.deepEqual((await resolve([ownClass, edge, service, permit, refused])).hosts, ['shop.example']);
  });

  it('does not keep a host that has another listener now', async () => {
    const resolve = gatewayApi();
    const http = { port: 80, protocol: 'HTTP' };
    const own = { name: 'own', ...http, hostname: 'shop.example' };
    const all = { name: 'http', ...http, allowedRoutes: everybody };
    const both = routeOf('shop', 'shop');
    const value = {
      spec: { parentRefs: [{ name: 'edge', namespace: 'default' }], hostnames: ['shop.example', 'b.example'] },
    };
    await resolve([ownClass, edge, service, { ...both, value }]);
    const wrong = { ...both, value: { spec: { ...value.spec, rules: [{ retry: {} }] } } };
    const taken = { ...edge, value: { spec: { gatewayClassName: 'frontdesk', listeners: [all, own] } } };
    assert.deepEqual((await resolve([ownClass, taken, service, wrong])).hosts, ['b.example fault']);
  });
});

describe('the routes of a large cluster', () => {
  it('are resolved in several turns of the event loop, so that requests can run in between', async () => {
    const api = createGatewayApi({ trusted, addresses: [], ports: { http: [80], https: [] } });
    const routes = Array.from({ length: 1000 }, (_, index) => routeOf(`r${index}`));
    let isResolved = false;
    void api.resolve([ownClass, edge, service, ...routes], []).then(() => {
      isResolved = true;
    });
    let turns = 0;
    for (; !isResolved; turns += 1) await nextTurn();
    // A hundred routes in each turn, and again to compare them with what they were before.
    assert.ok(turns >= 20, `${turns} turns`);
  });
});

describe('what was served', () => {
  const shop = routeOf('shop');
  const foreign = objectOf({ ...gatewayClass, spec: { controllerName: 'example.com/other' } });

  it('is no longer, and says so, when the GatewayClass is gone', async () => {
    const resolve = gatewayApi();
    assert.deepEqual((await resolve([ownClass, edge, service, shop])).hosts, ['shop.example']);
    const { hosts, statuses } = await resolve([edge, service, shop]);
    assert.deepEqual(hosts, []);
    assert.deepEqual(statuses, [
      'Gateway edge Accepted: Pending Programmed: Invalid',
      'HTTPRoute shop 1 parents Accepted: NoMatchingParent',
    ]);
  });

  for (const [what, objects] of [
    ['GatewayClass has another controller', [foreign, edge]],
    ['Gateway is gone', [ownClass]],
  ] as const)
    it(`is no longer, and the route has no status of ours, when its ${what}`, async () => {
      const resolve = gatewayApi();
      await resolve([ownClass, edge, service, shop]);
      const { hosts, statuses } = await resolve([...objects, service, shop]);
      assert.deepEqual(hosts, []);
      assert.deepEqual(statuses.at(-1), 'HTTPRoute shop 0 parents');
    });
});
