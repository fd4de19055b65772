/** Tests of many objects and of many changes at once: complete, and handed over in few deliveries. */
import assert from 'node:assert/strict';
import { startApiProxy } from '../support/kubernetes/api-proxy.ts';
import {
  adminToken,
  describeWithKubernetes,
  type KubernetesServer,
  startKubernetes,
} from '../support/kubernetes/api-server.ts';
import { followCluster } from '../support/kubernetes/followed-cluster.ts';
import { mappingText, serviceOf } from '../support/kubernetes/objects.ts';
import { testServers } from '../support/serve.ts';
import { createDeferred, eventually } from '../support/waiting.ts';

describeWithKubernetes('a large cluster', () => {
  const shared = testServers(after);
  const servers = testServers();
  let kubernetes: KubernetesServer;
  let shop: string;
  const names = Array.from({ length: 1000 }, (_, index) => `orders-${1000 + index}`);
  before(async () => {
    kubernetes = await startKubernetes(shared);
    shop = await kubernetes.createNamespace();
    await kubernetes.apply(...names.map((name) => serviceOf(shop, name, mappingText(name))));
  });

  const nameOf = (name: string) => `Service ${shop}/${name}`;

  it('hands over 1,000 Services with records at once, also to two readers that start together', async () => {
    const proxy = await startApiProxy(servers, kubernetes, shop);
    const both = await Promise.all(
      [proxy, proxy].map(({ kubeconfig }) => followCluster(servers, kubeconfig, { namespaces: [shop] })),
    );
    for (const cluster of both) {
      await cluster.ready;
      assert.equal(cluster.deliveries.length, 1);
      assert.deepEqual(cluster.deliveries[0]?.toSorted(), names.map(nameOf));
      assert.equal(cluster.addressChanges[0]?.services?.present.length, 1000);
    }
    // Page by page.
    assert.equal(proxy.paths.filter((path) => /services\?limit=500&continue=/.test(path)).length, 2);
  });

  it('hands over a burst of 500 changes in few deliveries, one at a time', async () => {
    const [applying, released] = [createDeferred(), createDeferred()];
    let [running, atOnce, count, changed] = [0, 0, 0, 0];
    const cluster = await followCluster(servers, await kubernetes.kubeconfig(adminToken, shop), {
      namespaces: [shop],
      async onObjects({ records }) {
        count += 1;
        running += 1;
        atOnce = Math.max(atOnce, running);
        if (count === 2) {
          applying.resolve();
          await released.promise;
        }
        changed = records.filter(({ value }) => JSON.stringify(value).includes('/changed/')).length;
        running -= 1;
      },
    });
    await cluster.ready;
    const change = (name: string) => kubernetes.apply(serviceOf(shop, name, mappingText(name, '/changed/')));
    await change('orders-1000');
    await applying.promise;
    await Promise.all(names.slice(0, 500).map(change));
    assert.equal(count, 2);
    released.resolve();
    await eventually(() => assert.equal(changed, 500));
    assert.ok(count <= 10, `${count} deliveries`);
    assert.equal(atOnce, 1);
  });
});
