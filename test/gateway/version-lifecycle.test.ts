/** API versions with an end, through a whole desk: headers on every response, and 410 from the sunset on. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Koa, { type Context } from 'koa';
import mount from 'koa-mount';
import request, { type Response } from 'supertest';
import { parse } from 'yaml';
import { formatExplanation } from '#explain';
import type { Frontdesk, FrontdeskOptions, VersionInput } from '../../src/index.ts';
import { authRecord, call, callAsDemo, demoRecord, desksOf, limitRecord, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { createLogWatcher } from '../support/waiting.ts';
import { speak, upgradeRequest } from '../support/wire/peer.ts';
import { type SwitchingUpstream, startSwitchingUpstream } from '../support/wire/switching-upstream.ts';

const day = 86_400_000;
const deprecation = Date.UTC(2026, 5, 30);
const sunset = Date.UTC(2027, 5, 30);
const [deprecated, endsIn2027] = ['@1782777600', 'Wed, 30 Jun 2027 00:00:00 GMT'];

const versionRecord = (name: string, prefix: string, more: Partial<VersionInput> = {}): VersionInput => ({
  apiVersion: 'gateway/v1',
  kind: 'Version',
  name,
  prefix,
  sunset: '2027-06-30',
  ...more,
});

const announcement = {
  deprecation: '2026-06-30T00:00:00Z',
  successor: '/v2/',
  info: 'https://example.com/leaving',
};
const first = versionRecord('first', '/v1', announcement);
const linksOfFirst = (root = '') =>
  [
    `<${root}/v2/>; rel="successor-version"`,
    '<https://example.com/leaving>; rel="deprecation"; type="text/html"',
    '<https://example.com/leaving>; rel="sunset"; type="text/html"',
  ].join(', ');

type Announcement = readonly [deprecation: string | undefined, sunset: string | undefined, link: string | undefined];

const firstAnnounced = (link = linksOfFirst()): Announcement => [deprecated, endsIn2027, link];
const announcedBy = ({ headers }: Response) => [headers['deprecation'], headers['sunset'], headers['link']];

const page = 'https://page.example';
const theirs = { Link: '</own>; rel="self"', Deprecation: '@1', Sunset: 'Thu, 01 Jan 1970 00:00:01 GMT' };

const services = {
  echo(ctx: Context) {
    ctx.body = ctx.path;
  },
  contradicts(ctx: Context) {
    ctx.set(theirs);
    ctx.body = ctx.path;
  },
  broken(): never {
    throw new Error('broken');
  },
  raw(ctx: Context) {
    ctx.respond = false;
    ctx.res.writeHead(200, { 'Content-Type': 'text/plain' }).end('raw');
  },
};

const open = { bypass_auth: true };
const labels = (label: string | Record<string, { header: string }>) => ({ labels: { gateway: [{ one: [label] }] } });
const anyCase = { ...open, case_sensitive: false, cors: { origins: [page] } };
const ownHeaders = { remove_response_headers: ['Link', 'Sunset'], add_response_headers: { 'X-Safe': 'yes' } };

const versions = [
  first,
  versionRecord('endless', '/v3', { ...announcement, sunset: undefined, info: '/help/' }),
  versionRecord('undated', '/v4', { ...announcement, deprecation: undefined, successor: 'https://next.example/' }),
  versionRecord('inner', '/v4/inner', { sunset: '2026-12-31' }),
  versionRecord('plain', '/v5'),
  versionRecord('lower', '/v6'),
  versionRecord('upper', '/V6', { sunset: '2028-01-01' }),
  versionRecord('part', '/V6/Own/part', { sunset: '2029-01-01' }),
  versionRecord('encoded', '/caf%c3%a9/v1'),
];

const once = (key: string) => ({ key, rate_limit: { unit: 'day', requests_per_unit: 1 } }) as const;

describe('a Version', () => {
  const writeFiles = temporaryFiles();
  const servers = testServers(after);
  const openDesk = desksOf(servers);
  const time = { now: deprecation - day };
  const explain = (url: string) => desk.explain({ method: 'GET', url, headers: [], user: 'demo' });
  let desk: Frontdesk;
  let port = 0;
  let config: NonNullable<FrontdeskOptions['config']>;
  let auth: Upstream;
  let remote: Upstream;
  let chat: SwitchingUpstream;

  before(async () => {
    auth = await startUpstream(servers);
    remote = await startUpstream(servers, (res) => void res.writeHead(200, theirs).end('ok'));
    chat = await startSwitchingUpstream(servers);
    const nonsense = await servers.tcp((socket) => socket.once('data', () => socket.end('nonsense\r\n\r\n')));
    const records = [
      ...versions,
      authRecord,
      { ...authRecord, name: 'asked', auth_service: auth.origin, default: false },
      limitRecord,
      mappingRecord('hotel', '/v1/hotels', 'hotel'),
      mappingRecord('limited', '/v1/limited', 'echo', labels({ user: { header: 'X-Travel-User' } })),
      mappingRecord('guarded', '/v1/guarded', 'echo', { auth_service: 'asked', ...labels('remote_address') }),
      mappingRecord('nonsense', '/v1/nonsense', nonsense.origin, open),
      mappingRecord('down', '/v1/down', (await servers.refusing()).origin, open),
      mappingRecord('broken', '/v1/broken', 'broken', open),
      mappingRecord('moved', '/v1/moved', 'example.com', { host_redirect: true }),
      mappingRecord('raw', '/v1/raw', 'raw', open),
      mappingRecord('own', '/v1/own', 'contradicts', { ...open, ...ownHeaders, cors: { origins: [page] } }),
      mappingRecord('remote', '/v1/remote', remote.origin, open),
      mappingRecord('chat', '/v1/chat', chat.origin, { ...open, allow_upgrade: ['websocket'] }),
      mappingRecord('any-case', '/v1/any', 'echo', anyCase),
      mappingRecord('upper', '/V1/other', 'echo', open),
      mappingRecord('ten', '/v10', 'echo', open),
      mappingRecord('remote5', '/v5/remote', remote.origin, open),
      mappingRecord('encoded', '/caf%c3%A9', 'echo', open),
      mappingRecord('any-case6', '/v6/own', 'echo', anyCase),
      mappingRecord('pattern', '(?i)/v1/pattern(/.*)?', 'echo', { ...open, prefix_regex: true }),
      mappingRecord('letters', '/[vV]1/letters', 'echo', { ...open, prefix_regex: true }),
      mappingRecord('capital', '/V1/capital', 'echo', { ...open, prefix_regex: true }),
    ];
    config = {
      records,
      limits: [{ domain: 'gateway', descriptors: [once('user'), once('remote_address')] }],
      users: [demoRecord],
      demo: parse(await readFile('config/demo.yaml', 'utf8')),
    };
    // With strict paths, the paths in another case would get 400.
    const more = { services, trustedProxies: ['127.0.0.1', '::1'], strictPaths: false };
    desk = await openDesk({ clock: () => time.now, config, ...more });
    port = (await desk.listen()).gateway?.port ?? 0;
  });

  type Method = 'get' | 'head' | 'post' | 'delete' | 'options' | 'trace';
  const ask = (path: string, headers: object = {}, method: Method = 'get') =>
    request(`http://127.0.0.1:${port}`)
      [method](path)
      .redirects(0)
      .set({ Host: 'desk.test', ...headers });
  const asDemo = { Authorization: `Basic ${btoa('demo:demo')}` };
  const preflight = { Origin: page, 'Access-Control-Request-Method': 'GET' };

  const requests: readonly (readonly [status: number, what: string, ...request: Parameters<typeof ask>])[] = [
    [200, 'a percent-encoded path', '/%761/messages/1'],
    [308, 'the root without a trailing slash', '/v1'],
    [304, 'an unchanged message', '/v1/messages/1', { 'If-None-Match': '*' }],
    [200, 'a HEAD request', '/v1/messages/1', {}, 'head'],
    [204, 'an OPTIONS request', '/v1/messages/1', {}, 'options'],
    [405, 'a method that the API does not support', '/v1/messages/1', {}, 'delete'],
    [405, 'a method that the gateway rejects', '/v1/messages/1', {}, 'trace'],
    [406, 'a representation that the API does not offer', '/v1/messages/1', { Accept: 'image/png' }],
    [400, 'a query that the API rejects', '/v1/messages/?x=1'],
    [404, 'a path without a route', '/v1/nowhere'],
    [404, 'a missing hotel', '/v1/hotels/nowhere', asDemo],
    [401, 'a request without credentials', '/v1/hotels'],
    [200, 'a request within a limit', '/v1/limited', asDemo],
    [429, 'a request beyond a limit', '/v1/limited', asDemo],
    [502, 'a service that sends an invalid response', '/v1/nonsense'],
    [503, 'a service that is down', '/v1/down'],
    [500, 'a service that fails', '/v1/broken'],
    [301, 'a redirect', '/v1/moved'],
    [200, 'a response that bypasses Koa', '/v1/raw'],
    [200, 'a service and a mapping with contradicting headers', '/v1/own'],
    [200, 'a mapping that ignores case', '/V1/any/x'],
    [200, 'the prefix of the mapping alone', '/V1/ANY'],
    [200, 'the percent-encoded prefix of the mapping', '/%561/Any'],
    [200, 'a regex that ignores case', '/V1/Pattern/x'],
    [200, 'a regex that matches both cases of a letter', '/V1/letters'],
  ];

  /** Checks the body, and that the response has neither a challenge nor a redirect. */
  function checkGone({ headers, text }: Response) {
    if (text) assert.deepEqual(JSON.parse(text), gone);
    assert.deepEqual([headers['www-authenticate'], headers['location']], [undefined, undefined]);
  }
  const gone = { code: 410, message: '410: Gone', info_url: 'http://desk.test/gateway/v0/problems/gone' };

  for (const [status, what, ...sent] of requests) {
    it(`announces its end on the ${status} for ${what}, and responds with 410 from its sunset on`, async () => {
      for (const [now, expected] of [
        [sunset - 1, status] as const,
        [sunset, sent[2] === 'trace' ? status : 410] as const,
      ]) {
        time.now = now;
        const response = await ask(...sent);
        assert.deepEqual([response.status, announcedBy(response)], [expected, firstAnnounced()]);
        if (expected === 410) checkGone(response);
      }
    });
  }

  it('calls no service and counts no limit from its sunset on', async () => {
    time.now = sunset - 1;
    const isCounted = async () => 'ratelimit' in (await ask('/v1/guarded')).headers;
    assert.equal(await isCounted(), true);
    await ask('/v1/remote').expect(200);
    const reached = () => [auth.reached.length, remote.reached.length];
    const before = reached();
    time.now = sunset;
    assert.equal(await isCounted(), false);
    await ask('/v1/remote').expect(410);
    assert.deepEqual(reached(), before);
  });

  it('announces its end on preflights, and sends a 410 with the CORS and response headers of the mapping', async () => {
    time.now = sunset - 1;
    const response = await ask('/V1/any/x', preflight, 'options').expect(204);
    assert.deepEqual(
      [response.headers['access-control-allow-origin'], announcedBy(response)],
      [page, firstAnnounced()],
    );
    time.now = sunset;
    const { headers } = await ask('/v1/own', { Origin: page }).expect(410);
    assert.deepEqual([headers['access-control-allow-origin'], headers['x-safe']], [page, 'yes']);
  });

  it('appends its links to those of a list and of a service over HTTP', async () => {
    time.now = sunset - 1;
    const list = await ask('/v1/messages/?limit=1').expect(200);
    assert.match(list.headers['link'] ?? '', /^<\/v1\/messages\/[^>]*>; rel="self", .*rel="successor-version"/);
    assert.ok(list.headers['link']?.endsWith(`, ${linksOfFirst()}`));
    const remote = await ask('/v1/remote').expect(200, 'ok');
    assert.deepEqual(announcedBy(remote), firstAnnounced(`${theirs.Link}, ${linksOfFirst()}`));
  });

  it('prefixes its links with the path where the desk is mounted, here or by a trusted proxy', async () => {
    time.now = sunset - 1;
    const mounted = request(new Koa().use(mount('/travel', desk.middleware)).callback());
    const response = await mounted.get('/travel/v1/messages/1').expect(200);
    assert.deepEqual(announcedBy(response), firstAnnounced(linksOfFirst('/travel')));
    const proxied = await ask('/v1/nowhere', { 'X-Forwarded-Prefix': '/eu' });
    assert.deepEqual(announcedBy(proxied), firstAnnounced(linksOfFirst('/eu')));
  });

  it('announces its end on a 101, and rejects upgrades from its sunset on', async () => {
    time.now = sunset - 1;
    const peer = speak(port, upgradeRequest('/v1/chat'));
    await peer.until('\r\n\r\n');
    const head = peer.received();
    assert.match(head, /^HTTP\/1\.1 101 /);
    assert.ok(head.includes(`\r\nDeprecation: ${deprecated}\r\n`) && head.includes(`\r\nLink: ${linksOfFirst()}\r\n`));
    peer.socket.destroy();
    time.now = sunset;
    assert.match(await speak(port, upgradeRequest('/v1/chat')).closed, /^HTTP\/1\.1 410 /);
    assert.equal(chat.upgrades.length, 1);
  });

  const nothing: Announcement = [undefined, undefined, undefined];

  async function check(path: string, status: number, expected: Announcement) {
    const response = await ask(path);
    assert.deepEqual([response.status, announcedBy(response)], [status, expected], path);
  }

  it('does not affect paths outside its prefix', async () => {
    time.now = sunset;
    await check('/v2/messages/1', 200, nothing);
    await check('/v10/x', 200, nothing);
    await check('/V1/messages/1', 404, nothing);
    await check('/V1/other', 200, nothing);
    await check('/V1/capital', 200, nothing);
    await check('/nowhere', 404, nothing);
    await check('/v1/%252e%252e/v2', 400, nothing);
    await check('/gateway/v0/check_ready', 200, nothing);
    for (const url of ['/v2/messages/1', '/V1/other']) assert.equal((await explain(url)).version, undefined);
  });

  it('never ends without a sunset', async () => {
    time.now = sunset + 1000 * day;
    const help = '</help/>; rel="deprecation"; type="text/html"';
    await check('/v3/x', 404, [deprecated, undefined, `</v2/>; rel="successor-version", ${help}`]);
  });

  it('ends without a deprecation date, even when no mapping matches', async () => {
    const info = `<${announcement.info}>; rel="sunset"; type="text/html"`;
    const expected = [undefined, endsIn2027, `<https://next.example/>; rel="successor-version", ${info}`] as const;
    time.now = sunset - 1;
    await check('/v4/x', 404, expected);
    time.now = sunset;
    await check('/v4/x', 410, expected);
  });

  it('leaves the headers of the service alone if the record does not set them', async () => {
    time.now = sunset - 1;
    await check('/v5/remote', 200, [theirs.Deprecation, endsIn2027, theirs.Link]);
  });

  it('with a longer prefix takes precedence over the version around it', async () => {
    time.now = Date.UTC(2026, 11, 31);
    await check('/v4/inner/x', 410, [undefined, 'Thu, 31 Dec 2026 00:00:00 GMT', undefined]);
    assert.equal((await ask('/v4/x').expect(404)).headers['sunset'], endsIn2027);
  });

  it('matches percent-encoding in its prefix in any case, as its mapping does', async () => {
    for (const path of ['/caf%c3%a9/v1/x', '/caf%C3%A9/v1/x'])
      await call(desk, path).expect(200, '/v1/x').expect('Sunset', endsIn2027);
  });

  it('in another case loses to a version in the case of the path, and to one with a longer prefix', async () => {
    const versionOf = async (url: string) => (await explain(url)).version?.name;
    const versions = await Promise.all(['/v6/own', '/V6/own', '/v6/OWN/PART/x'].map(versionOf));
    assert.deepEqual(versions, ['lower', 'upper', 'part']);
    await check('/v6/own/PART/x', 200, [undefined, 'Mon, 01 Jan 2029 00:00:00 GMT', undefined]);
  });

  it('is predicted by explain', async () => {
    const headers = [
      { name: 'Deprecation', value: deprecated },
      { name: 'Sunset', value: endsIn2027 },
      { name: 'Link', value: linksOfFirst() },
    ];
    time.now = sunset - 1;
    const before = await explain('/v1/hotels');
    assert.equal(before.outcome.kind, 'forwarded');
    const { name, prefix } = first;
    assert.deepEqual(before.version, { name, prefix, source: '<options>:1', ended: false, headers });
    time.now = sunset;
    for (const url of ['/v1/hotels', '/v1/nowhere', '/V1/any/x']) {
      const { version, outcome, auth } = await explain(url);
      const { kind, status, problem } = outcome as { kind: string; status: number; problem: string };
      const seen = [version?.name, version?.ended, kind, status, problem, auth];
      assert.deepEqual(seen, ['first', true, 'refused', 410, 'gone', undefined]);
    }
    const text = formatExplanation(await explain('/v1/hotels'));
    assert.match(text, /rejected with 410 \(gone\): This version of the API has ended\./);
    assert.match(
      text,
      /^Version\n {2}name +first \(<options>:1\)\n {2}covers +\/v1 and all paths below it\n {2}status +ended: /m,
    );
    assert.match(text, /response +with Sunset: Wed, 30 Jun 2027/);
  });

  it('is announced only once when the same records serve several processes', async () => {
    time.now = sunset - 1;
    const options = { clock: () => time.now, config };
    const hotels = await (await openDesk({ ...options, only: ['hotel'], trustedProxies: ['127.0.0.1'] })).listen();
    const serviceAddresses = { hotel: `127.0.0.1:${hotels.gateway.port}` };
    const gateway = await openDesk({ ...options, services, only: ['gateway', 'auth'], serviceAddresses });
    const { headers } = await callAsDemo(gateway, '/v1/hotels/?limit=1').expect(200);
    const [own, ...more] = (headers['link'] ?? '').split(`, ${linksOfFirst()}`);
    assert.match(own ?? '', /^<\/v1\/hotels\/[^>]*>; rel="self"/);
    assert.deepEqual(more, ['']);
    time.now = sunset;
    await call(gateway, '/v1/hotels/').expect(410);
  });

  it('has no effect in a process without the gateway', async () => {
    const api = await openDesk({ clock: () => sunset, config, only: ['api'] });
    assert.deepEqual(announcedBy(await call(api, '/v1/messages/1').expect(200)), nothing);
  });

  it('applies changes from the next request on, and none of a change that is invalid', async () => {
    const directory = await writeFiles({
      'services/auth.yaml': JSON.stringify(authRecord),
      'users.yaml': await readFile('config/users.yaml', 'utf8'),
      'demo.yaml': await readFile('config/demo.yaml', 'utf8'),
    });
    const log = createLogWatcher();
    const changing = await openDesk({ config: directory, clock: () => sunset, logger: log.logger });
    const write = async (more: object, message: string | RegExp) => {
      await writeFile(join(directory, 'services/v.yaml'), JSON.stringify({ ...first, ...more }));
      await log.waitFor(message);
    };
    const checkSunset = async (status: number, expected?: string) =>
      assert.equal((await call(changing, '/v1/messages/1').expect(status)).headers['sunset'], expected);
    await checkSunset(200);
    await write({ sunset: '2030-01-01' }, 'configuration reloaded');
    await checkSunset(200, 'Tue, 01 Jan 2030 00:00:00 GMT');
    await write({}, 'configuration reloaded');
    await checkSunset(410, endsIn2027);
    await write({ sunset: 'never' }, /records and limits stay as they were/);
    await checkSunset(410, endsIn2027);
    await write({ prefix: '/v2' }, 'configuration reloaded');
    await checkSunset(200);
  });
});
