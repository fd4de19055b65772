/** The metrics of a running gateway: the exact effect of requests and configuration changes, and their endpoint. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Context } from 'koa';
import request from 'supertest';
import { packageVersion } from '#config';
import { durationBoundsMs } from '#gateway';
import type { FrontdeskOptions } from '../../src/index.ts';
import {
  authRecord,
  callAsDemo,
  demoRecord,
  desksOf,
  limitRecord,
  mappingRecord,
  type TestDesk,
} from '../support/desks.ts';
import { built } from '../support/programs/built.ts';
import { startProgram } from '../support/programs/frontdesk-process.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { promtool } from '../support/programs/promtool.ts';
import { among, type Series, scrape, seriesOf } from '../support/scrape.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles, yamlOf } from '../support/temporary-files.ts';
import { startUpstream } from '../support/upstream.ts';
import { createDeferred, createLogWatcher, eventually } from '../support/waiting.ts';

const ok = async (ctx: Context) => {
  ctx.body = 'ok';
};

const own = (name: string, more: object = {}) => mappingRecord(name, `/${name}`, 'own', { bypass_auth: true, ...more });
const remote = (name: string, service: string, more: object = {}) =>
  mappingRecord(name, `/${name}`, service, { bypass_auth: true, ...more });

/** Allows two requests per hour for each value of `x-key`. */
const limits = yamlOf({
  domain: 'gateway',
  descriptors: [{ key: 'x-key', rate_limit: { unit: 'hour', requests_per_unit: 2 } }],
});
const labels = { gateway: [{ by_key: [{ 'x-key': { header: 'x-key', omit_if_not_present: true } }] }] };
const basic = `Basic ${btoa('demo:demo')}`;

