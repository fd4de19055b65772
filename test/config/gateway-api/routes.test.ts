/** Routes as a whole: their time-outs, their statuses, those that are refused, and those that stay as they are. */
import assert from 'node:assert/strict';
import type { KubernetesObject } from '../../support/kubernetes/client.ts';
import {
  gateway,
  gatewayClass,
  grpcRoute,
  httpListener,
  httpRoute,
  policyFilter,
  serviceObject,
  withSpec,
} from '../../support/kubernetes/gateway-objects.ts';
import { createCluster, edge, mappingsOf, orders } from './cluster.ts';

const rule = { backendRefs: [orders] };

describe('the time-outs of a rule', () => {
  const usual = 3000;
  for (const [timeouts, expected] of [
    [undefined, usual],
    [{ request: '2s' }, 2000],
    [{ backendRequest: '500ms' }, 500],
    [{ request: '2s', backendRequest: '500ms' }, 500],
    [{ request: '1m30s' }, 90_000],
    [{ request: '0s' }, 0],
    [{ request: '0s', backendRequest: '500ms' }, 500],
    [{ request: '2s', backendRequest: '0s' }, 2000],
  ] as const)
    it(`${JSON.stringify(timeouts)} are ${expected} ms`, async () => {
      const [mapping] = await mappingsOf([{ timeouts }]);
      assert.equal(mapping?.timeoutMs ?? usual, expected);
    });
});

describe('a route that has not changed', () => {
  it('is the same object, whatever else changes', async () => {
    const resolve = createCluster();
    const [shop, cars] = [httpRoute('shop', [rule]), httpRoute('cars', [rule])];
    const before = (await resolve(...edge, shop, cars)).routes;
    const after = (await resolve(...edge, serviceObject('new'), shop, withSpec(cars, { hostnames: ['new.example'] })))
      .routes;
    assert.equal(after[0], before[0]);
    assert.notEqual(after[1], before[1]);
  });

  it('is another object if one of its Services has changed', async () => {
    const resolve = createCluster();
    const shop = httpRoute('shop', [rule]);
    const before = (await resolve(...edge, shop)).routes;
    const objects = edge.filter(({ metadata }) => metadata.name !== 'orders');
    const after = (await resolve(...objects, shop)).routes;
    assert.notEqual(after[0], before[0]);
  });
});

describe('a route that cannot be served as it is written', () => {
  const wrong = httpRoute('shop', [{ ...rule, matches: [{ path: { type: 'RegularExpression', value: '(' } }] }]);
  const unsupported = httpRoute('shop', [{ ...rule, filters: [{ type: 'ExternalAuth' }] }]);
  const other = httpRoute('cars', [rule]);

  async function states(...routes: readonly KubernetesObject[]) {
    const { mappings, conditionsOf } = await createCluster()(...edge, ...routes);
    const found = mappings.map(({ name, refusal }) => [name, refusal === undefined ? 'served' : 'refused']);
    return { found: Object.fromEntries(found), conditions: routes.map((route) => conditionsOf(route)?.[0]) };
  }

  it('is refused, and no other one is', async () => {
    assert.deepEqual(await states(unsupported, other), {
      found: { 'httproute/default/shop/1': 'refused', 'httproute/default/cars/1': 'served' },
      conditions: ['edge: Accepted=False (UnsupportedValue) ResolvedRefs', 'edge: Accepted ResolvedRefs'],
    });
  });

  it('is refused as a whole, with rules that are right', async () => {
    const both = httpRoute('shop', [{ ...rule, matches: [{ path: { value: '/a' } }] }, ...Object(wrong['spec']).rules]);
    assert.deepEqual((await states(both)).found, { 'httproute/default/shop/1': 'refused' });
  });

  it('keeps its last valid version', async () => {
    const resolve = createCluster();
    await resolve(...edge, httpRoute('shop', [{ ...rule, matches: [{ path: { value: '/a' } }] }]));
    const { mappings, conditionsOf } = await resolve(...edge, unsupported);
    assert.deepEqual(
      mappings.map(({ prefix, refusal }) => [prefix, refusal]),
      [['/a', undefined]],
    );
    assert.deepEqual(conditionsOf(unsupported), ['edge: Accepted=False (UnsupportedValue) ResolvedRefs']);
  });

  it('closes the routes of its namespace that skip the AuthService if its match cannot be read', async () => {
    const open = { ...rule, filters: [policyFilter('open')] };
    const policy = {
      apiVersion: 'gateway.local/v1',
      kind: 'RoutePolicy',
      metadata: { name: 'open', namespace: 'default' },
    };
    const objects = [...edge, { ...policy, spec: { bypass_auth: true } }, httpRoute('cars', [open])];
    const refusals = async (...more: readonly KubernetesObject[]) =>
      (await createCluster()(...objects, ...more)).mappings.map(({ refusal }) => refusal !== undefined);
    assert.deepEqual(await refusals(), [false]);
    assert.deepEqual(await refusals(wrong), [true]);
  });

  it('is refused with more Mappings than any team has', async () => {
    const matches = Array.from({ length: 64 }, (_, index) => ({ path: { value: `/${index}` } }));
    const hostnames = Array.from({ length: 16 }, (_, index) => `${index}.example`);
    const route = withSpec(
      httpRoute(
        'shop',
        [rule, rule].map((one) => ({ ...one, matches })),
      ),
      { hostnames },
    );
    const { errors } = await createCluster()(...edge, route);
    assert.deepEqual(errors, ['more than 2000 Mappings: split the route']);
  });
});

