/** Tests of following a cluster: which objects are handed over, when, and in which form. */
import assert from 'node:assert/strict';
import {
  adminToken,
  describeWithKubernetes,
  type KubernetesServer,
  startKubernetes,
} from '../support/kubernetes/api-server.ts';
import { followCluster } from '../support/kubernetes/followed-cluster.ts';
import { mappingText, serviceOf, sliceOf } from '../support/kubernetes/objects.ts';
import { testServers } from '../support/serve.ts';
import { eventually } from '../support/waiting.ts';

describeWithKubernetes('a cluster that is followed', () => {
  const shared = testServers(after);
  const servers = testServers();
  let kubernetes: KubernetesServer;
  before(async () => {
    kubernetes = await startKubernetes(shared);
  });

  async function follow(namespace: string, options: Parameters<typeof followCluster>[2] = {}) {
    return followCluster(servers, await kubernetes.kubeconfig(adminToken, namespace), {
      namespaces: [namespace],
      ...options,
    });
  }

  it('hands over the Services with records, and then each change', async () => {
    const shop = await kubernetes.createNamespace();
    const orders = serviceOf(shop, 'orders', mappingText('orders'));
    await kubernetes.apply(orders, serviceOf(shop, 'plain'));
    const cluster = await follow(shop);
    await cluster.ready;
    assert.deepEqual(cluster.deliveries, [[`Service ${shop}/orders`]]);
    const [first] = cluster.objects();
    assert.deepEqual(first?.value, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: {
        name: 'orders',
        namespace: shop,
        uid: first?.uid,
        annotations: { 'gateway.local/config': mappingText('orders') },
      },
    });
    const users = serviceOf(shop, 'users', mappingText('users'));
    await kubernetes.apply(users);
    await cluster.waitFor(`Service ${shop}/orders`, `Service ${shop}/users`);
    await kubernetes.remove(orders);
    await cluster.waitFor(`Service ${shop}/users`);
    await kubernetes.patch(users, { metadata: { annotations: { 'gateway.local/config': null } } });
    await cluster.waitFor();
  });

  it('hands over the Services and EndpointSlices, and then those that have changed', async () => {
    const shop = await kubernetes.createNamespace();
    const slice = sliceOf(shop, 'orders', ['10.1.0.1']);
    await kubernetes.apply(serviceOf(shop, 'orders'), slice);
    const cluster = await follow(shop);
    await cluster.ready;
    const [first] = cluster.addressChanges;
    const service = {
      kind: 'Service',
      metadata: { namespace: shop, name: 'orders' },
      spec: {
        type: 'ClusterIP',
        clusterIP: 'None',
        ipFamilies: ['IPv4', 'IPv6'],
        externalName: undefined,
        ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 80 }],
      },
    };
    const sliceAt = (address: string) => ({
      kind: 'EndpointSlice',
      metadata: { namespace: shop, name: 'orders-1', labels: { 'kubernetes.io/service-name': 'orders' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [address], conditions: { ready: true } }],
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    });
    const nothing = { present: [], gone: [], isWhole: false };
    assert.deepEqual(first, {
      services: { present: [service], gone: [], isWhole: true },
      slices: { present: [sliceAt('10.1.0.1')], gone: [], isWhole: true },
    });
    await kubernetes.apply(sliceOf(shop, 'orders', ['10.1.0.2']));
    await eventually(() =>
      assert.deepEqual(cluster.addressChanges[1], {
        services: nothing,
        slices: { ...nothing, present: [sliceAt('10.1.0.2')] },
      }),
    );
    await kubernetes.remove(slice);
    await eventually(() =>
      assert.deepEqual(cluster.addressChanges[2], {
        services: nothing,
        slices: { ...nothing, gone: [sliceAt('10.1.0.2')] },
      }),
    );
    assert.equal(cluster.deliveries.length, 1);
  });

  it("reads the namespaces that are listed and frontdesk's own, and no others", async () => {
    const [own, shop, other] = [
      await kubernetes.createNamespace(),
      await kubernetes.createNamespace(),
      await kubernetes.createNamespace(),
    ];
    for (const namespace of [own, shop, other])
      await kubernetes.apply(serviceOf(namespace, 'orders', mappingText('orders')));
    const cluster = await followCluster(servers, await kubernetes.kubeconfig(adminToken, own), { namespaces: [shop] });
    await cluster.waitFor(`Service ${own}/orders`, `Service ${shop}/orders`);
    assert.equal(cluster.namespace, own);
    const all = await followCluster(servers, await kubernetes.kubeconfig(adminToken, own));
    await all.ready;
    assert.ok(all.deliveries[0]?.includes(`Service ${other}/orders`));
  });
});
