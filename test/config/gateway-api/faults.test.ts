/** What is said about Gateways and routes that are not served as they are written: enough to find and mend the fault. */
import assert from 'node:assert/strict';
import type { KubernetesObject } from '../../support/kubernetes/client.ts';
import { clusterObject } from '../../support/kubernetes/cluster-objects.ts';
import { gateway, gatewayClass, httpListener, httpRoute, objectOf } from '../../support/kubernetes/gateway-objects.ts';
import { createGateways } from './cluster.ts';

const ports = [{ port: 80 }, { port: 53, protocol: 'UDP' }, { port: 8443 }];
const service = clusterObject('Service', 'default/orders', { spec: { ports } }, 'v1');
const orders = { name: 'orders', port: 80 };

/** What is said about these objects, beside a Service `orders`, and frontdesk's class unless there is another. */
async function faultsOf(...given: readonly KubernetesObject[]) {
  const objects = given.some(({ kind }) => kind === 'GatewayClass') ? given : [gatewayClass, ...given];
  const { notices, unserved, accepted, statuses } = await createGateways()(objects.map(objectOf).concat(service));
  const { verdicts } = accepted;
  const conditions = statuses.flatMap(({ status }) =>
    status.kind === 'Route' ? status.parents.flatMap((parent) => parent.conditions) : [],
  );
  return {
    unserved,
    notices: notices.map(({ source: { file }, message, remedy }) => `${file}: ${message}. ${remedy}`),
    errors: verdicts.flatMap(({ errors }) => errors.map(({ message, remedy }) => `${message}. ${remedy}`)),
    consequences: verdicts.map(({ consequence }) => consequence),
    messages: conditions.flatMap(({ status, message }) => (status === 'False' ? message : [])),
  };
}

const edge = gateway('edge', [httpListener]);

function routeWith(rule: object, spec: object = {}): KubernetesObject {
  const route = httpRoute('shop', [{ backendRefs: [orders], ...rule }]);
  return { ...route, spec: { ...Object(route['spec']), ...spec } };
}

describe('a mistyped name', () => {
  it('of a Gateway is a notice, because no controller says anything about the route', async () => {
    const { notices, messages } = await faultsOf(edge, routeWith({}, { parentRefs: [{ name: 'egde' }] }));
    assert.deepEqual(notices, [
      'HTTPRoute default/shop: frontdesk finds no Gateway default/egde. Correct name and namespace in parentRefs, or create the Gateway.',
    ]);
    assert.deepEqual(messages, []);
  });

  it('of a GatewayClass is a notice, because no controller says anything about the Gateway', async () => {
    const spec = { gatewayClassName: 'frontdsk', listeners: [httpListener] };
    assert.deepEqual((await faultsOf({ ...edge, spec })).notices, [
      'Gateway default/edge: there is no GatewayClass frontdsk. Correct gatewayClassName, or create the GatewayClass.',
    ]);
  });

  it('of the controller is a notice, as well as a missing class', async () => {
    const other = { ...gatewayClass, spec: { controllerName: 'gateway.local/gateway' } };
    assert.deepEqual((await faultsOf(other)).notices, [
      'the cluster: no GatewayClass has the controllerName gateway.local/gateway-controller, so no Gateway is served. Apply config/deploy/kubernetes/components/gateway-api/gateway-class.yaml, after the definitions of the Gateway API.',
    ]);
  });

  it('is none if the Gateway is that of another controller', async () => {
    const other = {
      ...gatewayClass,
      metadata: { name: 'other' },
      spec: { controllerName: 'other.example/controller' },
    };
    const theirs = { ...edge, spec: { gatewayClassName: 'other', listeners: [httpListener] } };
    assert.deepEqual((await faultsOf(gatewayClass, other, theirs, routeWith({}))).notices, []);
  });

  for (const [what, parent, expected] of [
    ['name', { sectionName: 'htpt' }, 'no listener htpt, but http (80)'],
    ['port', { port: 81 }, 'no listener with the port 81, but http (80)'],
    ['port beside a name', { sectionName: 'http', port: 81 }, 'no listener http with the port 81, but http (80)'],
  ] as const)
    it(`of a listener by ${what} is answered with those that exist`, async () => {
      const { messages } = await faultsOf(edge, routeWith({}, { parentRefs: [{ name: 'edge', ...parent }] }));
      assert.deepEqual(messages, [`The Gateway has ${expected}. Correct sectionName and port, or add the listener.`]);
    });

  it('or number of a port is answered with those of the Service for TCP', async () => {
    const { messages } = await faultsOf(edge, routeWith({ backendRefs: [{ name: 'orders', port: 8080 }] }));
    assert.deepEqual(messages, ['Service default/orders has no port 8080. Name one of its ports for TCP: 80, 8443.']);
  });
});