describe('the status of a route', () => {
  const generation = 7;
  const withGeneration = (object: KubernetesObject) => ({ ...object, metadata: { ...object.metadata, generation } });

  it('has the generation that it is about, and its parents as they are written', async () => {
    const parentRefs = [{ name: 'edge', sectionName: 'http' }];
    const shop = withGeneration(withSpec(httpRoute('shop', [rule]), { parentRefs }));
    const { statusOf } = await createCluster()(...edge, shop);
    const condition = { status: 'True', message: '', observedGeneration: generation };
    assert.deepEqual(statusOf(shop), {
      kind: 'Route',
      parents: [
        {
          parentRef: parentRefs[0],
          controllerName: 'gateway.local/gateway-controller',
          conditions: ['Accepted', 'ResolvedRefs'].map((type) => ({ ...condition, type, reason: type })),
        },
      ],
    });
  });

  it('is about the generation of its Gateway in that one', async () => {
    const one = withGeneration(gateway('edge', [httpListener]));
    const status = Object((await createCluster()(gatewayClass, one)).statusOf(one));
    const all = [...status.conditions, ...status.listeners[0].conditions];
    assert.ok(all.length === 5 && all.every(({ observedGeneration }) => observedGeneration === generation));
    assert.deepEqual(status.addresses, [{ type: 'IPAddress', value: '192.0.2.1' }]);
  });

  it('loses its parents when its Gateway is no longer there, and only if it had ours', async () => {
    const parentOf = (controllerName: string) => ({ status: { parents: [{ controllerName }] } });
    const [ours, theirs] = [
      { ...httpRoute('ours', [rule]), ...parentOf('gateway.local/gateway-controller') },
      { ...httpRoute('theirs', [rule]), ...parentOf('example.com/other') },
    ];
    const { statusOf } = await createCluster()(gatewayClass, ours, theirs);
    assert.deepEqual([statusOf(ours), statusOf(theirs)], [{ kind: 'Route', parents: [] }, undefined]);
  });

  it('counts at a listener each route that attaches to it once, whatever its kind and state', async () => {
    const twice = withSpec(httpRoute('twice', [rule]), { parentRefs: [{ name: 'edge' }, { name: 'edge', port: 80 }] });
    const routes = [
      httpRoute('shop', [rule]),
      grpcRoute('calls', [rule]),
      twice,
      httpRoute('refused', [{ ...rule, filters: [{ type: 'ExternalAuth' }] }]),
      withSpec(httpRoute('elsewhere', [rule]), { parentRefs: [{ name: 'edge', sectionName: 'none' }] }),
    ];
    const { conditionsOf } = await createCluster()(...edge, ...routes);
    assert.deepEqual(conditionsOf(gateway('edge', []))?.slice(1), [
      'http: Accepted ResolvedRefs Programmed, 4 attached',
    ]);
  });

  it('has a notice beside it for each parent that it does not attach to', async () => {
    const parentRefs = [{ name: 'edge' }, { name: 'edge', sectionName: 'none' }];
    const { notices } = await createCluster()(...edge, withSpec(httpRoute('shop', [rule]), { parentRefs }));
    assert.deepEqual(notices, ['HTTPRoute default/shop: the Gateway has no listener none, but http (80)']);
  });
});
