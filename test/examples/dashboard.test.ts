/** The dashboard for Grafana: each of its queries finds data in a Prometheus that scrapes a frontdesk with traffic. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import request from 'supertest';
import { adminToken, describeWithKubernetes, readerToken, startKubernetes } from '../support/kubernetes/api-server.ts';
import { mappingText, serviceOf } from '../support/kubernetes/objects.ts';
import { freePort } from '../support/programs/free-port.ts';
import { startServer, startServers } from '../support/programs/frontdesk-process.ts';
import { describeWith } from '../support/programs/installed.ts';
import { type TestServers, testServers } from '../support/serve.ts';
import { temporaryFiles, yamlOf } from '../support/temporary-files.ts';
import { eventually } from '../support/waiting.ts';
import { makeCertificate } from '../support/wire/certificate.ts';
import { labelsOf, usesIn, wrongUsesIn } from './metric-uses.ts';

interface Source {
  readonly uid: string;
}

interface Target {
  readonly refId: string;
  readonly expr: string;
  readonly datasource: Source;
}

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly gridPos: Readonly<Record<'x' | 'y' | 'w' | 'h', number>>;
  readonly targets?: readonly Target[];
}

interface Dashboard {
  readonly uid: string;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
  readonly annotations: { readonly list: readonly { readonly expr: string; readonly datasource: Source }[] };
}

const text = readFileSync(new URL('../../config/recipes/dashboard.json', import.meta.url), 'utf8');
const dashboard: Dashboard = JSON.parse(text);
const panels = dashboard.panels.filter(({ targets }) => targets !== undefined);
const queries = panels.flatMap(({ title, targets = [] }) => targets.map(({ refId, expr }) => ({ title, refId, expr })));
const isOfCluster = ({ expr }: { readonly expr: string }) => expr.includes('frontdesk_kubernetes_');
const annotations = dashboard.annotations.list;

describe('the dashboard', () => {
  it('uses only existing metrics and labels', () => {
    assert.ok(queries.every(({ expr }) => usesIn(expr).length > 0 || /(?:process|nodejs)_/.test(expr)));
    assert.deepEqual(
      [...queries, ...annotations].flatMap(({ expr }) => wrongUsesIn(expr)),
      [],
    );
  });

  it('shows each metric of a cluster', () => {
    const used = queries.filter(isOfCluster).flatMap(({ expr }) => usesIn(expr).map(({ name }) => name));
    const known = [...labelsOf.keys()].filter((name) => name.startsWith('frontdesk_kubernetes_'));
    assert.deepEqual([...new Set(used)].sort(), known.sort());
  });

  it('lets the viewer choose the data source, the job, instances and mappings', () => {
    assert.deepEqual(
      dashboard.templating.list.map(({ name }) => name),
      ['datasource', 'job', 'instance', 'mapping'],
    );
    const sources = [...panels.flatMap(({ targets = [] }) => targets), ...annotations];
    assert.deepEqual([...new Set(sources.map(({ datasource }) => datasource.uid))], [chosenSource]);
    assert.doesNotMatch(text, /__inputs|DS_PROMETHEUS/);
  });

  it('has panels with different numbers that do not overlap', () => {
    assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length);
    for (const one of dashboard.panels)
      for (const other of dashboard.panels)
        if (one !== other) assert.ok(!overlap(one, other), `${one.title}, ${other.title}`);
  });

  describeWith('prometheus', 'with a Prometheus', () => {
    const servers = testServers(after);
    const writeFiles = temporaryFiles();
    let ask: Ask;

    before(async function () {
      const directory = await writeFiles(configuration);
      const certificate = await makeCertificate(directory, 'IP:127.0.0.1');
      if (certificate === undefined) return this.skip();
      const { file: TLS_CERT, keyFile: TLS_KEY } = certificate;
      const env = { CONFIG_DIR: directory, TLS_CERT, TLS_KEY, ADMIN_PORT: '0', ALLOW_DEMO_USERS: 'true' };
      const server = await startServer([], { env });
      servers.later(server.stop);
      const send = () => sendTraffic(server.gatewayUrl, certificate.cert);
      await send();
      ask = await startPrometheus([server.adminUrl], { servers, writeFiles });
      await eventually(async () => {
        assert.notDeepEqual(await ask('query', { query: 'frontdesk_request_duration_seconds_count > 0' }), []);
      }, 100);
      // Rates need requests between two scrapes.
      await send();
      return undefined;
    });

    for (const { title, refId, expr } of queries.filter((query) => !isOfCluster(query)))
      it(`${title}, ${refId}: returns data`, () => returnsData(ask, expr));

    it('offers the job, instances and mappings', async () => {
      for (const { name, definition } of dashboard.templating.list) {
        if (definition === undefined) continue;
        const [, selector = '', label = ''] = /^label_values\((.*), (\w+)\)$/.exec(definition) ?? [];
        const values = await ask(`label/${label}/values`, { 'match[]': filledIn(selector) });
        assert.ok(values.length > 0, name);
      }
    });

    it('marks a change of the configuration', async () => {
      for (const { expr } of annotations) assert.deepEqual(await ask('query', { query: filledIn(expr) }), []);
    });
  });
});

describeWithKubernetes('the dashboard of a cluster', () => {
  describeWith('prometheus', 'with a Prometheus', () => {
    const servers = testServers(after);
    const writeFiles = temporaryFiles();
    let ask: Ask;

    before(async () => {
      const kubernetes = await startKubernetes(servers);
      await kubernetes.apply(serviceOf('default', 'orders', mappingText('orders')));
      const directory = await writeFiles({ 'users.yaml': yamlOf({ users: [] }) });
      // The second one may read nothing.
      const starting = [adminToken, readerToken].map(async (token) => {
        const env = { CONFIG_DIR: directory, KUBECONFIG: await kubernetes.kubeconfig(token), ADMIN_PORT: '0' };
        return startServer(['--kubernetes'], { env: { ...env, KUBERNETES_GATEWAY_API: 'true' } });
      });
      const started = await startServers(starting);
      for (const { stop } of started) servers.later(stop);
      ask = await startPrometheus(
        started.map(({ adminUrl }) => adminUrl),
        { servers, writeFiles },
      );
    });

    for (const { title, refId, expr } of queries.filter(isOfCluster))
      it(`${title}, ${refId}: returns data`, () => returnsData(ask, expr));
  });
});

type Ask = (path: string, query: Readonly<Record<string, string>>) => Promise<readonly unknown[]>;

interface PrometheusParts {
  readonly servers: TestServers;
  readonly writeFiles: ReturnType<typeof temporaryFiles>;
}

/** It scrapes these addresses. */
async function startPrometheus(urls: readonly string[], { servers, writeFiles }: PrometheusParts): Promise<Ask> {
  const targets = urls.map((url) => new URL(url).host);
  const scrape = { job_name: 'frontdesk', scrape_interval: '300ms', scrape_timeout: '300ms' };
  const config = { scrape_configs: [{ ...scrape, static_configs: [{ targets }] }] };
  const directory = await writeFiles({ 'prometheus.yaml': yamlOf(config) });
  const file = join(directory, 'prometheus.yaml');
  const origin = `http://127.0.0.1:${await freePort()}`;
  const options = { file, path: join(directory, 'data'), address: new URL(origin).host };
  const running = execFile('prometheus', [
    ...[`--config.file=${options.file}`, `--storage.tsdb.path=${options.path}`],
    ...[`--web.listen-address=${options.address}`, '--log.level=error'],
  ]);
  servers.later(() => running.kill('SIGKILL'));
  return async (path, query) => {
    const answer = await fetch(`${origin}/api/v1/${path}?${new URLSearchParams(query)}`);
    const { status, data, error } = (await answer.json()) as { status: string; data: unknown; error?: string };
    assert.equal(status, 'success', error);
    return Array.isArray(data) ? data : (data as { result: readonly unknown[] }).result;
  };
}

