/** Tests of reading the Gateway API: which objects are handed over, in which form, and what counts as a change. */
import assert from 'node:assert/strict';
import type { ClusterObject } from '#config';
import { type ClusterOptions, readClusterOnce } from '#kubernetes';
import { ApiFailure, describeFailure } from '../../../src/kubernetes/api/failure.ts';
import { discoverKinds } from '../../../src/kubernetes/read/resources.ts';
import {
  adminToken,
  eachInNamespace,
  type KubernetesServer,
  readerToken,
} from '../../support/kubernetes/api-server.ts';
import type { KubernetesObject, Rule } from '../../support/kubernetes/client.ts';
import { followCluster } from '../../support/kubernetes/followed-cluster.ts';
import { defineGatewayApi, describeWithGatewayApi } from '../../support/kubernetes/gateway-api.ts';
import { mappingText, serviceOf } from '../../support/kubernetes/objects.ts';
import { testServers } from '../../support/serve.ts';
import { eventually } from '../../support/waiting.ts';

const group = 'gateway.networking.k8s.io';

describeWithGatewayApi('the Gateway API of a cluster', () => {
  const servers = testServers();
  let kubernetes: KubernetesServer;
  let shop: string;
  eachInNamespace((server, namespace) => {
    [kubernetes, shop] = [server, namespace];
  });

  async function follow(token = adminToken, options: Partial<ClusterOptions> = {}) {
    const times = { backoffMs: [20, 200], discoveryMs: 100 } as const;
    const cluster = await followCluster(servers, await kubernetes.kubeconfig(token, shop), {
      namespaces: [shop],
      readsGatewayApi: true,
      times,
      ...options,
    });
    /** All but the objects of other tests, which are the namespaces and whatever else belongs to the whole cluster. */
    const ours = () => cluster.gatewayApi().filter(({ namespace, name }) => [namespace, name].includes(shop));
    return {
      ...cluster,
      ours,
      find(kind: string, name: string): ClusterObject {
        const found = ours().find((one) => one.kind === kind && one.name === name);
        return found ?? assert.fail(`there is no ${kind} ${name}`);
      },
      waitForOurs: (...names: readonly string[]) =>
        eventually(() => assert.deepEqual(ours().map(kindAndName).sort(), [`Namespace ${shop}`, ...names].sort())),
    };
  }

  const objectOf = (kind: string, name: string, spec: object, namespace = shop): KubernetesObject => ({
    apiVersion: `${group}/v1`,
    kind,
    metadata: { name, namespace },
    spec,
  });
  const classOf = (name: string) =>
    objectOf('GatewayClass', name, { controllerName: 'gateway.local/gateway-controller' });
  const routeOf = (name: string, namespace = shop) =>
    objectOf('HTTPRoute', name, { hostnames: [`${name}.example.com`] }, namespace);
  const secretOf = (name: string, data: object, type = 'kubernetes.io/tls'): KubernetesObject => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: shop },
    type,
    data,
  });
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const certificate = { 'tls.crt': base64('certificate'), 'tls.key': base64('key') };

  it('counts kinds that are not installed as empty, and reads them as soon as they are', async () => {
    const cluster = await follow();
    await cluster.ready;
    assert.deepEqual([cluster.ours().map(kindAndName), cluster.faults()], [[`Namespace ${shop}`], []]);
    await defineGatewayApi(kubernetes);
    await kubernetes.apply(routeOf('orders'));
    await cluster.waitForOurs('HTTPRoute orders');
  });

  describe('with its definitions', () => {
    before(() => defineGatewayApi(kubernetes));

    it('hands over its kinds, and the Namespaces, Services and TLS Secrets to which they may refer', async () => {
      await kubernetes.apply(
        classOf(shop),
        objectOf('Gateway', 'gate', {
          gatewayClassName: shop,
          listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
        }),
        routeOf('orders'),
        objectOf('GRPCRoute', 'calls', { hostnames: ['calls.example.com'] }),
        objectOf('ReferenceGrant', 'grant', {
          from: [{ group, kind: 'HTTPRoute', namespace: 'other' }],
          to: [{ group: '', kind: 'Service' }],
        }),
        secretOf('certificate', { ...certificate, other: base64('other') }),
        secretOf('password', { password: base64('secret') }, 'Opaque'),
        serviceOf(shop, 'orders'),
        serviceOf(shop, 'users', mappingText('users')),
      );
      const cluster = await follow();
      await cluster.ready;
      assert.deepEqual(cluster.deliveries, [[`Service ${shop}/users`]]);
      assert.deepEqual(cluster.ours().map(kindAndName).sort(), [
        'GRPCRoute calls',
        'Gateway gate',
        `GatewayClass ${shop}`,
        'HTTPRoute orders',
        `Namespace ${shop}`,
        'ReferenceGrant grant',
        'Secret certificate',
        'Service orders',
        'Service users',
      ]);
      const found = (kind: string, name: string) => {
        const { uid, createdAt, ...object } = cluster.find(kind, name);
        assert.match(createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
        return { uid, object };
      };
      const gate = found('Gateway', 'gate');
      const { spec, status, ...rest } = gate.object.value as { spec: { gatewayClassName: string }; status: object };
      const [apiVersion, kind] = [`${group}/v1`, 'Gateway'];
      assert.deepEqual(
        { ...gate.object, value: rest },
        {
          ...{ apiVersion, kind, namespace: shop, name: 'gate' },
          value: { apiVersion, kind, metadata: { name: 'gate', namespace: shop, uid: gate.uid, generation: 1 } },
        },
      );
      assert.equal(spec.gatewayClassName, shop);
      // The definition has conditions by default.
      assert.match(JSON.stringify(status), /"type":"Accepted"/);
      assert.equal(found('GatewayClass', shop).object.namespace, '');
      const core = { apiVersion: 'v1' };
      assert.deepEqual(found('Namespace', shop).object, {
        ...{ ...core, kind: 'Namespace', namespace: '', name: shop },
        value: {
          ...{ ...core, kind: 'Namespace' },
          metadata: { name: shop, labels: { 'kubernetes.io/metadata.name': shop } },
        },
      });
      assert.deepEqual(found('Secret', 'certificate').object, {
        ...{ ...core, kind: 'Secret', namespace: shop, name: 'certificate' },
        value: { ...core, kind: 'Secret', type: 'kubernetes.io/tls', data: certificate },
      });
      assert.deepEqual(found('Service', 'orders').object, {
        ...{ ...core, kind: 'Service', namespace: shop, name: 'orders' },
        value: {
          ...{ ...core, kind: 'Service' },
          spec: {
            ...{ type: 'ClusterIP', clusterIP: 'None', ipFamilies: ['IPv4', 'IPv6'], externalName: undefined },
            ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 80 }],
          },
        },
      });
    });

    it('reads what belongs to the whole cluster, and everything else in the namespaces that are listed', async () => {
      const other = await kubernetes.createNamespace();
      await kubernetes.apply(routeOf('orders'), routeOf('orders', other), classOf(other));
      const cluster = await follow();
      await cluster.waitForOurs('HTTPRoute orders');
      const ofOther = cluster.gatewayApi().filter(({ namespace, name }) => [namespace, name].includes(other));
      assert.deepEqual(ofOther.map(kindAndName).sort(), [`GatewayClass ${other}`, `Namespace ${other}`]);
      const all = await follow(adminToken, { namespaces: [] });
      await eventually(() => assert.ok(all.gatewayApi().some(({ namespace }) => namespace === other)));
    });

    it('hands over each change of a spec, a label of a Namespace or a certificate, and what is deleted', async () => {
      const [route, secret] = [routeOf('orders'), secretOf('certificate', certificate)];
      await kubernetes.apply(route, secret);
      const cluster = await follow();
      await cluster.waitForOurs('HTTPRoute orders', 'Secret certificate');
      const textOf = (kind: string, name: string) => JSON.stringify(cluster.find(kind, name).value);
      await kubernetes.patch(route, { spec: { hostnames: ['new.example.com'] } });
      await eventually(() =>
        assert.match(textOf('HTTPRoute', 'orders'), /"generation":2.*"hostnames":\["new.example.com"\]/),
      );
      const namespace = await kubernetes.get('v1', 'Namespace', shop);
      await kubernetes.patch(namespace, { metadata: { labels: { team: 'shop' } } });
      await eventually(() => assert.match(textOf('Namespace', shop), /"team":"shop"/));
      await kubernetes.patch(secret, { data: { 'tls.crt': base64('renewed') } });
      await eventually(() => assert.ok(textOf('Secret', 'certificate').includes(base64('renewed'))));
      await kubernetes.remove(secret);
      await cluster.waitForOurs('HTTPRoute orders');
      await kubernetes.remove(route);
      await cluster.waitForOurs();
    });

    it('hands nothing over when only a status, a label or an annotation of an object changes', async () => {
      const [route, secret] = [routeOf('orders'), secretOf('certificate', certificate)];
      await kubernetes.apply(route, secret);
      const cluster = await follow();
      await cluster.waitForOurs('HTTPRoute orders', 'Secret certificate');
      const [count, value] = [cluster.deliveries.length, cluster.find('HTTPRoute', 'orders').value];
      const path = `/apis/${group}/v1/namespaces/${shop}/httproutes/orders/status`;
      const written = await kubernetes.request(
        'PATCH',
        path,
        { status: { parents: [] } },
        'application/merge-patch+json',
      );
      assert.equal(written.status, 200);
      const others = { metadata: { labels: { team: 'shop' }, annotations: { other: 'text' } } };
      await kubernetes.patch(route, others);
      await kubernetes.patch(secret, others);
      await kubernetes.patch(await kubernetes.get('v1', 'Namespace', shop), {
        metadata: { annotations: { other: 'text' } },
      });
      await kubernetes.apply(routeOf('users'));
      await cluster.waitForOurs('HTTPRoute orders', 'HTTPRoute users', 'Secret certificate');
      assert.equal(cluster.deliveries.length, count + 1);
      assert.equal(cluster.find('HTTPRoute', 'orders').value, value);
    });

    it('counts a part of a certificate that is too large as missing', async () => {
      await kubernetes.apply(secretOf('certificate', { ...certificate, 'tls.crt': base64('c'.repeat(200_000)) }));
      const cluster = await follow();
      await cluster.waitForOurs('Secret certificate');
      const { data } = cluster.find('Secret', 'certificate').value as { data: object };
      assert.deepEqual(Object.keys(data), ['tls.key']);
    });

    it('says which permission is missing, and goes on with everything else', async () => {
      const withdraw = await kubernetes.grant('frontdesk', ...allRules);
      const cluster = await follow(readerToken, { times: { watchMs: [1000, 1000], backoffMs: [20, 200] } });
      await cluster.ready;
      const withdrawSome = await kubernetes.grant('frontdesk', ...allRules.slice(0, -2));
      await withdraw();
      await cluster.waitForFault(
        /^secrets in the namespace .*: no permission .*: give get, list and watch on secrets in a Role of the namespace/m,
      );
      await cluster.waitForFault(
        /^gatewayclasses.gateway.networking.k8s.io: no permission .*: give .* on gatewayclasses.gateway.networking.k8s.io in a ClusterRole/m,
      );
      await kubernetes.apply(routeOf('orders'), serviceOf(shop, 'users', mappingText('users')));
      await cluster.waitForOurs('HTTPRoute orders', 'Service users');
      await cluster.waitFor(`Service ${shop}/users`);
      await withdrawSome();
    });

    it('reads it once for commands', async () => {
      await kubernetes.apply(routeOf('orders'), secretOf('certificate', certificate));
      const source = {
        environment: { KUBECONFIG: await kubernetes.kubeconfig(adminToken, shop) },
        gatewayDomain: 'gateway.local',
        namespaces: [shop],
      };
      const { objects } = await readClusterOnce({ ...source, readsGatewayApi: true });
      const found = objects.gatewayApi.filter(({ namespace }) => namespace === shop);
      assert.deepEqual(found.map(kindAndName).sort(), ['HTTPRoute orders', 'Secret certificate']);
      assert.deepEqual((await readClusterOnce(source)).objects.gatewayApi, []);
    });

    it('reads nothing of it unless it is asked to', async () => {
      const cluster = await follow(adminToken, { readsGatewayApi: false });
      await cluster.ready;
      assert.deepEqual(cluster.gatewayApi(), []);
      assert.deepEqual(cluster.resources(), ['services', 'endpointslices.discovery.k8s.io']);
    });
  });
});

