/** The rate-limit service of a desk: its files while they change, its counters wherever they are, its face over HTTP. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import request, { type Test } from 'supertest';
import type { Frontdesk, FrontdeskOptions } from '../../src/index.ts';
import { authRecord, call, callAsDemo, desksOf, limitRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { createHeardLog } from '../support/waiting.ts';
import { createStranger } from '../support/wire/grpc-stranger.ts';

const limits = (requests: number | string) =>
  `domain: d\ndescriptors:\n  - key: k\n    rate_limit: { unit: year, requests_per_unit: ${requests} }\n`;

/** `none` lets one a year pass, `k` ten. */
const twoLimits = {
  domain: 'd',
  descriptors: [
    { key: 'none', rate_limit: { unit: 'year', requests_per_unit: 1 } },
    { key: 'k', rate_limit: { unit: 'year', requests_per_unit: 10 } },
  ],
};

describe('the rate-limit service of a desk', () => {
  const servers = testServers();
  const openDesk = desksOf(servers);
  const writeFiles = temporaryFiles();
  const log = createHeardLog();

  const open = (options: FrontdeskOptions) =>
    openDesk({ only: ['ratelimit'], ratelimitHttpPort: 0, logger: log.logger, ...options });

  async function urlOf(desk: Frontdesk): Promise<string> {
    return (await desk.listen()).ratelimitHttp?.url ?? '';
  }

  it('needs nothing but limits, neither records nor a database', async () => {
    const config = await writeFiles({ 'ratelimit/d.yaml': limits(1) });
    const url = await urlOf(await open({ config, databaseUrl: 'postgres://nobody@127.0.0.1:1/none' }));
    await ask(url, 'v').expect(200);
    await ask(url, 'v').expect(429);
  });

  it('has no listener for HTTP unless it is asked for', async () => {
    const desk = await open({ ratelimitHttpPort: undefined });
    assert.equal((await desk.listen()).ratelimitHttp, undefined);
    const other = await open({ only: ['auth'] });
    assert.equal((await other.listen()).ratelimitHttp, undefined);
  });

  it('decides by a file that has changed, without a restart, and goes on counting where it was', async () => {
    const config = await writeFiles({ 'ratelimit/d.yaml': limits(1) });
    const url = await urlOf(await open({ config }));
    await ask(url, 'v').expect(200);
    await ask(url, 'v').expect(429);
    await writeFile(join(config, 'ratelimit/d.yaml'), limits(2));
    await log.said('configuration reloaded');
    await ask(url, 'v').expect(200);
    await ask(url, 'v').expect(429);
    assert.match((await request(url).get('/rlconfig')).text, /^d\.k: unit=YEAR requests_per_unit=2, /);
  });

  it('keeps the last good limits when a file breaks, and says so until it is mended', async () => {
    const config = await writeFiles({
      'ratelimit/d.yaml': limits(1),
      'services/auth.yaml': JSON.stringify(authRecord),
      'users.yaml': await readFile('config/users.yaml', 'utf8'),
    });
    const desk = await open({ config, only: ['ratelimit', 'gateway', 'auth'] });
    const url = await urlOf(desk);
    await writeFile(join(config, 'ratelimit/d.yaml'), limits('many'));
    await log.said(/what was good before stays in force:\n.*ratelimit\/d\.yaml:4 {2}domain d: .*\n {4}For example/);
    await ask(url, 'v').expect(200);
    await ask(url, 'v').expect(429);
    assert.match((await request(url).get('/metrics')).text, /^frontdesk_ratelimit_config_current 0$/m);
    const { body } = await callAsDemo(desk, '/gateway/v0/diag/');
    assert.match(body.errors[0].source, /d\.yaml:4$/);
    assert.equal(body.limits[0].limit, '1 per year');

    await writeFile(join(config, 'ratelimit/d.yaml'), limits(3));
    await log.said('configuration reloaded');
    assert.match((await request(url).get('/metrics')).text, /^frontdesk_ratelimit_config_current 1$/m);
    const mended = (await callAsDemo(desk, '/gateway/v0/diag/')).body;
    assert.deepEqual([mended.errors, mended.limits[0].limit], [[], '3 per year']);
  });

  it('says that a file is mended also when it is what it was', async () => {
    const config = await writeFiles({ 'ratelimit/d.yaml': limits(1) });
    const url = await urlOf(await open({ config }));
    await writeFile(join(config, 'ratelimit/d.yaml'), limits('many'));
    await log.said(/what was good before stays/);
    await writeFile(join(config, 'ratelimit/d.yaml'), limits(1));
    await log.said('the configuration has no errors any more');
    await ask(url, 'v').expect(200);
  });

  it('counts a denied request nowhere, unless ratelimitCountDenied asks for it', async () => {
    const config = { records: [], limits: [twoLimits] };
    for (const [ratelimitCountDenied, status] of [
      [false, 200],
      [true, 429],
    ] as const) {
      const url = await urlOf(await open({ config, ratelimitCountDenied }));
      for (const expected of [200, 429, 429]) await askAll(url, ['none', 'k']).expect(expected);
      // Eight of ten are taken by now if what was denied counted.
      await askAll(url, ['k']).expect(status);
    }
  });

  it('sends headers for the client when ratelimitResponseHeaders asks for it', async () => {
    const config = { records: [], limits: [twoLimits] };
    for (const ratelimitResponseHeaders of [false, true]) {
      const url = await urlOf(await open({ config, ratelimitResponseHeaders }));
      const { body } = await askAll(url, ['k']);
      assert.equal('responseHeadersToAdd' in body, ratelimitResponseHeaders);
    }
  });

  describe('with Redis', () => {
    const config = { records: [], limits: [twoLimits] };

    it('answers OK while Redis is away, counts the failures, and stays healthy', async () => {
      const { port } = await servers.refusing();
      const url = await urlOf(await open({ config, redisUrl: `redis://127.0.0.1:${port}` }));
      for (let sent = 0; sent < 5; sent += 1) await ask(url, 'v').expect(200);
      await request(url).get('/healthcheck').expect(200);
      assert.match((await request(url).get('/metrics')).text, /^frontdesk_ratelimit_call_errors_total 5$/m);
    });

    it('gives no answer while Redis is away, and is not healthy, when it must fail closed', async () => {
      const { port } = await servers.refusing();
      const redisUrl = `redis://127.0.0.1:${port}`;
      const url = await urlOf(await open({ config, redisUrl, ratelimitFailOpen: false }));
      await ask(url, 'v').expect(500);
      await request(url).get('/healthcheck').expect(500);
      assert.match((await request(url).get('/metrics')).text, /^frontdesk_ratelimit_call_errors_total 1$/m);
    });

    for (const [name, only, denies, failOpen, status] of [
      ['is not, where the service runs alone', ['ratelimit'], false, false, 503],
      ['is, where the service answers all the same', ['ratelimit'], false, true, 200],
      ['is not, where the gateway refuses what got no answer', ['ratelimit', 'gateway', 'auth'], true, false, 503],
      ['is, where the gateway lets it pass', ['ratelimit', 'gateway', 'auth'], false, false, 200],
      ['is, where the gateway would refuse and the service answers', ['ratelimit', 'gateway', 'auth'], true, true, 200],
    ] as const)
      it(`says while Redis is away whether the process is ready, which it ${name}`, async () => {
        const { port } = await servers.refusing();
        const records = [authRecord, { ...limitRecord, failure_mode_deny: denies }];
        const redis = { redisUrl: `redis://127.0.0.1:${port}`, ratelimitFailOpen: failOpen };
        const desk = await open({ config: { ...config, records }, only, ...redis });
        await call(desk, '/gateway/v0/check_ready').expect(status);
        await call(desk, '/gateway/v0/check_alive').expect(200);
      });

    it('is not serving by gRPC health either, when it must fail closed', async () => {
      const { port } = await servers.refusing();
      const desk = await open({ config, redisUrl: `redis://127.0.0.1:${port}`, ratelimitFailOpen: false });
      const { ratelimit } = await desk.listen();
      const stranger = createStranger(ratelimit?.url ?? '');
      assert.deepEqual(await stranger.checkHealth(''), { status: 'NOT_SERVING' });
      stranger.close();
    });

    it('counts together with another desk', async function () {
      const redisUrl = process.env['TEST_REDIS_URL'];
      if (redisUrl === undefined) this.skip();
      // Its key must not stay in that Redis for a year.
      const hourly = { records: [], limits: [JSON.parse(JSON.stringify(twoLimits).replaceAll('year', 'hour'))] };
      const openShared = () => open({ config: hourly, redisUrl }).then(urlOf);
      const urls = [await openShared(), await openShared()];
      const value = randomUUID();
      const statuses: number[] = [];
      for (let sent = 0; sent < 12; sent += 1) statuses.push((await ask(urls[sent % 2] ?? '', value)).status);
      assert.deepEqual(statuses, [...Array(10).fill(200), 429, 429]);
    });
  });
});

function ask(url: string, value: string): Test {
  const entries = [{ key: 'k', value }];
  return request(url)
    .post('/json')
    .send({ domain: 'd', descriptors: [{ entries }] });
}

/** Four hits of `k`, one of others. */
function askAll(url: string, keys: readonly string[]): Test {
  const descriptors = keys.map((key) => ({ entries: [{ key, value: 'v' }], hitsAddend: key === 'k' ? '4' : '1' }));
  return request(url).post('/json').send({ domain: 'd', descriptors });
}
