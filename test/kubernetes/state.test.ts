/** What a process says about its cluster: in the diagnostics, the metrics, the probes, the log, and to the objects themselves. */
import assert from 'node:assert/strict';
import request from 'supertest';
import { demoRecord } from '../support/desks.ts';
import {
  describeWithKubernetes,
  type KubernetesServer,
  readerToken,
  startKubernetes,
} from '../support/kubernetes/api-server.ts';
import { definitionOf, serviceOf } from '../support/kubernetes/objects.ts';
import { eventRule, readRule, statusRule } from '../support/kubernetes/rules.ts';
import { runFrontdesk, type Server, startServer } from '../support/programs/frontdesk-process.ts';
import { seriesOf } from '../support/scrape.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles, yamlOf } from '../support/temporary-files.ts';
import { eventually } from '../support/waiting.ts';

const recordOf = (kind: string, name: string, more: object) => ({ apiVersion: 'gateway/v1', kind, name, ...more });
const auth = yamlOf(recordOf('AuthService', 'auth', { auth_service: 'frontdesk:auth' }));
const mapping = (more: object) =>
  yamlOf(recordOf('Mapping', 'orders', { service: 'http://127.0.0.1:9', bypass_auth: true, ...more }));

describeWithKubernetes('a process with the records of a cluster', () => {
  const servers = testServers(after);
  const processes = testServers();
  const writeFiles = temporaryFiles();
  let kubernetes: KubernetesServer;
  before(async () => {
    kubernetes = await startKubernetes(servers);
    await kubernetes.apply(definitionOf('gateway.local', 'Mapping'));
  });

  /** Until the end of the test. */
  async function grant(...rules: Parameters<KubernetesServer['grant']>[1][]): Promise<void> {
    processes.later(await kubernetes.grant('frontdesk', ...rules));
  }

  /** Starts a process that reads a new namespace, which it belongs to. */
  async function start(THREADS: string, more: Readonly<Record<string, string>> = {}) {
    const namespace = await kubernetes.createNamespace();
    const CONFIG_DIR = await writeFiles({ 'users.yaml': JSON.stringify({ users: [demoRecord] }) });
    const KUBECONFIG = await kubernetes.kubeconfig(readerToken, namespace);
    const env = { KUBECONFIG, CONFIG_DIR, KUBERNETES_NAMESPACES: namespace, ADMIN_PORT: '0', THREADS, ...more };
    const server = await startServer(['--kubernetes'], { env });
    processes.later(server.stop);
    return { server, namespace, env };
  }

  const ready = (server: Server) => request(server.adminUrl).get('/gateway/v0/check_ready');
  const metrics = async (server: Server) => seriesOf((await request(server.adminUrl).get('/metrics').expect(200)).text);
  const diagnostics = async (server: Server) =>
    (await request(server.gatewayUrl).get('/gateway/v0/diag/diagnostics.json').auth('demo', 'demo').expect(200)).body;

  const resourceOf = (namespace: string, name: string, spec: object) => ({
    apiVersion: 'gateway.local/v1',
    kind: 'Mapping',
    metadata: { name, namespace },
    spec: { service: 'http://127.0.0.1:9', bypass_auth: true, ...spec },
  });

  it('writes the conditions of its own kinds, which causes no further reload', async () => {
    await grant(readRule, eventRule, statusRule);
    const { server, namespace } = await start('1');
    const good = resourceOf(namespace, 'good', { prefix: '/good' });
    const bad = Array.from({ length: 20 }, (_, index) =>
      resourceOf(namespace, `bad-${index}`, { prefix: `/bad-${index}`, wait: 3 }),
    );
    await kubernetes.apply(good, ...bad);
    const written = await eventually(async () => {
      const series = await metrics(server);
      assert.equal(series['frontdesk_kubernetes_writes_total status success'], 21);
      return series['frontdesk_kubernetes_deliveries_total'];
    });
    const statuses = (await kubernetes.list('gateway.local/v1', 'Mapping', namespace)).map(({ metadata, status }) => {
      const { conditions } = status as { conditions: readonly { type: string; status: string; reason: string }[] };
      return [metadata.name, ...conditions.map(({ type, status: is, reason }) => `${type} ${is} ${reason}`)].join(' ');
    });
    assert.deepEqual(statuses.toSorted(), [
      ...bad.map(({ metadata }) => `${metadata.name} Accepted False Invalid`).toSorted(),
      'good Accepted True Accepted',
    ]);
    await kubernetes.apply(resourceOf(namespace, 'marker', { prefix: '/marker' }));
    await eventually(async () => {
      const series = await metrics(server);
      assert.equal(series['frontdesk_kubernetes_writes_total status success'], 22);
      assert.equal(series['frontdesk_kubernetes_deliveries_total'], Number(written) + 1);
    });
  });

  it('shows an object for which its namespace has no room, until there is some', async () => {
    await grant(readRule, eventRule, statusRule);
    const team = await kubernetes.createNamespace('team');
    const { server, env } = await start('1', { KUBERNETES_NAMESPACES: team, KUBERNETES_MAPPINGS_MAX: '1' });
    const of = (name: string) => resourceOf(team, name, { prefix: `/${name}`, service: 'orders' });
    await kubernetes.apply(of('first'), of('second'));
    const conditionOf = async (name: string) => {
      const { status } = await kubernetes.get('gateway.local/v1', 'Mapping', name, team);
      const { conditions } = status as { conditions: readonly { status: string; message: string }[] };
      return conditions.map((one) => `${one.status} ${one.message}`).join();
    };
    const reason = `this object counts as 1 Mapping, and together with older objects the namespace ${team} would`;
    await eventually(async () =>
      assert.match(await conditionOf('second'), new RegExp(`^False Not in use.*\\n${reason}`)),
    );
    await eventually(async () => assert.match(await conditionOf('first'), /^True/));
    await eventually(async () => {
      const [event] = await kubernetes.list('v1', 'Event', team);
      assert.match(
        String(event?.['message']),
        new RegExp(`^${reason} have more than the 1 of KUBERNETES_MAPPINGS_MAX`),
      );
    });
    const checked = await runFrontdesk(['check', '--kubernetes'], { env });
    assert.equal(checked.code, 1);
    assert.match(checked.stderr, new RegExp(`Mapping ${team}/second {2}${reason}`));
    await server.waitForOutput(new RegExp(`Mapping ${team}/second {2}${reason}`));
    await kubernetes.remove(of('first'));
    await eventually(async () => assert.match(await conditionOf('second'), /^True/));
  });

  for (const threads of ['1', '2']) {
    it(`shows refused objects until they are fixed, with THREADS=${threads}`, async () => {
      await grant(readRule, eventRule);
      const { server, namespace } = await start(threads);
      await kubernetes.apply(
        serviceOf(namespace, 'auth', auth),
        serviceOf(namespace, 'orders', mapping({ prefix: '/orders', wait: 3 })),
      );
      const object = `Service ${namespace}/orders`;
      const shown = await eventually(async () => {
        const found = await diagnostics(server);
        assert.equal(found.refused.length, 1);
        assert.equal(found.kubernetes.writes.succeeded, 1);
        return found;
      });
      assert.equal(shown.refused[0].object, object);
      assert.match(shown.refused[0].consequence, /get 503/);
      assert.equal(shown.errors[0].source, `${object}:1`);
      assert.equal(shown.kubernetes.namespace, namespace);
      assert.deepEqual(shown.kubernetes.namespaces, [namespace]);
      assert.deepEqual(shown.kubernetes.objects, { accepted: 1, last_valid: 0, refused: 1 });
      assert.ok(shown.kubernetes.read);
      assert.ok(shown.kubernetes.resources.includes('services'));
      assert.deepEqual(shown.kubernetes.unread, []);

      const { body } = await ready(server).expect(200);
      assert.equal(body.refused[0].errors, 1);
      const series = await metrics(server);
      assert.equal(series['frontdesk_kubernetes_read'], 1);
      assert.equal(series['frontdesk_kubernetes_objects refused'], 1);
      assert.equal(series['frontdesk_kubernetes_writes_total event success'], 1);
      assert.equal(series['frontdesk_configuration_errors'], 1);
      const [event] = await kubernetes.list('v1', 'Event', namespace);
      assert.match(String(event?.['message']), /^line 1, Mapping orders\S*: unknown key "wait"/);

      await kubernetes.apply(serviceOf(namespace, 'orders', mapping({ prefix: '/orders' })));
      await eventually(async () => assert.deepEqual((await diagnostics(server)).refused, []));
      await eventually(async () =>
        assert.deepEqual((await kubernetes.list('v1', 'Event', namespace)).map(({ type }) => type).toSorted(), [
          'Normal',
          'Warning',
        ]),
      );
      await server.waitForOutput(new RegExp(`an object of the cluster is refused:.*${object}:1`));
      await server.waitForOutput(new RegExp(`no longer refused: ${object}`));
      assert.deepEqual((await ready(server).expect(200)).body, { status: 'ready' });
    });

    it(`is not ready before it could read the cluster, with THREADS=${threads}`, async () => {
      const { server, namespace } = await start(threads);
      await eventually(async () => {
        const { body } = await ready(server).expect(503);
        assert.equal(body.detail, 'The records of the cluster cannot be read. The log says why.');
      });
      assert.equal((await metrics(server))['frontdesk_kubernetes_read'], 0);
      await grant(readRule);
      await kubernetes.apply(serviceOf(namespace, 'auth', auth));
      await eventually(async () => assert.deepEqual((await ready(server).expect(200)).body, { status: 'ready' }), 50);
    });

    it(`stays ready while the API server is away, and says since when, with THREADS=${threads}`, async () => {
      await grant(readRule);
      const { server, namespace } = await start(threads);
      await kubernetes.apply(serviceOf(namespace, 'auth', auth));
      await eventually(async () => assert.deepEqual((await ready(server).expect(200)).body, { status: 'ready' }));
      await eventually(async () => assert.equal((await diagnostics(server)).kubernetes.objects.accepted, 1));
      await kubernetes.kill();
      const { unread } = await eventually(async () => {
        const { body } = await ready(server).expect(200);
        assert.ok(body.unread?.resources >= 1);
        return body;
      });
      assert.ok(Math.abs(Date.now() - Date.parse(unread.since)) < 60_000);
      const { kubernetes: shown } = await diagnostics(server);
      assert.ok(shown.unread[0].message.length > 0);
      await eventually(async () => {
        const since = 'frontdesk_kubernetes_unread_since_timestamp_seconds services';
        assert.ok(Object.keys(await metrics(server)).some((key) => key.startsWith(since)));
      });
      await kubernetes.start();
      await eventually(async () => assert.deepEqual((await ready(server).expect(200)).body, { status: 'ready' }), 50);
    });
  }
});
