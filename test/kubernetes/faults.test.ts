/** Tests of what a reader does when the API server fails: what was read last stays, and nothing is missed in the end. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClusterOptions } from '#kubernetes';
import { startApiProxy } from '../support/kubernetes/api-proxy.ts';
import {
  adminToken,
  describeWithKubernetes,
  eachInNamespace,
  type KubernetesServer,
  readerToken,
} from '../support/kubernetes/api-server.ts';
import { followCluster } from '../support/kubernetes/followed-cluster.ts';
import { definitionOf, mappingText, serviceOf } from '../support/kubernetes/objects.ts';
import { testServers } from '../support/serve.ts';
import { replaceFile, temporaryFiles } from '../support/temporary-files.ts';
import { eventually } from '../support/waiting.ts';

const quick = { backoffMs: [20, 200], discoveryMs: 200 } as const;
const reading = ['get', 'list', 'watch'];
const services = { apiGroups: [''], resources: ['services'], verbs: reading };
const slices = { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: reading };

describeWithKubernetes('a cluster whose API server fails', () => {
  const servers = testServers();
  const writeFiles = temporaryFiles();
  let kubernetes: KubernetesServer;
  let shop: string;
  eachInNamespace((server, namespace) => {
    [kubernetes, shop] = [server, namespace];
  });

  const withRecord = (name: string) => serviceOf(shop, name, mappingText(name));
  const nameOf = (name: string) => `Service ${shop}/${name}`;

  async function follow(kubeconfig: string, options: Partial<ClusterOptions> = {}) {
    const times = { ...quick, ...options.times };
    const cluster = await followCluster(servers, kubeconfig, { namespaces: [shop], ...options, times });
    return cluster;
  }

  it('catches up after the server was away, keeps its objects meanwhile, and says so', async () => {
    await kubernetes.apply(withRecord('orders'));
    const cluster = await follow(await kubernetes.kubeconfig(adminToken, shop));
    await cluster.ready;
    assert.deepEqual(cluster.faults(), []);
    await kubernetes.kill();
    await cluster.waitForFault(/^services in the namespace test-.*: no answer from https:.* ECONNREFUSED/m);
    assert.match(cluster.log.join('\n'), /cannot be read: what was read last stays in use/);
    await kubernetes.start();
    await kubernetes.apply(withRecord('users'));
    await cluster.waitFor(nameOf('orders'), nameOf('users'));
    await eventually(() => assert.deepEqual(cluster.faults(), []));
    assert.deepEqual(
      cluster.deliveries.filter((names) => !names.includes(nameOf('orders'))),
      [],
    );
  });

  it('lists again when its version has expired, which the server says in an event of a 200', async () => {
    const proxy = await startApiProxy(servers, kubernetes, shop);
    await kubernetes.apply(withRecord('orders'));
    const cluster = await follow(proxy.kubeconfig);
    await cluster.ready;
    await eventually(() => assert.equal(proxy.paths.filter((path) => path.includes('watch=1')).length, 2));
    // The restarted server knows no changes from before its first list, which has a newer version because of this one.
    await kubernetes.createNamespace();
    await kubernetes.kill();
    await kubernetes.start();
    await eventually(() => assert.match(proxy.watched(), /"type":"ERROR".*"code":410/));
    await kubernetes.apply(withRecord('users'));
    await cluster.waitFor(nameOf('orders'), nameOf('users'));
  });

  it('lists again when its version is from the future, for which the server sends neither events nor errors', async () => {
    const proxy = await startApiProxy(servers, kubernetes, shop);
    proxy.rewrite = (path) =>
      path.replace(/(?<=watch=1.*resourceVersion=)\d+/, (version) => `${Number(version) + 1e6}`);
    const cluster = await follow(proxy.kubeconfig, { times: { listAgainMs: 500 } });
    await cluster.ready;
    await kubernetes.apply(withRecord('orders'));
    await cluster.waitFor(nameOf('orders'));
    assert.doesNotMatch(proxy.watched(), /orders/);
  });

  it('keeps its objects when it loses its permissions, says which it needs, and catches up', async () => {
    const withdraw = await kubernetes.grant('frontdesk', services, slices);
    await kubernetes.apply(withRecord('orders'));
    const cluster = await follow(await kubernetes.kubeconfig(readerToken, shop), { times: { watchMs: [1000, 1000] } });
    await cluster.ready;
    await withdraw();
    await cluster.waitForFault(
      /no permission \(services is forbidden: User "frontdesk" cannot .*\): give get, list and watch on services in a Role of the namespace test-/,
    );
    const withdrawAgain = await kubernetes.grant('frontdesk', services, slices);
    await kubernetes.apply(withRecord('users'));
    await cluster.waitFor(nameOf('orders'), nameOf('users'));
    await eventually(() => assert.deepEqual(cluster.faults(), []));
    assert.deepEqual(
      cluster.deliveries.filter((names) => !names.includes(nameOf('orders'))),
      [],
    );
    await withdrawAgain();
  });

  it('hands over nothing while it has no permission for one kind', async () => {
    const proxy = await startApiProxy(servers, kubernetes, shop, readerToken);
    const withdraw = await kubernetes.grant('frontdesk', services);
    const cluster = await follow(proxy.kubeconfig);
    await cluster.waitForFault(/give get, list and watch on endpointslices.discovery.k8s.io in a Role/);
    assert.match(cluster.log.join('\n'), /cannot be read: until it can, every request gets 503/);
    await kubernetes.apply(withRecord('orders'));
    await eventually(() => assert.match(proxy.watched(), /orders/));
    const failures = cluster.failures();
    await eventually(() => assert.ok(cluster.failures() > failures + 3));
    assert.deepEqual([cluster.deliveries, cluster.addressChanges], [[], []]);
    const withdrawSlices = await kubernetes.grant('frontdesk', slices);
    await cluster.waitFor(nameOf('orders'));
    await Promise.all([withdraw(), withdrawSlices()]);
  });

  it('waits for a server that is away at the start', async () => {
    await kubernetes.apply(withRecord('orders'));
    await kubernetes.kill();
    const cluster = await follow(await kubernetes.kubeconfig(adminToken, shop));
    await cluster.waitForFault(/ECONNREFUSED/);
    assert.deepEqual(cluster.deliveries, []);
    await kubernetes.start();
    await cluster.ready;
    assert.deepEqual(cluster.deliveries, [[nameOf('orders')]]);
  });

  it('notices a server that does not answer any more on open connections, and catches up', async () => {
    await kubernetes.apply(withRecord('orders'));
    const times = { silenceMs: 300, timeoutMs: 300 };
    const cluster = await follow(await kubernetes.kubeconfig(adminToken, shop), { times });
    await cluster.ready;
    kubernetes.freeze();
    try {
      await cluster.waitForFault(/no answer from https:.*: none within 0.3 s/);
    } finally {
      kubernetes.thaw();
    }
    await kubernetes.apply(withRecord('users'));
    await cluster.waitFor(nameOf('orders'), nameOf('users'));
  });

  it('lists again when a watch stays open and falls silent', async () => {
    const proxy = await startApiProxy(servers, kubernetes, shop);
    proxy.answer = (path, response) => {
      if (!path.includes('watch=1')) return false;
      response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
      return true;
    };
    const cluster = await follow(proxy.kubeconfig, { times: { silenceMs: 300 } });
    await cluster.ready;
    await kubernetes.apply(withRecord('orders'));
    await cluster.waitFor(nameOf('orders'));
  });

  it('misses nothing when its connections break again and again', async () => {
    const proxy = await startApiProxy(servers, kubernetes, shop);
    const cluster = await follow(proxy.kubeconfig);
    await cluster.ready;
    const names: string[] = [];
    for (const name of ['one', 'two', 'three', 'four']) {
      await kubernetes.apply(withRecord(name));
      proxy.cut();
      names.push(nameOf(name));
      await cluster.waitFor(...names);
    }
  });

  it('uses the token that has replaced another one in its file', async () => {
    const user = `system:serviceaccount:${shop}:frontdesk`;
    const withdraw = await kubernetes.grant(user, services, slices);
    const account = await kubernetes.createServiceAccount(shop, 'frontdesk');
    const [first, second] = [await account.createToken(), await account.createToken()];
    const directory = await writeFiles({ token: first.token, namespace: shop });
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, 'ca.crt'), kubernetes.ca);
    const environment = { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: `${kubernetes.port}` };
    const cluster = await follow('', {
      environment,
      serviceAccountDirectory: directory,
      times: { watchMs: [1000, 1000] },
    });
    await cluster.ready;
    assert.equal(cluster.namespace, shop);
    await first.revoke();
    await cluster.waitForFault(/^services in .* does not accept the credentials of the service account of this pod/m);
    await replaceFile(join(directory, 'token'), second.token);
    await kubernetes.apply(withRecord('orders'));
    await cluster.waitFor(nameOf('orders'));
    await withdraw();
  });

  it('goes on when a listener throws, logs it, and calls it again with everything', async () => {
    let calls = 0;
    const cluster = await follow(await kubernetes.kubeconfig(adminToken, shop), {
      onAddresses({ services }) {
        calls += 1;
        if (calls === 1) throw new Error('the listener is broken');
        whole ??= services?.isWhole;
      },
      onObjects({ records }) {
        if (calls < 3) throw new Error('the listener is broken');
        delivered = records.map(({ name }) => name);
      },
    });
    let whole: boolean | undefined;
    let delivered: readonly string[] = [];
    await eventually(() => assert.match(cluster.log.join('\n'), /could not be applied/));
    await kubernetes.apply(withRecord('orders'));
    await eventually(() => assert.equal(whole, true));
    await kubernetes.apply(withRecord('users'));
    await eventually(() => assert.deepEqual(delivered.toSorted(), ['orders', 'users']));
  });

  it('goes on with the other kinds when one is installed that it may not read', async () => {
    const withdraw = await kubernetes.grant('frontdesk', services, slices);
    const cluster = await follow(await kubernetes.kubeconfig(readerToken, shop));
    await cluster.ready;
    const definition = definitionOf('gateway.local', 'Mapping');
    await kubernetes.apply(definition);
    await cluster.waitForFault(/mappings.gateway.local in the namespace .*no permission/);
    assert.match(cluster.log.join('\n'), /cannot be read: what was read last stays in use/);
    await kubernetes.apply(withRecord('orders'));
    await cluster.waitFor(nameOf('orders'));
    await Promise.all([withdraw(), kubernetes.remove(definition)]);
  });
});