async function returnsData(ask: Ask, expr: string): Promise<void> {
  await eventually(async () => {
    const found = (await ask('query', { query: filledIn(expr) })) as readonly { value: [number, string] }[];
    assert.ok(
      found.some(({ value: [, number] }) => Number.isFinite(Number(number))),
      JSON.stringify(found),
    );
  }, 100);
}

const chosenSource = '$'.concat('{datasource}');

/** The variables as Grafana fills them in, for "All". */
function filledIn(expr: string): string {
  const values = { job: 'frontdesk', instance: '.*', mapping: '.*', __rate_interval: '1m' };
  return expr.replace(/\$(\w+)/g, (_, name: keyof typeof values) => values[name]);
}

function overlap({ gridPos: one }: Panel, { gridPos: other }: Panel): boolean {
  const apart = (position: 'x' | 'y', size: 'w' | 'h') =>
    one[position] + one[size] <= other[position] || other[position] + other[size] <= one[position];
  return !apart('x', 'w') && !apart('y', 'h');
}

const mapping = (name: string, fields: object) => ({
  ...{ apiVersion: 'gateway/v1', kind: 'Mapping', name, prefix: `/${name}`, service: 'http://127.0.0.1:1' },
  ...fields,
});

/** A gateway with every part that has metrics. Its services do not respond. */
const configuration = {
  'services/all.yaml': yamlOf(
    {
      apiVersion: 'gateway/v1',
      kind: 'JwtProvider',
      name: 'accounts',
      issuer: 'https://a.example',
      audiences: ['a'],
      jwks_uri: 'http://127.0.0.1:1/',
    },
    { apiVersion: 'gateway/v1', kind: 'AuthService', name: 'auth', auth_service: 'auth', providers: ['accounts'] },
    { apiVersion: 'gateway/v1', kind: 'RateLimitService', name: 'ratelimit', service: 'ratelimit' },
    mapping('orders', { labels: { gateway: [{ by_address: ['remote_address'] }] } }),
    mapping('carts', { grpc: true, bypass_auth: true }),
  ),
  'ratelimit/gateway.yaml': yamlOf({
    domain: 'gateway',
    descriptors: [{ key: 'remote_address', rate_limit: { unit: 'day', requests_per_unit: 10 } }],
  }),
  'users.yaml': yamlOf({ users: [] }),
};

async function sendTraffic(url: string, ca: string): Promise<void> {
  const token = ['{"alg":"RS256","kid":"a"}', '{"iss":"https://a.example"}', 'a'].map((part) =>
    Buffer.from(part).toString('base64url'),
  );
  await request(url).get('/orders').ca(ca).auth('ann', 'wrong').expect(401);
  await request(url)
    .get('/orders')
    .ca(ca)
    .set('Authorization', `Bearer ${token.join('.')}`)
    .expect(503);
  await request(url)
    .post('/carts/Add')
    .ca(ca)
    .set('Content-Type', 'application/grpc-web')
    .send(Buffer.alloc(5))
    .expect(200);
}
