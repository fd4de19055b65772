/** `frontdesk serve --kubernetes`: records from a real API server. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { get } from 'node:http';
import { join } from 'node:path';
import { createFrontdesk } from '#server';
import { annRecord, authRecord } from '../support/desks.ts';
import { startApiProxy } from '../support/kubernetes/api-proxy.ts';
import {
  adminToken,
  describeWithKubernetes,
  type KubernetesServer,
  readerToken,
  startKubernetes,
} from '../support/kubernetes/api-server.ts';
import { serviceOf } from '../support/kubernetes/objects.ts';
import { readRule } from '../support/kubernetes/rules.ts';
import { runFrontdesk, startServer, startSplit } from '../support/programs/frontdesk-process.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles, yamlOf } from '../support/temporary-files.ts';
import { startUpstream } from '../support/upstream.ts';
import { eventually } from '../support/waiting.ts';

describeWithKubernetes('frontdesk serve --kubernetes', () => {
  const servers = testServers(after);
  const writeFiles = temporaryFiles();
  let kubernetes: KubernetesServer;
  let service: string;
  before(async () => {
    kubernetes = await startKubernetes(servers);
    const upstream = await startUpstream(servers);
    service = upstream.origin;
    await kubernetes.grant('frontdesk', readRule);
  });

  async function start(env: Readonly<Record<string, string>> = {}) {
    const KUBECONFIG = await kubernetes.kubeconfig();
    const server = await startServer(['--kubernetes'], { env: { KUBECONFIG, ADMIN_PORT: '0', ...env }, cwd: '/' });
    servers.later(server.stop);
    return server;
  }

  function annotated(name: string, ...records: readonly object[]) {
    const config = records.map((record) => JSON.stringify({ apiVersion: 'gateway/v1', ...record })).join('\n---\n');
    return serviceOf('default', name, config);
  }

  for (const THREADS of ['1', '2'])
    it(`routes by the annotations of Services, with THREADS=${THREADS}`, async () => {
      const { gatewayUrl } = await start({ THREADS });
      const name = `hotel-${THREADS}`;
      const manifest = annotated(name, { kind: 'Mapping', name, prefix: `/${name}`, service });
      await kubernetes.apply(manifest);
      await eventually(async () => assert.equal(await statusOf(`${gatewayUrl}/${name}`), 200));
      await kubernetes.remove(manifest);
      await eventually(async () => assert.equal(await statusOf(`${gatewayUrl}/${name}`), 404));
    });

  for (const THREADS of ['1', '2'])
    it(`calls the addresses of Services, which change without a reload, with THREADS=${THREADS}`, async () => {
      const [first, second] = [await startUpstream(servers), await startUpstream(servers)];
      const { gatewayUrl, stdout } = await start({ THREADS, NODE_OPTIONS: resolvesExamples });
      const [name, stock] = [`orders-${THREADS}`, `stock-${THREADS}`];
      const manifest = annotated(name, { kind: 'Mapping', name, prefix: `/${name}`, service: stock });
      const stockAt = (port: number) => ({
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: stock, namespace: 'default' },
        spec: { type: 'ExternalName', externalName: 'stock.example.com', ports: [{ name: 'http', port }] },
      });
      const statusIs = (expected: number) =>
        eventually(async () => assert.equal(await statusOf(`${gatewayUrl}/${name}`), expected));
      await kubernetes.apply(manifest);
      await eventually(async () => {
        await statusIs(503);
        assert.match(stdout(), /no Service stock-. in the namespace default/);
      });
      await kubernetes.apply(stockAt(first.port));
      await statusIs(200);
      await kubernetes.patch(stockAt(first.port), { spec: { ports: [{ name: 'http', port: second.port }] } });
      await eventually(async () => {
        await statusIs(200);
        assert.ok(second.reached.length > 0);
      });
      const KUBECONFIG = await kubernetes.kubeconfig();
      const explained = await runFrontdesk(['explain', '--kubernetes', 'GET', `/${name}`], {
        env: { KUBECONFIG },
        cwd: '/',
      });
      assert.match(explained.stdout, new RegExp(`http://stock.example.com:${second.port}`));
      await kubernetes.remove(stockAt(0));
      await statusIs(503);
      await kubernetes.remove(manifest);
    });

  it('says which object is refused, and answers 503 for it', async () => {
    const manifest = annotated('broken', { kind: 'Mapping', name: 'broken', prefix: '/broken', service, wait: 3 });
    await kubernetes.apply(manifest);
    const { gatewayUrl, stdout } = await start();
    await eventually(async () => assert.equal(await statusOf(`${gatewayUrl}/broken`), 503));
    await eventually(async () => assert.match(stdout(), /Service default\/broken:1 {2}Mapping broken: unknown key/));
    const KUBECONFIG = await kubernetes.kubeconfig();
    const checked = await runFrontdesk(['check', '--kubernetes'], { env: { KUBECONFIG }, cwd: '/' });
    assert.equal(checked.code, 1);
    assert.match(checked.stderr, /Service default\/broken:1 {2}Mapping broken: unknown key "wait"/);
    await kubernetes.remove(manifest);
  });

  it('is not embedded with records of the program as well, which nobody would read', async () => {
    const records = [{ apiVersion: 'gateway/v1', kind: 'AuthService', name: 'auth', auth_service: 'auth' }] as const;
    await assert.rejects(async () => {
      const desk = await createFrontdesk({ kubernetes: true, config: { records } });
      await desk.close();
    }, /the program passes records, but with kubernetes/);
  });

  it('says once that annotations of Ambassador are not read', async () => {
    const metadata = { namespace: 'default', annotations: { 'getambassador.io/config': 'kind: Mapping' } };
    const ofEmissary = ['quote', 'stock'].map((name) => {
      return { apiVersion: 'v1', kind: 'Service', metadata: { ...metadata, name }, spec: { ports: [{ port: 80 }] } };
    });
    await kubernetes.apply(...ofEmissary);
    const { stdout } = await start();
    await eventually(async () =>
      assert.match(stdout(), /Service default\/(?:quote|stock) {2}the annotation getambassador\.io\/config of this/),
    );
    assert.match(stdout(), /is not read, nor that of 1 more objects.*Set GATEWAY_DOMAIN=getambassador\.io/);
    await Promise.all(ofEmissary.map(kubernetes.remove));
  });

  it('does not start with records in files as well, which nobody would read', async () => {
    const CONFIG_DIR = await writeFiles({ 'services/auth.yaml': yamlOf(authRecord) });
    const { code, stderr } = await runFrontdesk(['serve', '--kubernetes'], {
      env: { KUBECONFIG: await kubernetes.kubeconfig(), CONFIG_DIR },
    });
    assert.deepEqual([code, /auth\.yaml {2}this file has records, but with KUBERNETES/.test(stderr)], [1, true]);
  });

  it('says what is wrong with KUBECONFIG', async () => {
    const { code, stderr } = await runFrontdesk(['serve', '--kubernetes'], {
      env: { KUBECONFIG: '/no/file' },
      cwd: '/',
    });
    assert.deepEqual([code, stderr.includes('no cluster was found: /no/file does not exist')], [1, true]);
  });

  it('takes users from files, whose changes and those of the cluster count together', async () => {
    const CONFIG_DIR = await writeFiles({ 'users.yaml': yamlOf({ users: [] }) });
    const { gatewayUrl } = await start({ CONFIG_DIR });
    const auth = { kind: 'AuthService', name: 'auth', auth_service: 'frontdesk:auth' };
    const manifest = annotated('guarded', auth, { kind: 'Mapping', name: 'guarded', prefix: '/guarded', service });
    await kubernetes.apply(manifest);
    await eventually(async () => assert.equal(await statusOf(`${gatewayUrl}/guarded`, 'ann:secret'), 401));
    await writeFile(join(CONFIG_DIR, 'users.yaml'), yamlOf({ users: [annRecord] }));
    await eventually(async () => assert.equal(await statusOf(`${gatewayUrl}/guarded`, 'ann:secret'), 200));
    await kubernetes.remove(manifest);
  });

  it('runs as separate processes', async () => {
    const KUBECONFIG = await kubernetes.kubeconfig();
    const { gatewayUrl, stop } = await startSplit(['--kubernetes'], { env: { KUBECONFIG }, cwd: '/' });
    servers.later(stop);
    const auth = { kind: 'AuthService', name: 'auth', auth_service: 'frontdesk:auth' };
    const manifest = annotated('split', auth, { kind: 'Mapping', name: 'split', prefix: '/split', service });
    await kubernetes.apply(manifest);
    await eventually(async () => assert.equal(await statusOf(`${gatewayUrl}/split`), 401));
    await kubernetes.remove(manifest);
  });

  it('is checked with notices about services that have no address, from one reading of the cluster', async () => {
    const open = { bypass_auth: true };
    const names = ['absent', 'wrong-port', 'idle', 'idle-auth'];
    const manifests = [
      annotated('absent', { kind: 'Mapping', name: 'absent', prefix: '/absent', service: 'nowhere', ...open }),
      annotated('wrong-port', {
        kind: 'Mapping',
        name: 'wrong-port',
        prefix: '/wrong-port',
        service: 'idle:admin',
        ...open,
      }),
      annotated('idle', { kind: 'Mapping', name: 'idle', prefix: '/idle', service: 'idle', auth_service: 'idle-auth' }),
      annotated('idle-auth', { kind: 'AuthService', name: 'idle-auth', auth_service: 'idle', default: false }),
      annotated('moved', { kind: 'Mapping', name: 'moved', prefix: '/moved', service: 'nowhere', path_redirect: '/' }),
    ];
    await kubernetes.apply(...manifests);
    const proxy = await startApiProxy(servers, kubernetes, 'default', readerToken);
    const KUBECONFIG = proxy.kubeconfig;
    const { code, stdout } = await runFrontdesk(['check', '--kubernetes', '--json'], { env: { KUBECONFIG }, cwd: '/' });
    const { errors, notices } = JSON.parse(stdout) as Record<'errors' | 'notices', readonly Finding[]>;
    assert.deepEqual([code, errors], [0, []]);
    const found = notices.filter(({ file }) => names.some((name) => file === `Service default/${name}`));
    const nowhere = 'the cluster has no Service nowhere in the namespace default';
    const otherPort = 'Service idle in the namespace default has no port admin: it has http (80)';
    const get503 = 'until that changes, its requests get 503';
    assert.deepEqual(found.map(({ file, line, record, message }) => `${file}:${line} ${record} ${message}`).sort(), [
      `Service default/absent:1 Mapping absent has no address: ${nowhere}; ${get503}`,
      'Service default/idle-auth:1 AuthService idle-auth has no address: no ready endpoint; until that changes, requests are rejected with 503',
      `Service default/idle:1 Mapping idle has no address: no ready endpoint; ${get503}`,
      `Service default/wrong-port:1 Mapping wrong-port has no address: ${otherPort}; ${get503}`,
    ]);
    assert.match(found.map(({ remedy }) => remedy).join(), /Look at its pods, which kubectl get endpointslices/);
    const lists = proxy.paths.filter((path) => path.startsWith('/api/v1/services'));
    assert.equal(lists.length, 1);
    await Promise.all(manifests.map(kubernetes.remove));
  });

  it('says which Ingresses of Ambassador have routes, which are not read', async () => {
    const ingress = (name: string, ingressClassName: string) => ({
      apiVersion: 'networking.k8s.io/v1',
      kind: 'Ingress',
      metadata: { name, namespace: 'default' },
      spec: { ingressClassName, defaultBackend: { service: { name: 'web', port: { number: 80 } } } },
    });
    const manifests = [ingress('site', 'ambassador'), ingress('other', 'nginx')];
    await kubernetes.apply(...manifests);
    const { code, stderr } = await runFrontdesk(['check', '--kubernetes'], {
      env: { KUBECONFIG: await kubernetes.kubeconfig(adminToken), GATEWAY_DOMAIN: 'getambassador.io' },
      cwd: '/',
    });
    assert.equal(code, 0);
    assert.match(
      stderr,
      /Ingress default\/site {2}its routes protect requests, and are not read\n +Write a Mapping for each/,
    );
    assert.doesNotMatch(stderr, /default\/other|this object/);
    await Promise.all(manifests.map(kubernetes.remove));
  });

  it('explains a request by the records of the cluster', async () => {
    const manifest = annotated('explained', { kind: 'Mapping', name: 'explained', prefix: '/explained', service });
    await kubernetes.apply(manifest);
    const KUBECONFIG = await kubernetes.kubeconfig();
    const { stdout } = await runFrontdesk(['explain', '--kubernetes', 'GET', '/explained'], {
      env: { KUBECONFIG },
      cwd: '/',
    });
    assert.ok(stdout.includes(`Mapping explained sends it to ${service}`), stdout);
    await kubernetes.remove(manifest);
  });
});

/** The API server accepts no address of this machine, so the process resolves a name to one. */
const resolvesExamples = `--import "data:text/javascript,${encodeURIComponent(`
  import dns from 'node:dns';
  const { lookup } = dns;
  dns.lookup = (host, ...rest) => lookup(host.endsWith('.example.com') ? '127.0.0.1' : host, ...rest);
`)}"`;

interface Finding {
  readonly file: string;
  readonly line: number;
  readonly record?: string;
  readonly message: string;
  readonly remedy: string;
}

function statusOf(url: string, auth?: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get(url, { auth }, (response) => resolve(response.resume().statusCode)).once('error', reject);
  });
}