describe('the metrics of a desk', () => {
  const servers = testServers();
  const openDesk = desksOf(servers);
  const writeFiles = temporaryFiles();
  const log = createLogWatcher();

  async function setUp(records: readonly object[], options: FrontdeskOptions = {}) {
    const config = await writeFiles({
      'services/all.yaml': yamlOf(authRecord, limitRecord, ...records),
      'ratelimit/limits.yaml': limits,
      'users.yaml': JSON.stringify({ users: [demoRecord] }),
    });
    const desk = await openDesk({
      config,
      adminPort: 0,
      only: ['gateway', 'auth', 'ratelimit'],
      services: { own: ok },
      logger: log.logger,
      ...options,
    });
    const { gateway } = await desk.listen();
    const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
      request(gateway.url).get(path).set(headers);
    const write = (...changed: readonly object[]) =>
      writeFile(join(config, 'services/all.yaml'), yamlOf(authRecord, limitRecord, ...changed));
    return { desk, get, write };
  }

  /** Waits for the requests to be counted, which may happen after the client has received the response. */
  const settled = (desk: TestDesk, requests: number) =>
    eventually(async () => {
      const series = await scrape(desk);
      const counts = Object.values(among(series, 'frontdesk_requests_total'));
      assert.equal(
        counts.reduce((sum, count) => sum + count, 0),
        requests,
      );
      return series;
    });

  /** Returns the non-zero counters of a mapping. */
  function countsOf(series: Series, mapping: string): Series {
    const counted = ['requests_total', 'requests_refused_total', 'upstream_failures_total', 'upstream_retries_total'];
    const entries = Object.entries(series).flatMap(([key, value]) => {
      const [name = '', of, ...rest] = key.replace('frontdesk_', '').split(' ');
      return of === mapping && counted.includes(name) && value !== 0
        ? [[[name, ...rest].join(' '), value] as const]
        : [];
    });
    return Object.fromEntries(entries);
  }

  it('count the requests of each mapping, by status and reason of rejection', async () => {
    const { desk, get } = await setUp([
      own('open', { labels }),
      mappingRecord('guarded', '/guarded', 'own'),
      mappingRecord('moved', '/moved', 'elsewhere.example', { host_redirect: true }),
    ]);
    await get('/guarded').expect(401);
    await get('/guarded', { authorization: basic }).expect(200);
    await get('/guarded', { authorization: basic }).expect(200);
    for (const status of [200, 200, 429]) await get('/open', { 'x-key': 'a' }).expect(status);
    await get('/moved').expect(301);
    await get('/nowhere').expect(404);
    const series = await settled(desk, 8);
    assert.deepEqual(countsOf(series, 'guarded'), {
      'requests_total 2xx': 2,
      'requests_total 4xx': 1,
      'requests_refused_total auth': 1,
    });
    assert.deepEqual(countsOf(series, 'open'), {
      'requests_total 2xx': 2,
      'requests_total 4xx': 1,
      'requests_refused_total limit': 1,
    });
    assert.deepEqual(countsOf(series, 'moved'), { 'requests_total 3xx': 1 });
    assert.deepEqual(countsOf(series, ''), { 'requests_total 4xx': 1 });
    assert.deepEqual(among(series, 'frontdesk_auth_decisions_total'), { allowed: 2, denied: 1, error: 0 });
    assert.deepEqual(among(series, 'frontdesk_ratelimit_decisions_total'), { ok: 2, over: 1, error: 0 });
    assert.deepEqual(among(series, 'frontdesk_ratelimit_over_limit_total'), { 'gateway x-key 2/3600s': 1 });
    assert.deepEqual(among(series, 'frontdesk_ratelimit_call_errors_total'), { '': 0 });
    assert.deepEqual(among(series, 'frontdesk_build_info'), { [packageVersion()]: 1 });
  });

  it('count the failures of services over HTTP by reason, and retries', async () => {
    const away = await servers.refusing();
    const failing = await startUpstream(servers, (res) => res.writeHead(500).end());
    const rude = await startUpstream(servers, (res) => res.destroy());
    const silent = await startUpstream(servers, () => {});
    const retry_policy = { retry_on: '5xx', num_retries: 2 };
    const { desk, get } = await setUp([
      remote('away', away.origin),
      remote('failing', failing.origin, { retry_policy }),
      remote('rude', rude.origin),
      remote('silent', silent.origin, { timeout_ms: 20 }),
    ]);
    await get('/away').expect(503);
    await get('/failing').expect(500);
    await get('/rude').expect(502);
    await get('/silent').expect(504);
    const series = await settled(desk, 4);
    const failed = { 'requests_total 5xx': 1 };
    assert.deepEqual(countsOf(series, 'away'), { ...failed, 'upstream_failures_total unavailable': 1 });
    assert.deepEqual(countsOf(series, 'failing'), { ...failed, upstream_retries_total: 2 });
    assert.deepEqual(countsOf(series, 'rude'), { ...failed, 'upstream_failures_total failed': 1 });
    assert.deepEqual(countsOf(series, 'silent'), { ...failed, 'upstream_failures_total timeout': 1 });
  });

  it('show requests in flight, open circuit breakers and disconnected clients', async () => {
    const reached = createDeferred();
    const patient = await startUpstream(servers, reached.resolve);
    const circuit_breakers = { max_requests: 1 };
    const { desk, get } = await setUp([
      remote('full', patient.origin, { circuit_breakers }),
      // Another mapping with a different configuration of the same service. Both share the series of the service.
      remote('roomy', patient.origin),
    ]);
    const { gateway } = await desk.listen();
    const leaving = new AbortController();
    const left = fetch(`${gateway.url}/full`, { signal: leaving.signal });
    left.catch(() => {});
    await reached.promise;
    await get('/full').expect(503);
    const during = await settled(desk, 1);
    assert.deepEqual(among(during, 'frontdesk_requests_in_flight')['full'], 1);
    assert.deepEqual(among(during, 'frontdesk_upstream_circuit_open'), { [patient.origin]: 1 });
    assert.deepEqual(among(during, 'frontdesk_upstream_circuit_overflows_total'), { [patient.origin]: 1 });
    leaving.abort();
    await assert.rejects(left);
    const afterwards = await settled(desk, 2);
    assert.deepEqual(countsOf(afterwards, 'full'), {
      'requests_total 5xx': 1,
      'requests_total 499': 1,
      'upstream_failures_total overloaded': 1,
    });
    assert.deepEqual(among(afterwards, 'frontdesk_requests_in_flight')['full'], 0);
    assert.deepEqual(among(afterwards, 'frontdesk_upstream_circuit_open'), { [patient.origin]: 0 });
  });

  it('show ejected addresses of services', async () => {
    const well = await startUpstream(servers);
    const ill = await startUpstream(servers, (res) => res.writeHead(500).end());
    const twins = [well, ill].map(({ port }) => `127.0.0.1:${port}`);
    const outlier_detection = { consecutive_5xx: 1 };
    const { desk, get } = await setUp([remote('twins', 'twins', { outlier_detection })], {
      serviceAddresses: { twins },
    });
    const statuses = [(await get('/twins')).status, (await get('/twins')).status].sort();
    assert.deepEqual(statuses, [200, 500]);
    assert.deepEqual(among(await settled(desk, 2), 'frontdesk_upstream_address_healthy'), {
      [`twins ${well.origin}`]: 1,
      [`twins ${ill.origin}`]: 0,
    });
  });

  it('have a histogram in seconds with consistent buckets, counting only the requests to this desk', async () => {
    const [{ desk, get }, other] = [await setUp([own('a')]), await setUp([own('a')])];
    for (let sent = 0; sent < 3; sent += 1) await get('/a').expect(200);
    const series = await settled(desk, 3);
    await settled(other.desk, 0);
    const buckets = Object.entries(among(series, 'frontdesk_request_duration_seconds_bucket'))
      .map(([key, count]) => ({ le: Number(key.replace('a ', '').replace('+Inf', 'Infinity')), count }))
      .sort((one, other) => one.le - other.le);
    assert.deepEqual(
      buckets.map(({ le }) => le * 1000),
      [...durationBoundsMs, Number.POSITIVE_INFINITY],
    );
    const counts = buckets.map(({ count }) => count);
    assert.ok(
      counts.every((count, index) => count >= (counts[index - 1] ?? 0)),
      counts.join(' '),
    );
    assert.equal(counts.at(-1), 3);
    assert.deepEqual(among(series, 'frontdesk_request_duration_seconds_count'), { a: 3 });
    const sum = among(series, 'frontdesk_request_duration_seconds_sum')['a'] ?? 0;
    assert.ok(sum > 0 && sum < 20, String(sum));
  });

  it('show the current configuration, its errors and its reloads', async () => {
    const { desk, get, write } = await setUp([own('a')]);
    await get('/a').expect(200);
    const before = await settled(desk, 1);
    const stateOf = (series: Series) => ({
      generation: series['frontdesk_configuration_generation'],
      errors: series['frontdesk_configuration_errors'],
      last_reload_success: series['frontdesk_configuration_last_reload_success'],
      ...among(series, 'frontdesk_configuration_reloads_total'),
    });
    assert.deepEqual(stateOf(before), { generation: 1, errors: 0, last_reload_success: 1, success: 0, error: 0 });
    assert.equal(before['frontdesk_configuration_last_reload_duration_seconds'], 0);

    await write(own('a', { rewrite: 4 }), own('b'));
    await log.waitFor(/records and limits stay as they were/);
    const broken = await scrape(desk);
    assert.deepEqual(stateOf(broken), { generation: 1, errors: 1, last_reload_success: 0, success: 0, error: 1 });
    const since = 'frontdesk_configuration_refused_since_timestamp_seconds';
    const { records = 0, users } = among(broken, since);
    assert.ok(records > (before['frontdesk_configuration_applied_timestamp_seconds'] ?? 0));
    assert.equal(users, 0);
    assert.deepEqual(countsOf(broken, 'a'), { 'requests_total 2xx': 1 });

    await write(own('b'));
    await log.waitFor('configuration reloaded');
    const mended = await scrape(desk);
    assert.deepEqual(among(mended, since), { records: 0, users: 0, certificates: 0 });
    assert.deepEqual(stateOf(mended), { generation: 2, errors: 0, last_reload_success: 1, success: 1, error: 1 });
    assert.ok((mended['frontdesk_configuration_last_reload_duration_seconds'] ?? 0) > 0);
    const applied = 'frontdesk_configuration_applied_timestamp_seconds';
    assert.ok((mended[applied] ?? 0) > (before[applied] ?? 0));
    const mappings = Object.keys(mended).filter((key) => key.startsWith('frontdesk_requests_in_flight'));
    assert.ok(!mappings.some((key) => key.endsWith(' a')) && mappings.some((key) => key.endsWith(' b')));
  });

  it('create no series for values that clients make up', async () => {
    const { desk, get } = await setUp([own('a', { labels }), mappingRecord('guarded', '/guarded', 'own')]);
    const send = async (variant: number) => {
      await get(`/a/${variant}?q=${variant}`, { 'x-key': `${variant}`, 'x-request-id': `${variant}` });
      await get(`/guarded/${variant}`, { authorization: `Basic ${btoa(`user-${variant}:x`)}` });
      await get(`/nowhere-${variant}`, { host: `host-${variant}.example` });
    };
    await send(0);
    const before = Object.keys(await settled(desk, 3));
    for (let variant = 1; variant <= 10; variant += 1) await send(variant);
    assert.deepEqual(Object.keys(await settled(desk, 33)), before);
  });

  it('show the resource usage of the process', async () => {
    const { desk } = await setUp([]);
    const series = await scrape(desk);
    for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'nodejs_heap_size_used_bytes'])
      assert.ok((series[name] ?? 0) > 0, name);
    const { user, system } = process.cpuUsage();
    assert.ok((series['process_cpu_seconds_total'] ?? 0) <= (user + system) / 1e6);
    const startedAt = series['process_start_time_seconds'] ?? 0;
    assert.ok(Math.abs(startedAt - performance.timeOrigin / 1000) < 1);
    assert.deepEqual(among(series, 'nodejs_version_info'), { [process.version]: 1 });
  });

  it('do not keep the process alive', async () => {
    const published = pathToFileURL(built('index.js'));
    const program = `
      import { createFrontdesk } from ${JSON.stringify(published.href)};
      const desk = await createFrontdesk({ config: { records: [] }, only: ['gateway'], port: 0, adminPort: 0 });
      const { admin } = await desk.listen();
      const answer = await fetch(admin.url + '/metrics');
      await answer.text();
      await desk.close();
      console.log(answer.status);`;
    const directory = await writeFiles({ 'program.mjs': program });
    const { ended } = startProgram(join(directory, 'program.mjs'));
    assert.deepEqual(await ended, { code: 0, stdout: '200\n', stderr: '' });
  });

  it('pass `promtool check metrics`', async function () {
    if (!isInstalled('promtool')) this.skip();
    const { desk, get } = await setUp([own('a', { labels }), remote('b', (await startUpstream(servers)).origin)]);
    for (const path of ['/a', '/b', '/nowhere']) await get(path, { 'x-key': 'k' });
    await settled(desk, 3);
    const { admin } = await desk.listen();
    const { text } = await request(admin.url).get('/metrics');
    assert.equal(promtool(['check', 'metrics'], text), '');
  });
});

