/** Tests of reports with a real API server: what objects say about themselves, and how few writes it takes. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { ObjectVerdict } from '#config';
import { openReports, type ReportsOptions } from '../../../src/kubernetes/reports/reports.ts';
import {
  adminToken,
  describeWithKubernetes,
  type KubernetesServer,
  readerToken,
  startKubernetes,
} from '../../support/kubernetes/api-server.ts';
import { createApiClient, type KubernetesClient, type KubernetesObject } from '../../support/kubernetes/client.ts';
import { definitionOf } from '../../support/kubernetes/objects.ts';
import { eventRule, statusRule } from '../../support/kubernetes/rules.ts';
import { isInstalled } from '../../support/programs/installed.ts';
import { testServers } from '../../support/serve.ts';
import { eventually } from '../../support/waiting.ts';
import { accepted, errorOf, mappingOf, refused } from './verdicts.ts';

const missing = 'prefix is missing';

describeWithKubernetes('reports to the cluster', () => {
  const servers = testServers(after);
  let kubernetes: KubernetesServer;
  let namespace: string;
  before(async () => {
    kubernetes = await startKubernetes(servers);
    await kubernetes.apply(definitionOf('gateway.local', 'Mapping'));
  });
  beforeEach(async () => {
    namespace = await kubernetes.createNamespace();
  });

  /** Opens the reports of a replica, and records its requests and log lines. */
  async function replica(token = adminToken, options: Partial<ReportsOptions> = {}) {
    const client = createApiClient({ url: kubernetes.url, ca: await readFile(kubernetes.caFile, 'utf8'), token });
    const requests: string[] = [];
    const lines: string[] = [];
    let most = 0;
    let running = 0;
    const request: KubernetesClient['request'] = async (method, path, ...rest) => {
      requests.push(
        `${method} ${path
          .split('/')
          .slice(path.startsWith('/api/') ? 5 : 6)
          .join('/')}`,
      );
      running += 1;
      most = Math.max(most, running);
      return client.request(method, path, ...rest).finally(() => {
        running -= 1;
      });
    };
    const line = (_: object, message = '') => void lines.push(message);
    const reports = openReports({ api: { request }, logger: { info: line, warn: line }, ...options });
    servers.later(async () => {
      await reports.close();
      client.close();
    });
    const settled = () =>
      eventually(() => {
        assert.equal(reports.writes().waiting, 0);
        assert.equal(running, 0);
      });
    const report = async (...verdicts: readonly ObjectVerdict[]) => {
      reports.report(verdicts);
      await settled();
    };
    return { reports, report, settled, requests, lines, most: () => most };
  }

  async function create(object: KubernetesObject): Promise<KubernetesObject> {
    const [created = object] = await kubernetes.apply(object);
    return created;
  }

  const createMapping = (name: string) => create(mappingOf(name, namespace, { metadata: { name, namespace } }));
  const createService = (name: string) =>
    create({ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace }, spec: { ports: [{ port: 80 }] } });
  const read = ({ apiVersion, kind, metadata }: KubernetesObject) =>
    kubernetes.get(apiVersion, kind, metadata.name, namespace);
  /** The API server has Events of its own about Services, such as ClusterIPNotAllocated. */
  const events = async () =>
    (await kubernetes.list('v1', 'Event', namespace)).filter((event) => event['reportingComponent'] === 'frontdesk');
  const summaries = async () => (await events()).map(({ type, reason, message }) => ({ type, reason, message }));
  const missingPrefix = (object: KubernetesObject) => refused(object, errorOf(object, missing));
  const note = `${missing}. prefix: /v1 (until it is fixed, requests that it matches are answered with 503)`;

  interface Condition {
    readonly status: string;
    readonly lastTransitionTime: string;
    readonly [name: string]: unknown;
  }

  async function conditionOf(object: KubernetesObject): Promise<Condition | undefined> {
    const { status } = (await read(object)) as unknown as { status?: { conditions: readonly Condition[] } };
    return status?.conditions.find(({ type }) => type === 'Accepted');
  }

  it('write a condition into the status of our own kinds, and an Event when one is refused', async () => {
    const [good, bad] = [await createMapping('good'), await createMapping('bad')];
    const { report } = await replica();
    await report(accepted(good), missingPrefix(bad));
    const { lastTransitionTime: _, ...of } = (await conditionOf(good)) ?? { lastTransitionTime: '' };
    assert.deepEqual(of, {
      type: 'Accepted',
      status: 'True',
      reason: 'Accepted',
      message: 'In use.',
      observedGeneration: 1,
    });
    const condition = await conditionOf(bad);
    assert.equal(condition?.status, 'False');
    assert.match(String(condition?.['message']), /^prefix is missing\n {2}prefix: \/v1$/m);
    assert.deepEqual(await summaries(), [{ type: 'Warning', reason: 'Invalid', message: note }]);
  });

  it('show in kubectl describe how to fix an object', async function showInDescribe() {
    if (!isInstalled('kubectl')) this.skip();
    const [service, mapping] = [await createService('orders'), await createMapping('orders')];
    const { report } = await replica();
    await report(missingPrefix(service), missingPrefix(mapping));
    const kubeconfig = await kubernetes.kubeconfig(adminToken);
    const options = ['--kubeconfig', kubeconfig, '--namespace', namespace];
    for (const kind of ['service', 'mappings.gateway.local']) {
      const { stdout } = await promisify(execFile)('kubectl', [...options, 'describe', kind, 'orders']);
      assert.match(stdout, /Warning +Invalid +\d+s +frontdesk +prefix is missing\. prefix: \/v1 \(until/, stdout);
    }
  });

  it('add a Normal Event when a refused object is accepted again, and change the time of the transition only then', async () => {
    let nowMs = Date.now();
    const mapping = await createMapping('orders');
    const { report } = await replica(adminToken, { clock: () => nowMs });
    await report(missingPrefix(mapping));
    const first = await conditionOf(mapping);
    nowMs += 10_000;
    await report(refused(await read(mapping), errorOf(mapping, 'prefix "x" does not start with "/"')));
    const second = await conditionOf(mapping);
    assert.equal(second?.lastTransitionTime, first?.lastTransitionTime);
    assert.notEqual(second?.['message'], first?.['message']);
    nowMs += 10_000;
    await report(accepted(await read(mapping)));
    const third = await conditionOf(mapping);
    assert.equal(Date.parse(third?.lastTransitionTime ?? '') - Date.parse(first?.lastTransitionTime ?? ''), 20_000);
    assert.deepEqual((await summaries()).map(({ type, reason }) => `${type} ${reason}`).toSorted(), [
      'Normal Accepted',
      'Warning Invalid',
      'Warning Invalid',
    ]);
  });

  it('write nothing when nothing differs, also in a process that has just started', async () => {
    const [good, bad] = [await createMapping('good'), await createMapping('bad')];
    const service = await createService('service');
    const first = await replica();
    await first.report(accepted(good), missingPrefix(bad), accepted(service));
    const before = first.requests.length;
    for (let round = 0; round < 3; round += 1)
      await first.report(accepted(await read(good)), missingPrefix(await read(bad)), accepted(service));
    // The reader may return an object as it was before our write.
    await first.report(accepted(good), missingPrefix(bad), accepted(service));
    assert.equal(first.requests.length, before);
    const second = await replica();
    await second.report(accepted(await read(good)), missingPrefix(await read(bad)), accepted(service));
    assert.deepEqual(second.requests, []);
  });

  it('are written once by two replicas at the same time', async () => {
    const mapping = await createMapping('orders');
    const service = await createService('orders');
    const replicas = [await replica(), await replica()];
    await Promise.all(replicas.map(({ report }) => report(missingPrefix(mapping), missingPrefix(service))));
    const [one, other] = await events();
    assert.deepEqual([one?.['count'], other?.['count']], [1, 1]);
    assert.equal((await events()).length, 2);
    const { resourceVersion } = (await read(mapping)).metadata;
    await Promise.all(
      replicas.map(async ({ report }) => report(missingPrefix(await read(mapping)), missingPrefix(service))),
    );
    assert.equal((await read(mapping)).metadata.resourceVersion, resourceVersion);
  });

  it('do not fight with a replica of another release over the words', async () => {
    const mapping = await createMapping('orders');
    const replicas = [await replica(), await replica()];
    const say = async (index: number) => {
      const verdict = refused(await read(mapping), errorOf(mapping, `words of release ${index}`));
      await replicas[index]?.report(verdict);
    };
    for (let round = 0; round < 5; round += 1) for (const index of [0, 1]) await say(index);
    const written = replicas.flatMap(({ requests }) => requests.filter((line) => line.startsWith('PATCH')));
    assert.equal(written.length, 2);
  });

  it('count an Event when the same fault comes back', async () => {
    let nowMs = Date.now();
    const service = await createService('orders');
    const { report } = await replica(adminToken, { clock: () => nowMs });
    await report(missingPrefix(service));
    await report(accepted(service));
    nowMs += 120_000;
    await report(missingPrefix(service));
    const warnings = (await events()).filter(({ type }) => type === 'Warning');
    assert.deepEqual(
      warnings.map(({ count }) => count),
      [2],
    );
  });

  it('keep the Event of a Service alive, by one replica of two', async () => {
    let nowMs = Date.now();
    const service = await createService('orders');
    const replicas = await Promise.all([0, 1].map(() => replica(adminToken, { clock: () => nowMs })));
    for (const { report } of replicas) await report(missingPrefix(service));
    nowMs += 26 * 60_000;
    for (const { report } of replicas) await report(missingPrefix(service));
    assert.deepEqual(
      (await events()).map(({ count }) => count),
      [2],
    );
    const [event] = await events();
    if (event !== undefined) await kubernetes.remove({ ...event, apiVersion: 'v1', kind: 'Event' });
    nowMs += 26 * 60_000;
    for (const { report } of replicas) await report(missingPrefix(service));
    assert.deepEqual(
      (await events()).map(({ count }) => count),
      [1],
    );
  });

  it('go on without permission, with one line in the log for each right that is missing', async () => {
    const mappings = await Promise.all(Array.from({ length: 20 }, (_, index) => createMapping(`m${index}`)));
    const { report, lines, reports, requests } = await replica(readerToken, { queue: { pauseMs: 0 } });
    await report(...mappings.map(missingPrefix));
    await report(...mappings.map(missingPrefix));
    assert.deepEqual(lines.toSorted(), [
      "Events of the objects of the cluster cannot be written; everything else goes on: give frontdesk's service account the rule { apiGroups: [''], resources: ['events'], verbs: ['create'] } in its ClusterRole",
      "The status of mappings cannot be written; everything else goes on: give frontdesk's service account the rule { apiGroups: ['gateway.local'], resources: ['mappings/status'], verbs: ['patch'] } in its ClusterRole",
    ]);
    assert.ok(requests.length <= 10, `${requests.length} requests`);
    assert.equal(reports.writes().statuses.succeeded, 0);
    assert.ok(reports.writes().statuses.failed > 0);
  });

  it('need no other permissions than those that the documentation names', async () => {
    const withdraw = await kubernetes.grant('frontdesk', statusRule, eventRule);
    const mapping = await createMapping('orders');
    let nowMs = Date.now();
    const { report, lines } = await replica(readerToken, { clock: () => nowMs });
    await report(missingPrefix(mapping));
    await report(accepted(mapping));
    nowMs += 120_000;
    await report(missingPrefix(mapping));
    assert.deepEqual(lines, []);
    assert.equal((await events()).length, 2);
    await withdraw();
  });

  it('write about five hundred refused objects, five at once', async () => {
    const names = Array.from({ length: 500 }, (_, index) => `m${index}`);
    const mappings: KubernetesObject[] = [];
    for (let start = 0; start < names.length; start += 50)
      mappings.push(...(await Promise.all(names.slice(start, start + 50).map(createMapping))));
    const { report, most, reports, requests } = await replica(adminToken, { queue: { pauseMs: 0 } });
    await report(...mappings.map(missingPrefix));
    assert.equal(requests.length, 1000);
    assert.equal(most(), 5);
    assert.deepEqual(reports.writes(), {
      statuses: { succeeded: 500, failed: 0 },
      events: { succeeded: 500, failed: 0 },
      waiting: 0,
    });
  });

  it('do not mind an object that has been deleted', async () => {
    const mapping = await createMapping('orders');
    await kubernetes.remove(mapping);
    const { report, lines } = await replica();
    await report(missingPrefix(mapping));
    assert.deepEqual(lines, []);
  });

  it('wait for an API server that is away, with one line in the log', async () => {
    const mapping = await createMapping('orders');
    const { reports, settled, lines } = await replica(adminToken, { queue: { firstBackoffMs: 50 } });
    await kubernetes.kill();
    reports.report([missingPrefix(mapping)]);
    await eventually(() => assert.ok(reports.writes().statuses.failed + reports.writes().events.failed >= 4));
    await kubernetes.start();
    await settled();
    assert.equal((await conditionOf(mapping))?.status, 'False');
    assert.equal((await events()).length, 1);
    assert.ok(lines.length <= 4, lines.join('\n'));
  });
});
