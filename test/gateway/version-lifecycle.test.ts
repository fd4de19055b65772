/** Versions on their way out, through a desk: what each response tells of it, and what is left when their time is over. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Koa, { type Context } from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { parse } from 'yaml';
import { formatExplanation } from '#explain';
import { type Frontdesk, type FrontdeskOptions, hashPassword } from '../../src/index.ts';
import { authRecord, call, callAsDemo, desksOf, limitRecord, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { startUpstream } from '../support/upstream.ts';
import { createHeardLog } from '../support/waiting.ts';
import { askToSwitch, speak } from '../support/wire/peer.ts';
import { startSwitchingUpstream } from '../support/wire/switching-upstream.ts';

const day = 86_400_000;
const deprecation = Date.UTC(2026, 5, 30);
const sunset = Date.UTC(2027, 5, 30);

const versionRecord = (more: object = {}) => ({
  apiVersion: 'gateway/v1',
  kind: 'Version',
  name: 'first',
  prefix: '/v1',
  deprecation: '2026-06-30T00:00:00Z',
  sunset: '2027-06-30',
  successor: '/v2/',
  info: 'https://example.com/leaving',
  ...more,
});

const links = (root: string) =>
  [
    `<${root}/v2/>; rel="successor-version"`,
    '<https://example.com/leaving>; rel="deprecation"; type="text/html"',
    '<https://example.com/leaving>; rel="sunset"; type="text/html"',
  ].join(', ');

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/** What every response of the version has; `link`: all that it links to. */
function told(link = links('')): (answer: Answer) => void {
  return ({ headers }) => {
    const { deprecation: since, sunset: until, link: found } = headers;
    assert.deepEqual([since, until, found], ['@1782777600', 'Wed, 30 Jun 2027 00:00:00 GMT', link]);
  };
}

function untold({ headers }: Answer): void {
  assert.ok(!('deprecation' in headers) && !('sunset' in headers));
  assert.doesNotMatch(headers['link'] ?? '', /successor-version/);
}