describe('the kinds of the Gateway API', () => {
  it('are to be defined again by the manifest of the Gateway API, if the server does not know one any more', () => {
    const connection = {
      ...{ url: 'https://127.0.0.1', namespace: 'shop', origin: 'a file' },
      credentials: async () => ({ rejectUnauthorized: true }),
    };
    const failed = { resource: `httproutes.${group}`, namespace: undefined };
    assert.equal(
      describeFailure(new ApiFailure(404, {}), failed, connection),
      'the API server does not know httproutes.gateway.networking.k8s.io any more: define it again, for example with standard-install.yaml of the Gateway API',
    );
  });

  it('are read in v1, or in v1beta1 if v1 does not have them, and other kinds not at all', async () => {
    const kind = (name: string, plural: string) => ({ kind: name, name: plural, verbs: ['list', 'watch'] });
    const served: Readonly<Record<string, unknown>> = {
      [`/apis/${group}`]: { versions: ['v1beta1', 'v1', 'v1alpha2'].map((version) => ({ version })) },
      [`/apis/${group}/v1`]: {
        resources: [
          { ...kind('GatewayClass', 'gatewayclasses'), namespaced: false },
          { ...kind('TLSRoute', 'tlsroutes'), namespaced: true },
        ],
      },
      [`/apis/${group}/v1beta1`]: {
        resources: [
          { ...kind('GatewayClass', 'gatewayclasses'), namespaced: false },
          { ...kind('ReferenceGrant', 'referencegrants'), namespaced: true },
        ],
      },
      [`/apis/${group}/v1alpha2`]: { resources: [{ ...kind('GRPCRoute', 'grpcroutes'), namespaced: true }] },
    };
    const get = async (path: string) => served[path] ?? Promise.reject(new ApiFailure(404, {}));
    const unused = () => Promise.reject(new Error('not used'));
    const api = { get, request: unused, open: unused, close: () => {} };
    const kinds = await discoverKinds(api, { gatewayDomain: 'gateway.local', readsGatewayApi: true });
    assert.deepEqual(
      kinds.map(({ apiVersion, name, isNamespaced }) => [apiVersion, name, isNamespaced]),
      [
        [`${group}/v1`, `gatewayclasses.${group}`, false],
        [`${group}/v1beta1`, `referencegrants.${group}`, true],
      ],
    );
  });
});

function kindAndName({ kind, name }: ClusterObject): string {
  return `${kind} ${name}`;
}

const verbs = ['get', 'list', 'watch'];
/** The last two are withdrawn in a test. */
const allRules: readonly Rule[] = [
  { apiGroups: [''], resources: ['services', 'namespaces'], verbs },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs },
  { apiGroups: [group], resources: ['gateways', 'httproutes', 'grpcroutes', 'referencegrants'], verbs },
  { apiGroups: [group], resources: ['gatewayclasses'], verbs },
  { apiGroups: [''], resources: ['secrets'], verbs },
];
