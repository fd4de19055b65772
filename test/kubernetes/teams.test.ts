/** What one team of a cluster writes stops no other team. */
import assert from 'node:assert/strict';
import { get } from 'node:http';
import { describeWithKubernetes, type KubernetesServer, startKubernetes } from '../support/kubernetes/api-server.ts';
import type { KubernetesObject } from '../support/kubernetes/client.ts';
import { mappingText, serviceOf } from '../support/kubernetes/objects.ts';
import { podSlice, resolvesPods, runPods } from '../support/kubernetes/pods.ts';
import { type Server, startServer } from '../support/programs/frontdesk-process.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { eventually } from '../support/waiting.ts';

describeWithKubernetes('a team that may write anything in its namespace', () => {
  const servers = testServers(after);
  let kubernetes: KubernetesServer;
  let frontdesk: Server;
  let team: string;
  let others: string;
  before(async () => {
    kubernetes = await startKubernetes(servers);
    await kubernetes.grant('frontdesk', {
      apiGroups: ['', 'discovery.k8s.io'],
      resources: ['services', 'endpointslices'],
      verbs: ['list', 'watch'],
    });
    others = await kubernetes.createNamespace('others');
    const env = {
      KUBECONFIG: await kubernetes.kubeconfig(),
      ADMIN_PORT: '0',
      // Their pods are this machine.
      KUBERNETES_TRUSTED_NAMESPACES: others,
      ...resolvesPods,
    };
    frontdesk = await startServer(['--kubernetes'], { env, cwd: '/' });
    servers.later(frontdesk.stop);
    await serve('orders', '/orders/');
  });
  // Each test has its own, so that what one of them writes takes no room from the next.
  beforeEach(async () => {
    team = await kubernetes.createNamespace('team');
  });

  /** The others add a route, which is then live. */
  async function serve(name: string, prefix: string): Promise<void> {
    await kubernetes.apply(serviceOf(others, name, mappingText(name, prefix)));
    await runPods(kubernetes, { namespace: others, name }, [(await startUpstream(servers)).port]);
    await eventually(async () => assert.equal(await statusOf(prefix), 200), 20);
  }

  function statusOf(path: string, url = frontdesk.gatewayUrl): Promise<number | undefined> {
    return new Promise((resolve, reject) => {
      get(`${url}${path}`, (response) => resolve(response.resume().statusCode)).once('error', reject);
    });
  }

  let count = 0;

  /** While the team does this, the others' route works all the time, and a new one becomes live. */
  async function othersNoticeNothing(act: () => Promise<unknown>): Promise<void> {
    const statuses = new Set<number | undefined>();
    let isOver = false;
    async function watch(): Promise<void> {
      while (!isOver) statuses.add(await statusOf('/orders/'));
    }
    const watching = watch();
    try {
      await act();
      count += 1;
      await serve(`new-${count}`, `/new-${count}/`);
    } finally {
      isOver = true;
      await watching;
    }
    assert.deepEqual([...statuses], [200]);
  }

  const annotate = (name: string, records: string) => serviceOf(team, name, records);
  const logs = (pattern: RegExp) => eventually(() => assert.match(frontdesk.stdout(), pattern));

  it('may write hundreds of objects that are wrong', async () => {
    const wrong = Array.from({ length: 300 }, (_, index) => annotate(`wrong-${index}`, `{prefix: /wrong, n: ${index}`));
    await othersNoticeNothing(() => kubernetes.apply(...wrong));
    await logs(/Service team-\w+\/wrong-\d+:1 {2}this is not valid YAML/);
  });

  it('may write annotations of the size that the API server allows', async () => {
    const long = (text: string) => `${text} # ${'x'.repeat(250_000 - text.length)}`;
    const mappings = Array.from({ length: 500 }, (_, index) => mappingText(`many-${index}`, `/many-${index}`, 'a'));
    await othersNoticeNothing(() =>
      kubernetes.apply(
        annotate('long', long(mappingText('long'))),
        annotate('many', mappings.join('\n---\n')),
        annotate('deep', `apiVersion: ${'['.repeat(100_000)}`),
        annotate(
          'regex',
          JSON.stringify({ ...JSON.parse(mappingText('regex', '(a{1,100}){1,9}')), prefix_regex: true }),
        ),
      ),
    );
    await eventually(async () => assert.equal(await statusOf('/many-499'), 503));
  });

  it('may write more Mappings than its namespace may have', async () => {
    const services = Array.from({ length: 5 }, (_, number) => {
      const names = Array.from({ length: 500 }, (__, index) => `full-${number}-${index}`);
      return annotate(`full-${number}`, names.map((name) => mappingText(name, `/${name}`, 'a')).join('\n---\n'));
    });
    await othersNoticeNothing(() => kubernetes.apply(...services));
    await logs(
      /Service team-\w+\/full-\d {2}this object counts as 500 Mappings, .* the 2000 of KUBERNETES_MAPPINGS_MAX/,
    );
  });

  it('may write YAML whose aliases stand for billions of items', async () => {
    const level = (index: number) => `l${index}: &l${index} [${`*l${index - 1}, `.repeat(10)}]`;
    const bomb = ['l0: &l0 x', ...Array.from({ length: 12 }, (_, index) => level(index + 1))].join('\n');
    await othersNoticeNothing(() => kubernetes.apply(annotate('bomb', bomb)));
    await logs(/Service team-\w+\/bomb/);
  });

  it('may write YAML that contains itself', async () => {
    const loop = '{apiVersion: gateway/v1, kind: Mapping, name: loop, prefix: /loop/, service: loop, labels: &x [*x]}';
    await othersNoticeNothing(() => kubernetes.apply(annotate('loop', loop)));
    await logs(/Service team-\w+\/loop/);
  });

  it('cannot lead clients to the machine of frontdesk by an external name', async () => {
    const { port } = new URL(frontdesk.adminUrl);
    const external = (name: string, externalName: string): KubernetesObject => ({
      ...annotate(name, mappingText(name, `/${name}/`, `${name}:${port}`)),
      spec: { type: 'ExternalName', externalName, ports: [{ port: Number(port) }] },
    });
    await othersNoticeNothing(() =>
      kubernetes.apply(external('localhost', 'localhost'), external('dot', 'localhost.')),
    );
    for (const path of ['/localhost/metrics', '/dot/metrics'])
      await eventually(async () => assert.equal(await statusOf(path), 503));
  });

  it('cannot lead clients to the machine of frontdesk by a name in DNS', async () => {
    const port = Number(new URL(frontdesk.adminUrl).port);
    const records = (name: string, service: string) => mappingText(name, `/${name}/`, service);
    const byRecord = annotate('record', records('record', `metrics.pod.example:${port}`));
    const byName: KubernetesObject = {
      ...annotate('external', records('external', `external:${port}`)),
      spec: { type: 'ExternalName', externalName: 'metrics.pod.example', ports: [{ port }] },
    };
    const [bySlice, inner] = [annotate('slice', records('slice', 'slice')), annotate('inner', '')];
    const slices = [podSlice(bySlice, port), podSlice(inner, port)];
    // The others have trusted a Service of the team.
    const byOthers = serviceOf(others, 'deputy', records('deputy', `inner.${team}`));
    await othersNoticeNothing(() => kubernetes.apply(byRecord, byName, bySlice, inner, ...slices, byOthers));
    for (const [name, service] of [
      ['record', 'metrics.pod.example'],
      ['external', `external.${team}`],
      ['slice', `slice.${team}`],
      ['deputy', `inner.${team}`],
    ] as const)
      await eventually(async () => {
        assert.equal(await statusOf(`/${name}/metrics`), 503);
        const resolves = '[.]pod[.]example resolves to 127.0.0.1, which is the machine of frontdesk';
        assert.match(frontdesk.stdout(), new RegExp(`${service}.*"mapping":"${name}.*${resolves}.*TRUSTED_NAMESPACES`));
      }, 100);
  });

  it('may write EndpointSlices for Services of others, which stay without effect there', async () => {
    const service = await kubernetes.get('v1', 'Service', 'orders', others);
    const own = await startUpstream(servers);
    const slice = podSlice(service, own.port, 7);
    await othersNoticeNothing(() => kubernetes.apply({ ...slice, metadata: { ...slice.metadata, namespace: team } }));
    for (let sent = 0; sent < 20; sent += 1) await statusOf('/orders/');
    assert.deepEqual(own.reached, []);
  });
});