describe('a Version', () => {
  const servers = testServers();
  const open = desksOf(servers);

  /** Of `records`, of users and a limit of one request a day, at a time that the test sets. */
  async function setUp(records: readonly object[], options: FrontdeskOptions = {}) {
    const time = { now: deprecation - day };
    const desk = await open({
      clock: () => time.now,
      config: {
        records: [authRecord, limitRecord, mappingRecord('hotel', '/v1/hotels', 'hotel'), ...records],
        limits: [
          { domain: 'gateway', descriptors: [{ key: 'user', rate_limit: { unit: 'day', requests_per_unit: 1 } }] },
        ],
        users: [{ name: 'demo', password_hash: await hashPassword('demo') }],
        demo: parse(await readFile('config/demo.yaml', 'utf8')),
      },
      ...options,
    });
    return { desk, time };
  }

  describe('until its sunset', () => {
    for (const [when, now] of [
      ['before it is deprecated', deprecation - day],
      ['while it is deprecated', deprecation + day],
      ['in its last millisecond', sunset - 1],
    ] as const)
      it(`is answered and told of ${when}`, async () => {
        const { desk, time } = await setUp([versionRecord()]);
        time.now = now;
        await call(desk, '/v1/messages/1').expect(200).expect(told());
        await callAsDemo(desk, '/v1/hotels/nowhere').expect(404).expect(told());
      });

    it('is told of by whatever the API answers', async () => {
      const { desk } = await setUp([versionRecord()]);
      await call(desk, '/v1').expect(308).expect('Location', '/v1/').expect(told());
      await call(desk, '/v1/messages').expect(308).expect(told());
      const { headers } = await call(desk, '/v1/messages/1').set('Host', 'desk.test').expect(200);
      await call(desk, '/v1/messages/1')
        .set({ Host: 'desk.test', 'If-None-Match': headers['etag'] ?? '' })
        .expect(304)
        .expect(told());
      await request(desk.app.callback()).head('/v1/messages/1').expect(200).expect(told());
      await request(desk.app.callback()).options('/v1/messages/1').expect(204).expect(told());
      await request(desk.app.callback()).delete('/v1/messages/1').expect(405).expect(told());
      await call(desk, '/v1/messages/1').set('Accept', 'image/png').expect(406).expect(told());
      await call(desk, '/v1/messages/?x=1').expect(400).expect(told());
      await call(desk, '/v1/nowhere').expect(404).expect(told());
      await call(desk, '/%761/messages/1').expect(200).expect(told());
    });

    it('keeps the links of a list, and stands behind them', async () => {
      const { desk } = await setUp([versionRecord()]);
      const { headers } = await call(desk, '/v1/messages/?limit=1').expect(200);
      const own = headers['link'] ?? '';
      assert.match(own, /^<\/v1\/messages\/[^>]*>; rel="self", .*rel="successor-version"/);
      assert.ok(own.endsWith(`, ${links('')}`));
    });

    it('is told of by the refusals of the gateway: 401, 404, 429, 501, 502, 503', async () => {
      const labels = { gateway: [{ user: [{ user: { header: 'X-Travel-User', omit_if_not_present: true } }] }] };
      const cut = await servers.tcp((socket) => socket.once('data', () => socket.end('nonsense\r\n\r\n')));
      const { desk } = await setUp(
        [
          versionRecord(),
          mappingRecord('limited', '/v1/limited', 'own', { labels }),
          mappingRecord('cut', '/v1/cut', cut.origin, { bypass_auth: true }),
          mappingRecord('away', '/v1/away', (await servers.refusing()).origin, { bypass_auth: true }),
          mappingRecord('broken', '/v1/broken', 'broken', { bypass_auth: true }),
        ],
        { services: { own: echo, broken } },
      );
      await call(desk, '/v1/hotels').expect(401).expect('WWW-Authenticate', /Basic/).expect(told());
      await callAsDemo(desk, '/v1/limited').expect(200).expect(told());
      await callAsDemo(desk, '/v1/limited').expect(429).expect(told());
      await call(desk, '/v1/cut').expect(502).expect(told());
      await call(desk, '/v1/away').expect(503).expect(told());
      await call(desk, '/v1/broken').expect(500).expect(told());
      await request(desk.app.callback()).trace('/v1/messages/1').expect(501).expect(told());
    });

    it('is told of by redirects and by services that write past Koa', async () => {
      const { desk } = await setUp(
        [
          versionRecord(),
          mappingRecord('moved', '/v1/moved', 'example.com', { host_redirect: true }),
          mappingRecord('raw', '/v1/raw', 'raw', { bypass_auth: true }),
        ],
        { services: { raw: writesItself } },
      );
      await call(desk, '/v1/moved').expect(301).expect(told());
      await call(desk, '/v1/raw').expect(200, 'raw').expect(told());
    });

    it('has the last word over what a mapping, and a service beside it, say of the headers of answers', async () => {
      const { desk } = await setUp(
        [
          versionRecord(),
          mappingRecord('own', '/v1/own', 'own', { bypass_auth: true, remove_response_headers: ['Link', 'Sunset'] }),
        ],
        { services: { own: talkative } },
      );
      await call(desk, '/v1/own').expect(200).expect(told());
    });

    it('is told of by the gateway’s answer to a preflight', async () => {
      const cors = { origins: ['https://app.example'] };
      const { desk } = await setUp([versionRecord(), mappingRecord('own', '/v1/own', 'own', { cors })], {
        services: { own: echo },
      });
      await preflight(desk, '/v1/own');
    });

    it('can be read by scripts of the origins that the settings allow', async () => {
      const { desk } = await setUp([versionRecord()], { corsOrigins: ['https://app.example'] });
      const { headers } = await call(desk, '/v1/messages/1').set('Origin', 'https://app.example').expect(told());
      const exposed = (headers['access-control-expose-headers'] ?? '').split(',');
      for (const name of ['Deprecation', 'Sunset', 'Link']) assert.ok(exposed.includes(name), name);
    });
  });

  describe('of a service across the network', () => {
    const theirs = { Link: '</own>; rel="self"', Deprecation: '@1', Sunset: 'Thu, 01 Jan 1970 00:00:01 GMT' };

    async function setUpRemote(version: object) {
      const upstream = await startUpstream(servers, (res) => void res.writeHead(200, theirs).end('ok'));
      const remote = mappingRecord('remote', '/v1/remote', upstream.origin, { bypass_auth: true });
      return { upstream, ...(await setUp([version, remote])) };
    }

    it('keeps the links of the service, and replaces what the service says of its own life', async () => {
      const { desk } = await setUpRemote(versionRecord());
      await call(desk, '/v1/remote')
        .expect(200, 'ok')
        .expect(told(`${theirs.Link}, ${links('')}`));
    });

    it('leaves what the service says and the record does not', async () => {
      const { desk } = await setUpRemote(
        versionRecord({ deprecation: undefined, successor: undefined, info: undefined }),
      );
      await call(desk, '/v1/remote')
        .expect('Deprecation', theirs.Deprecation)
        .expect('Sunset', 'Wed, 30 Jun 2027 00:00:00 GMT')
        .expect('Link', theirs.Link);
    });

    it('asks the service nothing when its time is over', async () => {
      const { desk, time, upstream } = await setUpRemote(versionRecord());
      time.now = sunset;
      await call(desk, '/v1/remote').expect(410).expect(told());
      assert.deepEqual(upstream.reached, []);
    });

    it('is told of when the connection is switched to another protocol', async () => {
      const echoing = await startSwitchingUpstream(servers);
      const chat = { bypass_auth: true, allow_upgrade: ['websocket'] };
      const { desk, time } = await setUp([versionRecord(), mappingRecord('chat', '/v1/chat', echoing.origin, chat)]);
      const { gateway } = await desk.listen();
      const port = gateway?.port ?? 0;
      const peer = speak(port, askToSwitch('/v1/chat'));
      await echoing.next();
      await peer.until('\r\n\r\n');
      const head = peer.received();
      assert.match(head, /^HTTP\/1\.1 101 /);
      assert.match(head, /\r\nDeprecation: @1782777600\r\n/);
      assert.ok(head.includes(`\r\nLink: ${links('')}\r\n`));
      peer.socket.destroy();
      time.now = sunset;
      assert.match(await speak(port, askToSwitch('/v1/chat')).closed, /^HTTP\/1\.1 410 /);
      assert.equal(echoing.asked.length, 1);
    });
  });

  describe('from its sunset on', () => {
    const retired = async (records: readonly object[] = [], options: FrontdeskOptions = {}) => {
      const { desk, time } = await setUp([versionRecord(), ...records], options);
      time.now = sunset;
      return desk;
    };

    it('is gone: 410 with the error body and the way on, whatever is asked and whoever asks', async () => {
      const desk = await retired();
      for (const path of ['/v1', '/v1/', '/v1/messages', '/v1/messages/1', '/v1/hotels', '/v1/nowhere']) {
        for (const method of ['get', 'post', 'put', 'patch', 'delete', 'options'] as const) {
          const answer = request(desk.app.callback())[method](path).set('Host', 'desk.test');
          const { body } = await answer.expect(410).expect(told());
          assert.deepEqual(body, {
            code: 410,
            message: '410: Gone',
            info_url: 'http://desk.test/gateway/v0/problems/gone',
          });
        }
        await request(desk.app.callback()).head(path).expect(410).expect(told());
        const { headers } = await callAsDemo(desk, path).expect(410);
        assert.ok(!('www-authenticate' in headers) && !('location' in headers));
      }
    });

    it('is gone as well, and not unknown, where no mapping is left', async () => {
      const { desk, time } = await setUp([versionRecord({ name: 'zero', prefix: '/v0' })]);
      await call(desk, '/v0/x').expect(404).expect(told());
      time.now = sunset;
      await call(desk, '/v0/x').expect(410).expect(told());
      const { outcome } = desk.explain({ method: 'GET', url: '/v0/x', headers: [] });
      assert.equal(outcome.kind === 'refused' && outcome.status, 410);
    });

    it('asks no auth service', async () => {
      const auth = await startUpstream(servers);
      const own = mappingRecord('own', '/v1/own', 'own', { auth_service: 'asked' });
      const asked = { ...authRecord, name: 'asked', auth_service: auth.origin, default: false };
      const desk = await retired([own, asked], { services: { own: echo } });
      await call(desk, '/v1/own').expect(410);
      assert.deepEqual(auth.reached, []);
    });

    it('can be read by the scripts that may use the mapping, with the headers that it adds', async () => {
      const more = { cors: { origins: ['https://app.example'] }, add_response_headers: { 'X-Safe': 'yes' } };
      const desk = await retired([mappingRecord('own', '/v1/own', 'own', more)], { services: { own: echo } });
      await call(desk, '/v1/own')
        .set('Origin', 'https://app.example')
        .expect(410)
        .expect('Access-Control-Allow-Origin', 'https://app.example')
        .expect('X-Safe', 'yes')
        .expect(told());
    });

    it('takes nothing else with it', async () => {
      const desk = await retired([mappingRecord('ten', '/v10', 'own', { bypass_auth: true })], {
        services: { own: echo },
      });
      await call(desk, '/v2/messages/1').expect(200).expect(untold);
      await call(desk, '/v10/x').expect(200).expect(untold);
      await call(desk, '/V1/messages/1').expect(404).expect(untold);
      await call(desk, '/nowhere').expect(404).expect(untold);
      await call(desk, '/v1/%252e%252e/v2').expect(400).expect(untold);
      await callAsDemo(desk, '/gateway/v0/diag/').expect(200).expect(untold);
      await call(desk, '/gateway/v0/check_ready').expect(200).expect(untold);
      await call(desk, '/gateway/v0/problems/gone').expect(200).expect(untold);
    });

    it('is what frontdesk explain tells beforehand', async () => {
      const { desk, time } = await setUp([versionRecord()]);
      const ask = (url: string) => desk.explain({ method: 'GET', url, headers: [] });
      const before = ask('/v1/hotels');
      assert.equal(before.outcome.kind, 'forwarded');
      assert.deepEqual(before.version, {
        name: 'first',
        prefix: '/v1',
        source: '<options>:4',
        ended: false,
        headers: [
          { name: 'Deprecation', value: '@1782777600' },
          { name: 'Sunset', value: 'Wed, 30 Jun 2027 00:00:00 GMT' },
          { name: 'Link', value: links('') },
        ],
      });
      time.now = sunset;
      for (const url of ['/v1/hotels', '/v1/nowhere']) {
        const { version, outcome, auth } = ask(url);
        const { kind, status, problem } = outcome as { kind: string; status: number; problem: string };
        assert.deepEqual([version?.ended, kind, status, problem], [true, 'refused', 410, 'gone']);
        assert.equal(auth, undefined);
        const { status: actual } = await call(desk, url);
        assert.equal(actual, status);
      }
      assert.equal(ask('/v2/messages/1').version, undefined);
      const text = formatExplanation(ask('/v1/hotels'));
      assert.match(text, /refused with 410 \(gone\): This version of the API has ended\./);
      assert.match(text, /^Version\n {2}name +first \(<options>:4\)\n {2}is +\/v1 and all below it, which has ended/m);
      assert.match(text, /answer has +Sunset: Wed, 30 Jun 2027/);
    });
  });

  describe('with one time alone', () => {
    it('is deprecated and never ends', async () => {
      const { desk, time } = await setUp([versionRecord({ sunset: undefined, info: '/help/' })]);
      time.now = sunset + 1000 * day;
      const { headers } = await call(desk, '/v1/messages/1').expect(200);
      assert.ok(!('sunset' in headers));
      const help = '</help/>; rel="deprecation"; type="text/html"';
      assert.equal(headers['link'], `</v2/>; rel="successor-version", ${help}`);
    });

    it('ends without having been deprecated', async () => {
      const { desk, time } = await setUp([
        versionRecord({ deprecation: undefined, successor: 'https://next.example/' }),
      ]);
      const { headers } = await call(desk, '/v1/messages/1').expect(200);
      assert.ok(!('deprecation' in headers));
      const info = '<https://example.com/leaving>; rel="sunset"; type="text/html"';
      assert.equal(headers['link'], `<https://next.example/>; rel="successor-version", ${info}`);
      time.now = sunset;
      await call(desk, '/v1/messages/1').expect(410);
    });
  });

  it('may be of a part of another, which it speaks for', async () => {
    const inner = versionRecord({ name: 'messages', prefix: '/v1/messages', sunset: '2026-12-31', info: undefined });
    const { desk, time } = await setUp([versionRecord({ info: undefined }), inner]);
    const sunsetOf = async (path: string) => (await call(desk, path)).headers['sunset'];
    assert.equal(await sunsetOf('/v1/messages/1'), 'Thu, 31 Dec 2026 00:00:00 GMT');
    assert.equal(await sunsetOf('/v1/accounts/demo'), 'Wed, 30 Jun 2027 00:00:00 GMT');
    time.now = Date.UTC(2026, 11, 31);
    await call(desk, '/v1/messages/1').expect(410);
    await call(desk, '/v1/accounts/demo').expect(200);
  });

  describe('where a mapping takes paths in any case', () => {
    const cors = { origins: ['https://app.example'] };
    const folding = mappingRecord('own', '/v1/own', 'own', { case_sensitive: false, bypass_auth: true, cors });
    const services = { own: echo };

    it('is told of, and ends, in any case', async () => {
      const { desk, time } = await setUp([versionRecord(), folding], { services });
      for (const path of ['/v1/own/x', '/V1/own/x', '/V1/OWN', '/%561/Own']) {
        time.now = sunset - 1;
        await call(desk, path).expect(200).expect(told());
        time.now = sunset;
        await call(desk, path).expect(410).expect(told());
        const { outcome, version } = desk.explain({ method: 'GET', url: path, headers: [] });
        assert.deepEqual([outcome.kind === 'refused' && outcome.status, version?.name], [410, 'first']);
      }
    });

    it('is told of by the answer to a preflight', async () => {
      const { desk } = await setUp([versionRecord(), folding], { services });
      await preflight(desk, '/V1/own');
    });

    it('takes nothing with it that a mapping tells apart by case', async () => {
      const other = mappingRecord('other', '/V1/other', 'own', { bypass_auth: true });
      const { desk, time } = await setUp([versionRecord(), folding, other], { services });
      time.now = sunset;
      for (const [path, status] of [
        ['/V1/other', 200],
        ['/V1/nowhere', 404],
      ] as const) {
        await call(desk, path).expect(status).expect(untold);
        assert.equal(desk.explain({ method: 'GET', url: path, headers: [] }).version, undefined);
      }
    });

    it('gives way to one that is written like the path, and to that of a longer prefix', async () => {
      const upper = versionRecord({ name: 'upper', prefix: '/V1', sunset: '2028-01-01' });
      const inner = versionRecord({ name: 'inner', prefix: '/V1/Own/part', sunset: '2029-01-01' });
      const { desk } = await setUp([versionRecord(), upper, inner, folding], { services });
      const versionOf = (url: string) => desk.explain({ method: 'GET', url, headers: [] }).version?.name;
      assert.equal(versionOf('/v1/own'), 'first');
      assert.equal(versionOf('/V1/own'), 'upper');
      assert.equal(versionOf('/v1/OWN/PART/x'), 'inner');
      const { headers } = await call(desk, '/v1/own/PART/x').expect(200);
      assert.equal(headers['sunset'], 'Mon, 01 Jan 2029 00:00:00 GMT');
    });
  });

  it('links to where the desk is mounted, and to where a trusted proxy has it', async () => {
    const { desk } = await setUp([versionRecord()], { trustedProxies: ['127.0.0.1', '::1'] });
    const host = new Koa().use(mount('/travel', desk.middleware)).callback();
    await request(host)
      .get('/travel/v1/messages/1')
      .expect(200)
      .expect(told(links('/travel')));
    await request(host)
      .get('/travel/v1/nowhere')
      .expect(404)
      .expect(told(links('/travel')));
    await call(desk, '/v1/nowhere')
      .set('X-Forwarded-Prefix', '/eu')
      .expect(404)
      .expect(told(links('/eu')));
  });

  it('is listed by the diagnostics', async () => {
    const { desk } = await setUp([versionRecord()]);
    const { body } = await callAsDemo(desk, '/gateway/v0/diag/').expect(200);
    assert.deepEqual(body.versions, [
      {
        name: 'first',
        prefix: '/v1',
        deprecation: '2026-06-30T00:00:00.000Z',
        sunset: '2027-06-30T00:00:00.000Z',
        successor: '/v2/',
        source: '<options>:4',
      },
    ]);
  });

  it('is told of once where the same records serve several processes', async () => {
    const { desk: hotels } = await setUp([versionRecord()], { only: ['hotel'], trustedProxies: ['127.0.0.1'] });
    const { gateway } = await hotels.listen();
    const serviceAddresses = { hotel: `127.0.0.1:${gateway?.port}` };
    const { desk, time } = await setUp([versionRecord()], { only: ['gateway', 'auth'], serviceAddresses });
    const { headers } = await callAsDemo(desk, '/v1/hotels/?limit=1').expect(200);
    const [own, ...more] = (headers['link'] ?? '').split(`, ${links('')}`);
    assert.match(own ?? '', /^<\/v1\/hotels\/[^>]*>; rel="self"/);
    assert.deepEqual(more, ['']);
    await callAsDemo(desk, '/v1/hotels/nowhere').expect(404).expect(told());
    time.now = sunset;
    await call(desk, '/v1/hotels/').expect(410).expect(told());
  });

  it('is no matter of a process without the gateway, which may stand behind one that has it', async () => {
    const { desk, time } = await setUp([versionRecord()], { only: ['api'] });
    time.now = sunset;
    await call(desk, '/v1/messages/1').expect(200).expect(untold);
  });
});

