/** The rate-limit service of a server: reloading limits, counters in memory and in Redis, and its HTTP interface. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Context } from 'koa';
import request, { type Test } from 'supertest';
import type { Frontdesk, FrontdeskOptions, LimitDomainInput } from '../../src/index.ts';
import { authRecord, call, callAsDemo, demoRecord, desksOf, limitRecord, mappingRecord } from '../support/desks.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { createRedisServer } from '../support/programs/redis-server.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { createLogWatcher } from '../support/waiting.ts';
import { createReflectionClient } from '../support/wire/reflection-client.ts';

const limits = (requests: number | string) =>
  `domain: d\ndescriptors:\n  - key: k\n    rate_limit: { unit: year, requests_per_unit: ${requests} }\n`;

/** Allows one hit a year for `none`, and ten for `k`. */
const twoLimits = {
  domain: 'd',
  descriptors: [
    { key: 'none', rate_limit: { unit: 'year', requests_per_unit: 1 } },
    { key: 'k', rate_limit: { unit: 'year', requests_per_unit: 10 } },
  ],
} satisfies LimitDomainInput;

describe('the rate-limit service', () => {
  const servers = testServers();
  const openDesk = desksOf(servers);
  const writeFiles = temporaryFiles();
  const log = createLogWatcher();

  const open = (options: FrontdeskOptions) =>
    openDesk({ only: ['ratelimit'], ratelimitHttpPort: 0, logger: log.logger, ...options });

  async function urlOf(desk: Frontdesk): Promise<string> {
    return (await desk.listen()).ratelimitHttp?.url ?? '';
  }

  it('logs once that it evicts counters, counts them, and still admits every new client', async () => {
    const messages: (string | undefined)[] = [];
    const line = (_fields: object, message?: string) => void messages.push(message);
    const config = { records: [], limits: [{ domain: 'd', descriptors: [{ ...twoLimits.descriptors[0], key: 'k' }] }] };
    const logger = { info: line, warn: line, error: line };
    const url = await urlOf(await open({ ratelimitKeysMax: 20, config, logger }));
    for (const expected of [200, 429]) await ask(url, 'denied').expect(expected);
    for (let index = 0; index < 100; index += 1) await ask(url, `flood ${index}`).expect(200);
    await ask(url, 'denied').expect(429);
    assert.equal(messages.filter((message) => message?.startsWith('the counters in memory are full')).length, 1);
    const { text } = await request(url).get('/metrics');
    assert.match(text, /^frontdesk_ratelimit_evicted_counters_total 69$/m);
  });

  it('applies a changed file without a restart, and keeps its counts', async () => {
    const config = await writeFiles({ 'ratelimit/d.yaml': limits(1) });
    const url = await urlOf(await open({ config }));
    await ask(url, 'v').expect(200);
    await ask(url, 'v').expect(429);
    await writeFile(join(config, 'ratelimit/d.yaml'), limits(2));
    await log.waitFor('configuration reloaded');
    await ask(url, 'v').expect(200);
    await ask(url, 'v').expect(429);
    assert.match((await request(url).get('/rlconfig')).text, /^d\.k: unit=YEAR requests_per_unit=2, /);
  });

  it('keeps the last good limits while a file is broken, and reports the error until it is fixed', async () => {
    const config = await writeFiles({
      'ratelimit/d.yaml': limits(1),
      'services/auth.yaml': JSON.stringify(authRecord),
      'users.yaml': JSON.stringify({ users: [demoRecord] }),
    });
    const desk = await open({ config, only: ['ratelimit', 'gateway', 'auth'] });
    const url = await urlOf(desk);
    const state = async () => {
      const { errors, limits: listed } = (await callAsDemo(desk, '/gateway/v0/diag/').expect(200)).body;
      const [, isCurrent] =
        /^frontdesk_ratelimit_config_current (\d)$/m.exec((await request(url).get('/metrics')).text) ?? [];
      return { sources: errors.map(({ source }: { source: string }) => source), limit: listed[0].limit, isCurrent };
    };
    const broken = { sources: [`${config}/ratelimit/d.yaml:4`], limit: '1 per year', isCurrent: '0' };
    const write = (requests: number | string) => writeFile(join(config, 'ratelimit/d.yaml'), limits(requests));
    const keeps = /records and limits stay as they were:\n.*ratelimit\/d\.yaml:4 {2}domain d: .*\n {4}For example/;

    for (const [mended, message] of [
      [1, 'all errors of the configuration are fixed'],
      [3, 'configuration reloaded'],
    ] as const) {
      await write('many');
      await log.waitFor(keeps);
      assert.deepEqual(await state(), broken);
      await write(mended);
      await log.waitFor(message);
      assert.deepEqual(await state(), { sources: [], limit: `${mended} per year`, isCurrent: '1' });
    }
  });

  it('does not count a denied request, unless ratelimitCountDenied is set', async () => {
    const config = { records: [], limits: [twoLimits] };
    for (const [ratelimitCountDenied, status] of [
      [false, 200],
      [true, 429],
    ] as const) {
      const url = await urlOf(await open({ config, ratelimitCountDenied }));
      for (const expected of [200, 429, 429]) await askAll(url, ['none', 'k']).expect(expected);
      // If denied requests were counted, eight of ten hits have been used.
      await askAll(url, ['k']).expect(status);
    }
  });

  it('sends headers for the client if ratelimitResponseHeaders is set', async () => {
    const config = { records: [], limits: [twoLimits] };
    for (const ratelimitResponseHeaders of [false, true]) {
      const url = await urlOf(await open({ config, ratelimitResponseHeaders }));
      const { body } = await askAll(url, ['k']);
      assert.equal('responseHeadersToAdd' in body, ratelimitResponseHeaders);
    }
  });

  it('logs requests without a limit on both ports at level debug', async () => {
    const lines: string[] = [];
    const debug = (fields: object, message?: string) => void lines.push(`${message} ${JSON.stringify(fields)}`);
    const logger = { info() {}, warn() {}, error() {}, debug };
    const { ratelimit, ratelimitHttp } = await (
      await open({ config: { records: [], limits: [twoLimits] }, logger })
    ).listen();
    await askAll(ratelimitHttp.url, ['k', 'c']).expect(200);
    const client = createReflectionClient(ratelimit.url);
    const message = { domain: 'other', descriptors: [{ entries: [{ key: 'k', value: 'v' }] }] };
    await client.call('envoy.service.ratelimit.v3.RateLimitService', 'ShouldRateLimit', message);
    client.close();
    assert.deepEqual(lines, [
      'a descriptor matches no limit {"domain":"d","unmatched":1,"descriptors":["(c=v)"]}',
      'unknown domain, so no limit applies {"domain":"other","unmatched":1,"descriptors":["(k=v)"]}',
    ]);
  });

  describe('with Redis', () => {
    const config = { records: [], limits: [twoLimits] };
    let redisUrl: string;

    beforeEach(async () => {
      redisUrl = `redis://127.0.0.1:${(await servers.refusing()).port}`;
    });

    for (const [ratelimitFailOpen, status, health] of [
      [true, 200, 'SERVING'],
      [false, 500, 'NOT_SERVING'],
    ] as const)
      it(`responds with ${status} while Redis is down, counts the failures, and reports ${health}`, async () => {
        const desk = await open({ config, redisUrl, ratelimitFailOpen, adminPort: 0 });
        const { ratelimit, ratelimitHttp, admin } = await desk.listen();
        const url = ratelimitHttp.url;
        for (let sent = 0; sent < 3; sent += 1) await ask(url, 'v').expect(status);
        await request(url).get('/healthcheck').expect(status);
        for (const from of [url, admin.url])
          assert.match((await request(from).get('/metrics')).text, /^frontdesk_ratelimit_call_errors_total 3$/m);
        const client = createReflectionClient(ratelimit.url);
        assert.deepEqual(await client.checkHealth(''), { status: health });
        client.close();
      });

    const whole = ['ratelimit', 'gateway', 'auth'] as const;
    for (const [name, only, denies, ratelimitFailOpen, status] of [
      ['is not ready if the service runs alone', ['ratelimit'], false, false, 503],
      ['is ready if the service fails open', ['ratelimit'], false, true, 200],
      ['is not ready if the gateway fails closed', whole, true, false, 503],
      ['is not ready if the service fails closed, whatever the record says', whole, false, false, 503],
      ['is ready if both fail open', whole, false, true, 200],
      ['is ready if the gateway fails closed and the service fails open', whole, true, true, 200],
    ] as const)
      it(`${name} while Redis is down`, async () => {
        const records = [authRecord, { ...limitRecord, failure_mode_deny: denies }];
        const desk = await open({ config: { ...config, records }, only, redisUrl, ratelimitFailOpen });
        await call(desk, '/gateway/v0/check_ready').expect(status);
        await call(desk, '/gateway/v0/check_alive').expect(200);
      });

    for (const [ratelimitFailOpen, status] of [
      [false, 503],
      [true, 200],
    ] as const)
      it(`with RATELIMIT_FAIL_OPEN=${ratelimitFailOpen} responds to limited requests with ${status} while Redis is down`, async () => {
        const labels = { d: [{ all: [{ generic_key: { key: 'k', value: 'v' } }] }] };
        const mappings = [
          mappingRecord('limited', '/limited', 'own', { bypass_auth: true, labels }),
          mappingRecord('free', '/free', 'own', { bypass_auth: true }),
        ];
        const records = [authRecord, { ...limitRecord, domain: 'd' }, ...mappings];
        const own = (ctx: Context) => void Object.assign(ctx, { body: 'ok' });
        const options = { only: whole, redisUrl, ratelimitFailOpen, services: { own } };
        const desk = await open({ config: { ...config, records }, ...options });
        const { body } = await call(desk, '/limited').expect(status);
        if (status === 503) assert.match(body.info_url, /ratelimit-unavailable$/);
        await call(desk, '/free').expect(200);
        const { auth: _, rate_limit: limit } = JSON.parse(
          JSON.stringify(await desk.explain({ method: 'GET', url: '/limited' })),
        );
        assert.equal(limit.on_error, status === 503 ? 'the client gets 503' : 'the request continues');
      });

    it('logs a new cause of an outage at once, and none for hits that were not tried', async function () {
      if (!isInstalled('redis-server')) return this.skip();
      const messages: string[] = [];
      const reached = createLogWatcher();
      const warn = (fields: object, message = '') => {
        messages.push(message);
        reached.logger.warn(fields, message);
      };
      const server = await createRedisServer(['--requirepass', 'secret']);
      try {
        const logger = { info() {}, warn, error: warn };
        const url = await urlOf(await open({ config, redisUrl: server.url.replace('//', '//:wrong@'), logger }));
        for (let sent = 0; sent < 3; sent += 1) await ask(url, 'v').expect(200);
        assert.deepEqual(messages, ['hits cannot be counted in Redis: requests pass uncounted']);
        await server.start();
        await reached.waitFor(/check the user and the password in redisUrl/);
      } finally {
        await server.remove();
      }
    });

    it('shows in the diagnostics when it last let a request pass that Redis did not count', async () => {
      const labels = { d: [{ all: [{ generic_key: { key: 'k', value: 'v' } }] }] };
      const own = mappingRecord('own', '/own', 'http://127.0.0.1:1', { bypass_auth: true, labels });
      const desk = await open({
        config: { ...config, records: [authRecord, { ...limitRecord, domain: 'd' }, own], users: [demoRecord] },
        only: whole,
        redisUrl,
        clock: () => 1_000,
      });
      const lastError = async () =>
        (await callAsDemo(desk, '/gateway/v0/diag/').expect(200)).body.ratelimit.last_error_at;
      assert.equal(await lastError(), undefined);
      await call(desk, '/own').expect(503);
      assert.equal(await lastError(), '1970-01-01T00:00:01.000Z');
    });

    it('shows clients no limits while Redis is down, except one that allows no requests', async () => {
      const closed = { key: 'closed', rate_limit: { unit: 'year', requests_per_unit: 0 } } as const;
      const mapping = (name: string) => ({
        ...mappingRecord(name, `/${name}`, 'own'),
        bypass_auth: true,
        labels: { d: [{ group: [{ [name === 'open' ? 'k' : 'closed']: { header: 'X-Name' } }] }] },
      });
      const desk = await open({
        config: {
          records: [mapping('open'), mapping('shut'), { ...limitRecord, domain: 'd', service: 'ratelimit' }],
          limits: [{ ...twoLimits, descriptors: [...twoLimits.descriptors, closed] }],
        },
        redisUrl,
        only: ['ratelimit', 'gateway'],
        services: {
          own(ctx: Context) {
            ctx.body = 'own';
          },
        },
      });
      const { headers } = await call(desk, '/open').expect(200);
      assert.deepEqual(
        Object.keys(headers).filter((name) => name.includes('ratelimit')),
        [],
      );
      await call(desk, '/shut').expect(429).expect('RateLimit', '"closed";r=0;t=1');
    });

    for (const [ratelimitFailOpen, status, message] of [
      [true, 200, 'hits cannot be counted in Redis: requests pass uncounted'],
      [false, 500, 'hits cannot be counted in Redis: requests are not decided'],
    ] as const)
      it(`logs one line for an outage, without the password: ${message}`, async () => {
        const lines: (readonly [string | undefined, object])[] = [];
        const write = (fields: object, said?: string) => void lines.push([said, fields]);
        const logger = { info() {}, warn: write, error: write };
        const secretUrl = redisUrl.replace('//', '//me:hush@');
        const url = await urlOf(await open({ config, redisUrl: secretUrl, ratelimitFailOpen, logger }));
        for (let sent = 0; sent < 5; sent += 1) await ask(url, 'v').expect(status);
        const ofRedis = lines.filter(([, fields]) => JSON.stringify(fields).includes('redis'));
        assert.deepEqual(
          ofRedis.map(([said]) => said),
          [message],
        );
        assert.doesNotMatch(JSON.stringify(lines), /hush/);
      });

    it('shares its counters with another server', async function () {
      const sharedUrl = process.env['TEST_REDIS_URL'];
      if (sharedUrl === undefined) this.skip();
      // By the hour, so that the keys do not stay in that Redis for a year.
      const hourly = { records: [], limits: [JSON.parse(JSON.stringify(twoLimits).replaceAll('year', 'hour'))] };
      const openShared = () => open({ config: hourly, redisUrl: sharedUrl }).then(urlOf);
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

/** Sends four hits for `k`, and one for other keys. */
function askAll(url: string, keys: readonly string[]): Test {
  const descriptors = keys.map((key) => ({ entries: [{ key, value: 'v' }], hitsAddend: key === 'k' ? '4' : '1' }));
  return request(url).post('/json').send({ domain: 'd', descriptors });
}
