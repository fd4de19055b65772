/** Deprecated versions of the API through a whole desk: headers on every response, and 410 from the sunset on. */
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

/** Every response of the version has its headers; `link`: the whole Link header. */
function announced(link = links('')): (answer: Answer) => void {
  return ({ headers }) => {
    const { deprecation: since, sunset: until, link: found } = headers;
    assert.deepEqual([since, until, found], ['@1782777600', 'Wed, 30 Jun 2027 00:00:00 GMT', link]);
  };
}

function notAnnounced({ headers }: Answer): void {
  assert.ok(!('deprecation' in headers) && !('sunset' in headers));
  assert.doesNotMatch(headers['link'] ?? '', /successor-version/);
}

describe('a Version', () => {
  const servers = testServers();
  const open = desksOf(servers);

  /** A desk with these records, a user and a limit of one request a day, whose clock the test sets. */
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

  const explain = (desk: Frontdesk, url: string) => desk.explain({ method: 'GET', url, headers: [] });
  const page = 'https://app.example';

  it('announces its end before and after its deprecation, up to the last millisecond', async () => {
    const { desk, time } = await setUp([versionRecord()]);
    for (time.now of [deprecation - day, deprecation + day, sunset - 1]) {
      await call(desk, '/v1/messages/1').expect(200).expect(announced());
      await callAsDemo(desk, '/v1/hotels/nowhere').expect(404).expect(announced());
    }
  });

  it('announces it on every response of the API', async () => {
    const { desk } = await setUp([versionRecord()]);
    await call(desk, '/v1').expect(308).expect('Location', '/v1/').expect(announced());
    const { headers } = await call(desk, '/v1/messages/1').set('Host', 'desk.test').expect(200);
    await call(desk, '/v1/messages/1')
      .set({ Host: 'desk.test', 'If-None-Match': headers['etag'] ?? '' })
      .expect(304)
      .expect(announced());
    const client = request(desk.app.callback());
    await client.head('/v1/messages/1').expect(200).expect(announced());
    await client.options('/v1/messages/1').expect(204).expect(announced());
    await client.delete('/v1/messages/1').expect(405).expect(announced());
    await call(desk, '/v1/messages/1').set('Accept', 'image/png').expect(406).expect(announced());
    await call(desk, '/v1/messages/?x=1').expect(400).expect(announced());
    await call(desk, '/%761/messages/1').expect(200).expect(announced());
  });

  it('adds its links behind those of a list', async () => {
    const { desk } = await setUp([versionRecord()]);
    const { headers } = await call(desk, '/v1/messages/?limit=1').expect(200);
    const link = headers['link'] ?? '';
    assert.match(link, /^<\/v1\/messages\/[^>]*>; rel="self", .*rel="successor-version"/);
    assert.ok(link.endsWith(`, ${links('')}`));
  });

  it('announces it on refusals and failures of the gateway', async () => {
    const labels = { gateway: [{ user: [{ user: { header: 'X-Travel-User', omit_if_not_present: true } }] }] };
    const nonsense = await servers.tcp((socket) => socket.once('data', () => socket.end('nonsense\r\n\r\n')));
    const { desk } = await setUp(
      [
        versionRecord(),
        mappingRecord('limited', '/v1/limited', 'own', { labels }),
        mappingRecord('nonsense', '/v1/nonsense', nonsense.origin, { bypass_auth: true }),
        mappingRecord('down', '/v1/down', (await servers.refusing()).origin, { bypass_auth: true }),
        mappingRecord('broken', '/v1/broken', 'broken', { bypass_auth: true }),
      ],
      { services: { own: echo, broken } },
    );
    await call(desk, '/v1/hotels').expect(401).expect('WWW-Authenticate', /Basic/).expect(announced());
    await callAsDemo(desk, '/v1/limited').expect(200).expect(announced());
    await callAsDemo(desk, '/v1/limited').expect(429).expect(announced());
    await call(desk, '/v1/nonsense').expect(502).expect(announced());
    await call(desk, '/v1/down').expect(503).expect(announced());
    await call(desk, '/v1/broken').expect(500).expect(announced());
    await request(desk.app.callback()).trace('/v1/messages/1').expect(501).expect(announced());
  });

  it('announces it on redirects, on responses past Koa, and over what a mapping or a service says itself', async () => {
    const { desk } = await setUp(
      [
        versionRecord(),
        mappingRecord('moved', '/v1/moved', 'example.com', { host_redirect: true }),
        mappingRecord('raw', '/v1/raw', 'raw', { bypass_auth: true }),
        mappingRecord('own', '/v1/own', 'own', { bypass_auth: true, remove_response_headers: ['Link', 'Sunset'] }),
      ],
      { services: { raw: writesItself, own: contradicts } },
    );
    await call(desk, '/v1/moved').expect(301).expect(announced());
    await call(desk, '/v1/raw').expect(200, 'raw').expect(announced());
    await call(desk, '/v1/own').expect(200).expect(announced());
  });

  it('lets scripts of the allowed origins read the announcement', async () => {
    const { desk } = await setUp([versionRecord()], { corsOrigins: [page] });
    const { headers } = await call(desk, '/v1/messages/1').set('Origin', page).expect(announced());
    const exposed = (headers['access-control-expose-headers'] ?? '').split(',');
    for (const name of ['Deprecation', 'Sunset', 'Link']) assert.ok(exposed.includes(name), name);
  });

  describe('of a service across HTTP', () => {
    const theirs = { Link: '</own>; rel="self"', Deprecation: '@1', Sunset: 'Thu, 01 Jan 1970 00:00:01 GMT' };

    async function setUpRemote(version: object) {
      const upstream = await startUpstream(servers, (res) => void res.writeHead(200, theirs).end('ok'));
      const remote = mappingRecord('remote', '/v1/remote', upstream.origin, { bypass_auth: true });
      return { upstream, ...(await setUp([version, remote])) };
    }

    it('keeps the links of the service, replaces its lifecycle headers, and asks it nothing after the sunset', async () => {
      const { desk, time, upstream } = await setUpRemote(versionRecord());
      await call(desk, '/v1/remote')
        .expect(200, 'ok')
        .expect(announced(`${theirs.Link}, ${links('')}`));
      time.now = sunset;
      await call(desk, '/v1/remote').expect(410).expect(announced());
      assert.equal(upstream.reached.length, 1);
    });

    it('keeps the headers of the service that the record does not set', async () => {
      const { desk } = await setUpRemote(
        versionRecord({ deprecation: undefined, successor: undefined, info: undefined }),
      );
      await call(desk, '/v1/remote')
        .expect('Deprecation', theirs.Deprecation)
        .expect('Sunset', 'Wed, 30 Jun 2027 00:00:00 GMT')
        .expect('Link', theirs.Link);
    });

    it('announces its end on a 101, and switches no protocol after the sunset', async () => {
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
    async function retired(records: readonly object[] = [], options: FrontdeskOptions = {}) {
      const { desk, time } = await setUp([versionRecord(), ...records], options);
      time.now = sunset;
      return desk;
    }

    it('is 410 for every path and method, with or without credentials', async () => {
      const desk = await retired();
      const body = { code: 410, message: '410: Gone', info_url: 'http://desk.test/gateway/v0/problems/gone' };
      for (const path of ['/v1', '/v1/messages/1', '/v1/hotels', '/v1/nowhere']) {
        for (const method of ['get', 'post', 'delete', 'options'] as const) {
          const response = request(desk.app.callback())[method](path).set('Host', 'desk.test');
          await response.expect(410, body).expect(announced());
        }
        const { headers } = await callAsDemo(desk, path).expect(410);
        assert.ok(!('www-authenticate' in headers) && !('location' in headers));
      }
    });

    it('is 410 where no mapping is left', async () => {
      const { desk, time } = await setUp([versionRecord({ name: 'zero', prefix: '/v0' })]);
      await call(desk, '/v0/x').expect(404).expect(announced());
      time.now = sunset;
      await call(desk, '/v0/x').expect(410).expect(announced());
    });

    it('asks no auth service and counts no limit', async () => {
      const auth = await startUpstream(servers);
      const labels = { gateway: [{ from: ['remote_address'] }] };
      const own = mappingRecord('own', '/v1/own', 'own', { auth_service: 'asked', labels });
      const asked = { ...authRecord, name: 'asked', auth_service: auth.origin, default: false };
      const desk = await retired([own, asked], { services: { own: echo } });
      const { headers } = await call(desk, '/v1/own').expect(410);
      assert.equal(headers['ratelimit'], undefined);
      assert.deepEqual(auth.reached, []);
    });

    it('answers with the CORS and response headers of the mapping', async () => {
      const more = { cors: { origins: [page] }, add_response_headers: { 'X-Safe': 'yes' } };
      const desk = await retired([mappingRecord('own', '/v1/own', 'own', more)], { services: { own: echo } });
      await call(desk, '/v1/own')
        .set('Origin', page)
        .expect(410)
        .expect('Access-Control-Allow-Origin', page)
        .expect('X-Safe', 'yes')
        .expect(announced());
    });

    it('changes nothing outside of its prefix', async () => {
      const desk = await retired([mappingRecord('ten', '/v10', 'own', { bypass_auth: true })], {
        services: { own: echo },
      });
      for (const [path, status] of [
        ['/v2/messages/1', 200],
        ['/v10/x', 200],
        ['/V1/messages/1', 404],
        ['/nowhere', 404],
        ['/v1/%252e%252e/v2', 400],
        ['/gateway/v0/check_ready', 200],
      ] as const)
        await call(desk, path).expect(status).expect(notAnnounced);
    });

    it('is predicted by explain', async () => {
      const { desk, time } = await setUp([versionRecord()]);
      const before = explain(desk, '/v1/hotels');
      assert.equal(before.outcome.kind, 'forwarded');
      const headers = [
        { name: 'Deprecation', value: '@1782777600' },
        { name: 'Sunset', value: 'Wed, 30 Jun 2027 00:00:00 GMT' },
        { name: 'Link', value: links('') },
      ];
      const first = { name: 'first', prefix: '/v1', source: '<options>:4' };
      assert.deepEqual(before.version, { ...first, ended: false, headers });
      time.now = sunset;
      for (const url of ['/v1/hotels', '/v1/nowhere']) {
        const { version, outcome, auth } = explain(desk, url);
        const { kind, status, problem } = outcome as { kind: string; status: number; problem: string };
        assert.deepEqual([version?.ended, kind, status, problem, auth], [true, 'refused', 410, 'gone', undefined]);
        await call(desk, url).expect(status);
      }
      assert.equal(explain(desk, '/v2/messages/1').version, undefined);
      const text = formatExplanation(explain(desk, '/v1/hotels'));
      assert.match(text, /refused with 410 \(gone\): This version of the API has ended\./);
      assert.match(text, /^Version\n {2}name +first \(<options>:4\)\n {2}is +\/v1 and all below it, which has ended/m);
      assert.match(text, /answer has +Sunset: Wed, 30 Jun 2027/);
    });
  });

  it('without a sunset is deprecated and never ends', async () => {
    const { desk, time } = await setUp([versionRecord({ sunset: undefined, info: '/help/' })]);
    time.now = sunset + 1000 * day;
    const { headers } = await call(desk, '/v1/messages/1').expect(200);
    const help = '</help/>; rel="deprecation"; type="text/html"';
    assert.deepEqual([headers['sunset'], headers['link']], [undefined, `</v2/>; rel="successor-version", ${help}`]);
  });

  it('without a deprecation ends all the same', async () => {
    const { desk, time } = await setUp([versionRecord({ deprecation: undefined, successor: 'https://next.example/' })]);
    const { headers } = await call(desk, '/v1/messages/1').expect(200);
    const info = '<https://example.com/leaving>; rel="sunset"; type="text/html"';
    const link = `<https://next.example/>; rel="successor-version", ${info}`;
    assert.deepEqual([headers['deprecation'], headers['link']], [undefined, link]);
    time.now = sunset;
    await call(desk, '/v1/messages/1').expect(410);
  });

  it('with a longer prefix wins over the version around it', async () => {
    const inner = versionRecord({ name: 'messages', prefix: '/v1/messages', sunset: '2026-12-31', info: undefined });
    const { desk, time } = await setUp([versionRecord({ info: undefined }), inner]);
    const sunsetOf = async (path: string) => (await call(desk, path)).headers['sunset'];
    assert.equal(await sunsetOf('/v1/messages/1'), 'Thu, 31 Dec 2026 00:00:00 GMT');
    assert.equal(await sunsetOf('/v1/accounts/demo'), 'Wed, 30 Jun 2027 00:00:00 GMT');
    time.now = Date.UTC(2026, 11, 31);
    await call(desk, '/v1/messages/1').expect(410);
    await call(desk, '/v1/accounts/demo').expect(200);
  });

  describe('of a mapping that ignores case', () => {
    const cors = { origins: [page] };
    const ignoring = mappingRecord('own', '/v1/own', 'own', { case_sensitive: false, bypass_auth: true, cors });
    const services = { own: echo };

    it('announces its end, answers preflights, and ends, in any case', async () => {
      const { desk, time } = await setUp([versionRecord(), ignoring], { services });
      for (const path of ['/v1/own/x', '/V1/own/x', '/V1/OWN', '/%561/Own']) {
        time.now = sunset - 1;
        await call(desk, path).expect(200).expect(announced());
        await request(desk.app.callback())
          .options(path)
          .set({ Origin: page, 'Access-Control-Request-Method': 'GET' })
          .expect(204)
          .expect('Access-Control-Allow-Origin', page)
          .expect(announced());
        time.now = sunset;
        await call(desk, path).expect(410).expect(announced());
        const { outcome, version } = explain(desk, path);
        assert.deepEqual([outcome.kind === 'refused' && outcome.status, version?.name], [410, 'first']);
      }
    });

    it('changes nothing for a mapping that does not', async () => {
      const other = mappingRecord('other', '/V1/other', 'own', { bypass_auth: true });
      const { desk, time } = await setUp([versionRecord(), ignoring, other], { services });
      time.now = sunset;
      await call(desk, '/V1/other').expect(200).expect(notAnnounced);
      await call(desk, '/V1/nowhere').expect(404).expect(notAnnounced);
      assert.equal(explain(desk, '/V1/other').version, undefined);
    });

    it('loses to a version written like the path, and to one with a longer prefix', async () => {
      const upper = versionRecord({ name: 'upper', prefix: '/V1', sunset: '2028-01-01' });
      const inner = versionRecord({ name: 'inner', prefix: '/V1/Own/part', sunset: '2029-01-01' });
      const { desk } = await setUp([versionRecord(), upper, inner, ignoring], { services });
      const versionOf = (url: string) => explain(desk, url).version?.name;
      assert.deepEqual(['/v1/own', '/V1/own', '/v1/OWN/PART/x'].map(versionOf), ['first', 'upper', 'inner']);
      await call(desk, '/v1/own/PART/x').expect(200).expect('Sunset', 'Mon, 01 Jan 2029 00:00:00 GMT');
    });
  });

  it('links below the path where the desk is mounted, or where a trusted proxy has it', async () => {
    const { desk } = await setUp([versionRecord()], { trustedProxies: ['127.0.0.1', '::1'] });
    const mounted = request(new Koa().use(mount('/travel', desk.middleware)).callback());
    await mounted
      .get('/travel/v1/messages/1')
      .expect(200)
      .expect(announced(links('/travel')));
    await call(desk, '/v1/nowhere')
      .set('X-Forwarded-Prefix', '/eu')
      .expect(404)
      .expect(announced(links('/eu')));
  });

  it('is announced once where the same records serve several processes', async () => {
    const { desk: hotels } = await setUp([versionRecord()], { only: ['hotel'], trustedProxies: ['127.0.0.1'] });
    const { gateway } = await hotels.listen();
    const serviceAddresses = { hotel: `127.0.0.1:${gateway?.port}` };
    const { desk, time } = await setUp([versionRecord()], { only: ['gateway', 'auth'], serviceAddresses });
    const { headers } = await callAsDemo(desk, '/v1/hotels/?limit=1').expect(200);
    const [own, ...more] = (headers['link'] ?? '').split(`, ${links('')}`);
    assert.match(own ?? '', /^<\/v1\/hotels\/[^>]*>; rel="self"/);
    assert.deepEqual(more, ['']);
    time.now = sunset;
    await call(desk, '/v1/hotels/').expect(410).expect(announced());
  });

  it('does not concern a process without the gateway', async () => {
    const { desk, time } = await setUp([versionRecord()], { only: ['api'] });
    time.now = sunset;
    await call(desk, '/v1/messages/1').expect(200).expect(notAnnounced);
  });
});

describe('a Version that changes under a running desk', () => {
  const open = desksOf(testServers());
  const writeFiles = temporaryFiles();

  it('applies from the next request on, and stays when it becomes invalid', async () => {
    const config = await writeFiles({
      'services/auth.yaml': JSON.stringify(authRecord),
      'users.yaml': await readFile('config/users.yaml', 'utf8'),
      'demo.yaml': await readFile('config/demo.yaml', 'utf8'),
    });
    const log = createHeardLog();
    const desk = await open({ config, clock: () => sunset, logger: log.logger });
    const write = (more: object) => writeFile(join(config, 'services/v.yaml'), JSON.stringify(versionRecord(more)));
    const taken = 'configuration reloaded';
    await call(desk, '/v1/messages/1').expect(200).expect(notAnnounced);
    await write({ sunset: '2030-01-01' });
    await log.said(taken);
    await call(desk, '/v1/messages/1').expect(200).expect('Sunset', 'Tue, 01 Jan 2030 00:00:00 GMT');
    await write({});
    await log.said(taken);
    await call(desk, '/v1/messages/1').expect(410).expect(announced());
    await write({ sunset: 'never' });
    await log.said(/what was good before stays/);
    await call(desk, '/v1/messages/1').expect(410).expect(announced());
    const { body } = await callAsDemo(desk, '/gateway/v0/diag/').expect(200);
    assert.deepEqual(
      body.errors.map(({ record }: { record: string }) => record),
      ['Version first'],
    );
    await write({ prefix: '/v2', sunset: '2030-01-01' });
    await log.said(taken);
    await call(desk, '/v1/messages/1').expect(200).expect(notAnnounced);
    await call(desk, '/v2/messages/1').expect('Sunset', 'Tue, 01 Jan 2030 00:00:00 GMT');
  });
});

function echo(ctx: Context): void {
  ctx.body = ctx.path;
}

function contradicts(ctx: Context): void {
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