describe('a Version that changes under a running desk', () => {
  const open = desksOf(testServers());
  const writeFiles = temporaryFiles();

  it('counts from the next request on, and a broken one stays as it was', async () => {
    const config = await writeFiles({
      'services/auth.yaml': JSON.stringify(authRecord),
      'users.yaml': await readFile('config/users.yaml', 'utf8'),
      'demo.yaml': await readFile('config/demo.yaml', 'utf8'),
    });
    const log = createHeardLog();
    const desk = await open({ config, clock: () => sunset, logger: log.logger });
    const write = (more: object) => writeFile(join(config, 'services/v.yaml'), JSON.stringify(versionRecord(more)));
    const taken = 'configuration reloaded';
    await call(desk, '/v1/messages/1').expect(200).expect(untold);
    await write({ sunset: '2030-01-01' });
    await log.said(taken);
    await call(desk, '/v1/messages/1').expect(200).expect('Sunset', 'Tue, 01 Jan 2030 00:00:00 GMT');
    await write({});
    await log.said(taken);
    await call(desk, '/v1/messages/1').expect(410).expect(told());
    await write({ sunset: 'never' });
    await log.said(/what was good before stays/);
    await call(desk, '/v1/messages/1').expect(410).expect(told());
    const { body } = await callAsDemo(desk, '/gateway/v0/diag/').expect(200);
    assert.deepEqual(
      body.errors.map(({ record }: { record: string }) => record),
      ['Version first'],
    );
    await write({ prefix: '/v2', sunset: '2030-01-01' });
    await log.said(taken);
    await call(desk, '/v1/messages/1').expect(200).expect(untold);
    await call(desk, '/v2/messages/1').expect('Sunset', 'Tue, 01 Jan 2030 00:00:00 GMT');
  });
});

/** Of a page at app.example, which the mapping at `path` allows. */
async function preflight(desk: Frontdesk, path: string): Promise<void> {
  await request(desk.app.callback())
    .options(path)
    .set({ Origin: 'https://app.example', 'Access-Control-Request-Method': 'GET' })
    .expect(204)
    .expect('Access-Control-Allow-Origin', 'https://app.example')
    .expect(told());
}

function echo(ctx: Context): void {
  ctx.body = ctx.path;
}

function talkative(ctx: Context): void {
  ctx.set({ Deprecation: '@1', Sunset: 'Thu, 01 Jan 1970 00:00:01 GMT' });
  ctx.body = ctx.path;
}

function broken(): never {
  throw new Error('broken');
}

function writesItself(ctx: Context): void {
  ctx.respond = false;
  ctx.res.writeHead(200, { 'Content-Type': 'text/plain' }).end('raw');
}