describe('the number of objects that are not served as a whole', () => {
  const none = { GatewayClass: 0, Gateway: 0, HTTPRoute: 0, GRPCRoute: 0 };
  const missing = { backendRefs: [{ name: 'none', port: 80 }] };
  const spec = { gatewayClassName: 'frontdsk', listeners: [httpListener] };
  const otherClass = { ...gatewayClass, spec: { controllerName: 'other.example/controller' } };
  const tls = { certificateRefs: [{ name: 'none' }] };
  const secure = { name: 'https', port: 443, protocol: 'HTTPS', tls };

  for (const [what, objects, expected] of [
    ['is 0 while all are', [edge, routeWith({})], {}],
    [
      'counts a Gateway with a listener whose Secret is missing',
      [gateway('edge', [httpListener, secure])],
      { Gateway: 1 },
    ],
    ['counts a Gateway once', [gateway('edge', [secure, { ...secure, name: 'other' }])], { Gateway: 1 }],
    ['counts a Gateway without a class', [{ ...edge, spec }], { Gateway: 1 }],
    ['counts that no class is of frontdesk', [otherClass], { GatewayClass: 1 }],
    ['counts a route without a backend', [edge, routeWith(missing)], { HTTPRoute: 1 }],
    [
      'counts a route that no listener serves',
      [edge, { ...routeWith({}, { parentRefs: [{ name: 'edge', port: 1 }] }), kind: 'GRPCRoute' }],
      { GRPCRoute: 1 },
    ],
    [
      'leaves out a route of a Gateway that may be elsewhere',
      [edge, routeWith({}, { parentRefs: [{ name: 'far', namespace: 'far' }] })],
      {},
    ],
  ] as const)
    it(what, async () => assert.deepEqual((await faultsOf(...objects)).unserved, { ...none, ...expected }));
});

describe('a refused route', () => {
  const mirror = { type: 'RequestMirror', requestMirror: { backendRef: orders } };

  it('answers 503, and says so', async () => {
    const { consequences } = await faultsOf(edge, routeWith({ filters: [mirror, mirror] }));
    assert.deepEqual(consequences, ['requests that it matches get 503']);
  });

  it('names the filter that is one too many', async () => {
    const { messages } = await faultsOf(edge, routeWith({ filters: [mirror, mirror] }));
    assert.deepEqual(messages, [
      'spec.rules[0]: a second filter of the type RequestMirror is not supported. Remove it.',
    ]);
  });

  it('has no other errors for a filter that a backend cannot have', async () => {
    const filters = [{ type: 'URLRewrite', urlRewrite: { hostname: 'other.example' } }];
    assert.deepEqual((await faultsOf(edge, routeWith({ backendRefs: [{ ...orders, filters }] }))).errors, [
      'spec.rules[0]: a filter of the type URLRewrite in a backend is not supported. Remove it.',
    ]);
  });
});

describe('a field that a RoutePolicy cannot have', () => {
  for (const [name, value, expected] of [
    ['auth_sevice', 'tokens', 'unknown key "auth_sevice", did you mean "auth_service"?'],
    ['prefix', '/orders', 'prefix is not a field of a RoutePolicy'],
    ['kind', 'Mapping', 'kind is not a field of a RoutePolicy'],
  ] as const)
    it(`is one error: ${name}`, async () => {
      const policy = clusterObject('RoutePolicy', 'default/gold', { spec: { [name]: value } });
      const { accepted } = await createGateways()([], [policy]);
      assert.deepEqual(
        accepted.verdicts.flatMap(({ errors }) => errors.map(({ message }) => message)),
        [expected],
      );
    });
});
