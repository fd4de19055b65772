/** A gateway whose addresses come from the EndpointSlices of a real API server. */
import assert from 'node:assert/strict';
import dns from 'node:dns';
import { mock } from 'node:test';
import request from 'supertest';
import { createAddressStore } from '#kubernetes';
import { resolveOptions } from '#server';
import { openFrontdesk } from '../../../src/server/frontdesk.ts';
import { createClusterAddresses } from '../../../src/server/kubernetes/addresses.ts';
import { mappingRecord } from '../../support/desks.ts';
import {
  adminToken,
  describeWithKubernetes,
  type KubernetesServer,
  startKubernetes,
} from '../../support/kubernetes/api-server.ts';
import { followCluster } from '../../support/kubernetes/followed-cluster.ts';
import { serviceOf, sliceOf } from '../../support/kubernetes/objects.ts';
import { testServers } from '../../support/serve.ts';
import { startUpstream, type Upstream } from '../../support/upstream.ts';
import { eventually } from '../../support/waiting.ts';

/** The API server accepts no loopback address, so the pods have a name that is resolved to one here. */
const pod = 'pod.example.com';

function resolvePod(): void {
  const { lookup } = dns;
  mock.method(dns, 'lookup', (host: string, options: never, done: never) =>
    lookup(host === pod ? '127.0.0.1' : host, options, done),
  );
}

describeWithKubernetes('a gateway that follows EndpointSlices', () => {
  const shared = testServers(after);
  const servers = testServers();
  let kubernetes: KubernetesServer;
  before(async () => {
    kubernetes = await startKubernetes(shared);
  });

  beforeEach(resolvePod);
  afterEach(() => mock.restoreAll());

  async function setUp() {
    const namespace = await kubernetes.createNamespace();
    const clusterAddresses = createClusterAddresses();
    const store = createAddressStore('endpoints', () => true);
    const cluster = await followCluster(servers, await kubernetes.kubeconfig(adminToken), {
      namespaces: [namespace],
      onAddresses: (changes) => clusterAddresses.apply(store.apply(changes)),
    });
    const records = [mappingRecord('orders', '/', `orders.${namespace}`)];
    const setup = await resolveOptions({ port: 0, config: { records } });
    const desk = await openFrontdesk({ ...setup, clusterAddresses });
    servers.later(desk.close);
    const { gateway } = await desk.listen();
    assert.ok(gateway !== undefined);
    const { url } = gateway;
    const service = serviceOf(namespace, 'orders');
    await kubernetes.apply(service);
    await cluster.ready;
    const statusIs = (status: number) => eventually(() => request(url).get('/').expect(status), 20);
    const sliceFor = ({ port }: Upstream, name: string, ready = true) => {
      const slice = sliceOf(namespace, 'orders', [], port);
      const endpoints = [{ addresses: [pod], conditions: { ready } }];
      return { ...slice, metadata: { ...slice.metadata, name }, addressType: 'FQDN', endpoints };
    };
    return { url, service, statusIs, sliceFor };
  }

  it('calls pods as they become ready, stop and come back, and nothing when their Service is gone', async () => {
    const { service, statusIs, sliceFor } = await setUp();
    const [first, second] = [await startUpstream(servers), await startUpstream(servers)];
    await statusIs(503);
    await kubernetes.apply(sliceFor(first, 'one'));
    await statusIs(200);
    await kubernetes.patch(sliceFor(first, 'one'), {
      endpoints: [{ addresses: [pod], conditions: { ready: false } }],
    });
    await statusIs(503);
    await kubernetes.apply(sliceFor(second, 'two'));
    await statusIs(200);
    assert.equal(second.reached.length, 1);
    await kubernetes.remove(service);
    await statusIs(503);
    await kubernetes.apply(service);
    await statusIs(200);
  });

  it('loses no request while slices change and the API server restarts', async () => {
    const { url, statusIs, sliceFor } = await setUp();
    const upstreams = await Promise.all([1, 2, 3].map(() => startUpstream(servers)));
    const slices = upstreams.map((upstream, index) => sliceFor(upstream, `slice-${index}`));
    await kubernetes.apply(...slices);
    await statusIs(200);
    let isOver = false;
    const outcomes = new Map<number, number>();
    async function send(): Promise<void> {
      while (!isOver) {
        const response = await fetch(url, { method: 'POST', body: 'order' });
        await response.text();
        outcomes.set(response.status, (outcomes.get(response.status) ?? 0) + 1);
      }
    }
    const sending = Promise.all([send(), send(), send(), send()]);
    // One of them is always ready.
    for (let change = 0; change < 60; change += 1) {
      const slice = slices[1 + (change % 2)];
      assert.ok(slice !== undefined);
      const conditions = { ready: change % 4 > 1 };
      await kubernetes.patch(slice, { endpoints: [{ addresses: [pod], conditions }] });
      if (change === 30) await kubernetes.start();
    }
    await eventually(() => assert.ok(upstreams.every(({ reached }) => reached.length > 0)));
    isOver = true;
    await sending;
    assert.deepEqual([...outcomes.keys()], [200]);
  });
});