describe('the metrics endpoint of a gateway', () => {
  const path = '/gateway/v0/metrics';
  const open = desksOf(testServers(after));
  let desk: TestDesk;

  before(async () => {
    desk = await open();
  });

  /** Values sent by Prometheus 2, and by 3 with native histograms, and by other clients. */
  const accepts = [
    'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
    'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1',
    'application/openmetrics-text;version=1.0.0',
    'text/html,application/xhtml+xml',
    '',
  ];
  it('responds with plain text, whatever the Accept header', async () => {
    for (const accept of accepts) {
      const { text, headers } = await callAsDemo(desk, path).set('Accept', accept).expect(200);
      const expected = ['text/plain; version=0.0.4; charset=utf-8', 'no-store'];
      assert.deepEqual([headers['content-type'], headers['cache-control']], expected, accept);
      assert.equal(seriesOf(text)['frontdesk_configuration_generation'], 1);
    }
  });

  it('allows only GET and HEAD, at a single path', async () => {
    const ask = request(desk.app.callback());
    const as = { authorization: basic };
    const { text, headers } = await ask.head(path).set(as).expect(200);
    assert.deepEqual([text, headers['content-type']], [undefined, 'text/plain; version=0.0.4; charset=utf-8']);
    assert.ok(Number(headers['content-length']) > 1000);
    await ask.options(path).set(as).expect(204).expect('Allow', 'GET, HEAD, OPTIONS');
    await ask.post(path).set(as).expect(405).expect('Allow', 'GET, HEAD, OPTIONS');
    await ask.get(`${path}/`).set(as).expect(404);
    await ask.get('/metrics').set(as).expect(404);
  });
});
