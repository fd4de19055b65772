/** Tests of kinds that are defined in the cluster: found while the reader runs, in the version that the server has. */
import assert from 'node:assert/strict';
import type { ClusterOptions } from '#kubernetes';
import { startApiProxy } from '../support/kubernetes/api-proxy.ts';
import {
  adminToken,
  describeWithKubernetes,
  eachInNamespace,
  type KubernetesServer,
} from '../support/kubernetes/api-server.ts';
import type { KubernetesObject } from '../support/kubernetes/client.ts';
import { followCluster } from '../support/kubernetes/followed-cluster.ts';
import { definitionOf, mappingText, serviceOf } from '../support/kubernetes/objects.ts';
import { testServers } from '../support/serve.ts';
import { eventually } from '../support/waiting.ts';

const ambassador = 'getambassador.io';

describeWithKubernetes('kinds of a cluster', () => {
  const servers = testServers();
  let kubernetes: KubernetesServer;
  let shop: string;
  eachInNamespace((server, namespace) => {
    [kubernetes, shop] = [server, namespace];
  });

  async function follow(options: Partial<ClusterOptions> = {}) {
    const times = { backoffMs: [20, 200], discoveryMs: 100 } as const;
    const kubeconfig = await kubernetes.kubeconfig(adminToken, shop);
    return followCluster(servers, kubeconfig, { namespaces: [shop], times, ...options });
  }

  const objectOf = (apiVersion: string, kind: string, name: string, spec: object): KubernetesObject => ({
    apiVersion,
    kind,
    metadata: { name, namespace: shop },
    spec,
  });
  const mappingOf = (name: string) =>
    objectOf('gateway.local/v1', 'Mapping', name, { prefix: `/${name}/`, service: name });
  const nameOf = (kind: string, name: string) => `${kind} ${shop}/${name}`;

  it('counts a kind that is not installed as empty, and reads it as soon as it is', async () => {
    const cluster = await follow();
    await cluster.ready;
    assert.deepEqual([cluster.deliveries, cluster.faults()], [[[]], []]);
    const definition = definitionOf('gateway.local', 'Mapping');
    await kubernetes.apply(definition);
    await kubernetes.apply(mappingOf('orders'));
    await cluster.waitFor(nameOf('Mapping', 'orders'));
    const [found] = cluster.objects();
    assert.deepEqual(found, {
      apiVersion: 'gateway.local/v1',
      kind: 'Mapping',
      namespace: shop,
      name: 'orders',
      uid: found?.uid,
      createdAt: found?.createdAt,
      value: {
        apiVersion: 'gateway.local/v1',
        kind: 'Mapping',
        metadata: { name: 'orders', namespace: shop, uid: found?.uid, generation: 1 },
        spec: { prefix: '/orders/', service: 'orders' },
        status: undefined,
      },
    });
    assert.match(found?.createdAt ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    assert.deepEqual(cluster.resources(), ['services', 'endpointslices.discovery.k8s.io', 'mappings.gateway.local']);
  });

  it('hands nothing over when only a status, a label or an annotation of others changes', async () => {
    await kubernetes.apply(definitionOf('gateway.local', 'Mapping'));
    const orders = mappingOf('orders');
    await kubernetes.apply(orders);
    const cluster = await follow();
    await cluster.waitFor(nameOf('Mapping', 'orders'));
    const before = cluster.objects()[0]?.value;
    const path = `/apis/gateway.local/v1/namespaces/${shop}/mappings/orders/status`;
    const status = { status: { conditions: [{ type: 'Accepted', status: 'True' }] } };
    await kubernetes.request('PATCH', path, status, 'application/merge-patch+json');
    await kubernetes.patch(orders, { metadata: { labels: { team: 'shop' }, annotations: { other: 'text' } } });
    await kubernetes.apply(mappingOf('users'));
    await cluster.waitFor(nameOf('Mapping', 'orders'), nameOf('Mapping', 'users'));
    assert.equal(cluster.deliveries.length, 2);
    assert.equal(cluster.objects().find(({ name }) => name === 'orders')?.value, before);
    await kubernetes.patch(orders, { spec: { prefix: '/other/' } });
    await eventually(() => assert.equal(cluster.deliveries.length, 3));
  });

  it('hands over objects in the order of their age', async () => {
    await kubernetes.apply(definitionOf('gateway.local', 'Mapping'));
    await kubernetes.apply(mappingOf('zebra'));
    const [zebra] = await kubernetes.list('gateway.local/v1', 'Mapping', shop);
    // Times in the cluster have whole seconds.
    await eventually(async () => {
      const metadata = { name: `later-${Date.now()}`, namespace: shop };
      const [later] = await kubernetes.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata });
      assert.notEqual(later?.metadata['creationTimestamp'], zebra?.metadata['creationTimestamp']);
    }, 100);
    await kubernetes.apply(mappingOf('ant'), serviceOf(shop, 'bee', mappingText('bee')));
    const cluster = await follow();
    await cluster.ready;
    assert.deepEqual(cluster.deliveries, [
      [nameOf('Mapping', 'zebra'), nameOf('Mapping', 'ant'), nameOf('Service', 'bee')],
    ]);
  });

  it('keeps the objects of a kind that the server does not know any more', async () => {
    const definition = definitionOf('gateway.local', 'Mapping');
    await kubernetes.apply(definition);
    await kubernetes.apply(mappingOf('orders'));
    const cluster = await follow();
    await cluster.waitFor(nameOf('Mapping', 'orders'));
    await kubernetes.patch(definition, { spec: { versions: [{ ...versionOf(definition), served: false }] } });
    await cluster.waitForFault(/the API server does not know mappings.gateway.local any more/);
    assert.deepEqual(cluster.deliveries.at(-1), [nameOf('Mapping', 'orders')]);
    await kubernetes.apply(definition);
    await kubernetes.apply(mappingOf('users'));
    await cluster.waitFor(nameOf('Mapping', 'orders'), nameOf('Mapping', 'users'));
  });

  it('drops the objects of a kind that is deleted with them', async () => {
    const definition = definitionOf('gateway.local', 'Mapping');
    await kubernetes.apply(definition);
    await kubernetes.apply(mappingOf('orders'));
    const cluster = await follow();
    await cluster.waitFor(nameOf('Mapping', 'orders'));
    await kubernetes.remove(definition);
    await cluster.waitFor();
    await eventually(() => assert.deepEqual(cluster.faults(), []));
  });

  describe('with GATEWAY_DOMAIN=getambassador.io', () => {
    it("reads Ambassador's kinds in v2, which the cluster stores, and records of Services and Ingresses", async () => {
      await kubernetes.apply(
        definitionOf(ambassador, 'Mapping', ['v2', 'v3alpha1']),
        definitionOf(ambassador, 'Host', ['v3alpha1']),
      );
      await kubernetes.apply(
        objectOf(`${ambassador}/v2`, 'Mapping', 'orders', { prefix: '/orders/', service: 'orders' }),
        objectOf(`${ambassador}/v3alpha1`, 'Host', 'host', { hostname: 'example.com' }),
        serviceOf(shop, 'users', mappingText('users'), ambassador),
        {
          ...objectOf('networking.k8s.io/v1', 'Ingress', 'door', {
            defaultBackend: { service: { name: 'orders', port: { number: 80 } } },
          }),
          metadata: { name: 'door', namespace: shop, annotations: { [`${ambassador}/config`]: mappingText('door') } },
        },
      );
      const cluster = await follow({ gatewayDomain: ambassador });
      await cluster.waitFor(
        nameOf('Host', 'host'),
        nameOf('Ingress', 'door'),
        nameOf('Mapping', 'orders'),
        nameOf('Service', 'users'),
      );
      const versions = Object.fromEntries(cluster.objects().map(({ kind, apiVersion }) => [kind, apiVersion]));
      assert.deepEqual(versions, {
        Mapping: `${ambassador}/v2`,
        Host: `${ambassador}/v3alpha1`,
        Service: 'v1',
        Ingress: 'networking.k8s.io/v1',
      });
    });

    it('reads a kind in another version when its own is not served any more', async () => {
      const definition = definitionOf(ambassador, 'Listener', ['v2', 'v3alpha1']);
      const [v2, v3] = versionsOf(definition);
      await kubernetes.apply({
        ...definition,
        spec: { ...Object(definition['spec']), versions: [v2, { ...v3, served: false }] },
      });
      await kubernetes.apply(objectOf(`${ambassador}/v2`, 'Listener', 'one', { port: 8080 }));
      const proxy = await startApiProxy(servers, kubernetes, shop);
      const cluster = await follow({ gatewayDomain: ambassador, environment: { KUBECONFIG: proxy.kubeconfig } });
      await cluster.waitFor(nameOf('Listener', 'one'));
      await kubernetes.patch(definition, { spec: { versions: [{ ...v2, served: false }, v3] } });
      const path = `/apis/${ambassador}/v2/namespaces/${shop}/listeners`;
      await eventually(async () => assert.equal((await kubernetes.request('GET', path)).status, 404));
      // A watch that is open would go on in the old version.
      proxy.cut();
      await kubernetes.apply(objectOf(`${ambassador}/v3alpha1`, 'Listener', 'two', { port: 8080 }));
      await cluster.waitFor(nameOf('Listener', 'one'), nameOf('Listener', 'two'));
      await eventually(() => assert.deepEqual(cluster.faults(), []));
    });
  });
});

function versionsOf(definition: KubernetesObject): readonly object[] {
  return (definition['spec'] as { readonly versions: readonly object[] }).versions;
}

function versionOf(definition: KubernetesObject): object {
  return versionsOf(definition)[0] ?? {};
}
