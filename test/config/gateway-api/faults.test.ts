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
  const { notices, accepted, statuses } = await createGateways()(objects.map(objectOf).concat(service));
  const { verdicts } = accepted;
  const conditions = statuses.flatMap(({ status }) =>
    status.kind === 'Route' ? status.parents.flatMap((parent) => parent.conditions) : [],
  );
  return {
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
