/** Headers that a client nominates in `Connection`: gone before anything looks at the request, or rejected. */
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import Koa from 'koa';
import type { Mapping } from '#config';
import { createUpgrades, isolate } from '#http';
import { desksOf, mappingRecord } from '../support/desks.ts';
import {
  authRecordOf,
  type EdgeOptions,
  explainOf,
  labelled,
  limitRecordOf,
  mappingOf,
  remote,
  startEdge,
  startRecordingEdge,
} from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { eventually } from '../support/waiting.ts';
import { startHttp } from '../support/wire/http-server.ts';
import { speak, upgradeRequest } from '../support/wire/peer.ts';
import { bodyOf, rawRequest, sendRaw, statusOf } from '../support/wire/raw-client.ts';
import { startSwitchingUpstream } from '../support/wire/switching-upstream.ts';

const tenant = ['X-Tenant: a', 'X_Tenant: b', 'X-Other: kept'];
const nominating = [...tenant, 'Connection: X-Tenant'];

describe('a header that a client nominates in Connection', () => {
  const servers = testServers();
  const openDesk = desksOf(servers);
  const authService = authRecordOf({ allowedRequestHeaders: ['x-tenant', 'x-other'] });

  /** The mapping `by-tenant` matches the header, and `limited` has the values that the limiter has received. */
  async function setUp(options: EdgeOptions = {}, fields: Partial<Mapping> = {}) {
    const wrong = await startUpstream(servers, (res) => void res.writeHead(418).end());
    const limited: string[] = [];
    const labels = { gateway: labelled('x-tenant') };
    const headers = [{ name: 'x-tenant', match: { kind: 'present' } }] as const;
    const recording = await startRecordingEdge(servers, {
      mappings: [mappingOf({ labels, ...fields }), mappingOf({ name: 'by-tenant', service: 'by-tenant', headers })],
      authService,
      rateLimitService: limitRecordOf(),
      limiter: {
        shouldRateLimit({ descriptors }) {
          limited.push(...descriptors.flatMap(({ entries }) => entries.map(({ value }) => value)));
          return { overallCode: 'OK', statuses: [] };
        },
      },
      ...options,
      targets: { 'by-tenant': remote(wrong), ...options.targets },
    });
    return { ...recording, limited };
  }

  const tenantsIn = ({ names }: { readonly names: readonly string[] }) =>
    names.filter((name) => /^x.tenant$/.test(name));

  it('reaches no condition, limit, auth service, service or shadow, in any spelling', async () => {
    const { edge, upstream, shadow, auth, limited } = await setUp();
    assert.equal(statusOf(await sendRaw(edge.port, rawRequest('GET /v1/hotels', nominating))), 200);
    await eventually(() => assert.equal(shadow.reached.length, 1));
    for (const server of [upstream, shadow, auth]) {
      assert.deepEqual(tenantsIn(server.only()), []);
      assert.equal(server.only().headers['x-other'], 'kept');
    }
    assert.deepEqual(limited, []);
  });

  it('reaches them if it is not nominated', async () => {
    const { edge, auth } = await setUp();
    assert.equal(statusOf(await sendRaw(edge.port, rawRequest('GET /v1/hotels', tenant))), 418);
    assert.equal(auth.only().headers['x-tenant'], 'a');
  });

  it('is gone on HTTP/1.0 too, whatever else Connection lists', async () => {
    const { edge, upstream, auth } = await setUp();
    const head = ['GET /v1/hotels HTTP/1.0', 'Host: a.example', 'connection: close, x-tenant', ...tenant, '', ''];
    assert.equal(statusOf(await sendRaw(edge.port, head.join('\r\n'))), 200);
    for (const server of [upstream, auth]) assert.deepEqual(tenantsIn(server.only()), []);
  });

  it('is gone from a request to switch protocols', async () => {
    const switching = await startSwitchingUpstream(servers);
    const { edge } = await setUp({ targets: { hotel: remote(switching) } }, { allowUpgrade: ['websocket'] });
    const upgrades = createUpgrades(() => true);
    const front = await startHttp(servers, { handler: edge.listener, upgrades });
    servers.later(() => upgrades.close(0));
    const client = speak(front.port, upgradeRequest('/v1/hotels', [...tenant, 'Connection: x-tenant']));
    await client.until('101 Switching Protocols');
    client.socket.destroy();
    const [{ headers } = assert.fail('no upgrade')] = switching.upgrades;
    assert.deepEqual([headers['x-tenant'], headers['x_tenant'], headers['x-other']], [undefined, undefined, 'kept']);
  });

  /** Everything that Node offers. */
  const viewsOf = ({ headers, headersDistinct, rawHeaders }: IncomingMessage) =>
    JSON.stringify([headers, headersDistinct, rawHeaders]).toLowerCase();

  it('is gone for a service and an auth service in this process', async () => {
    const seen: string[] = [];
    const edge = await startEdge(servers, {
      authService,
      authPort({ headers }) {
        seen.push(JSON.stringify(headers));
        return { outcome: 'allow', headers: {} };
      },
      services: {
        hotel: isolate((ctx) => {
          seen.push(viewsOf(ctx.req));
          ctx.body = 'ok';
        }),
      },
    });
    assert.equal(statusOf(await sendRaw(edge.port, rawRequest('GET /v1/hotels', nominating))), 200);
    assert.equal(seen.length, 2);
    for (const view of seen) {
      assert.doesNotMatch(view, /x.tenant":|"x.tenant","/);
      assert.match(view, /x-other/);
    }
  });

  it('is gone for the services of a desk in another app', async () => {
    const seen: string[] = [];
    const own = (ctx: Koa.Context) => {
      seen.push(viewsOf(ctx.req));
      ctx.body = 'ok';
    };
    const desk = await openDesk({
      demo: false,
      config: { records: [mappingRecord('own', '/own', 'own')] },
      services: { own },
    });
    const { port } = await servers.http(new Koa().use(desk.middleware).callback());
    assert.equal(statusOf(await sendRaw(port, rawRequest('GET /own', nominating))), 200);
    assert.doesNotMatch(seen.join(), /x.tenant":|"x.tenant","/);
  });

  it('takes no part in what the gateway makes of the request: its id, its language, its trace', async () => {
    const { edge, upstream } = await setUp();
    const ids = ['X-Request-Id: abc', 'Connection: x-request-id'];
    assert.equal(statusOf(await sendRaw(edge.port, rawRequest('GET /v1/hotels', ids))), 200);
    assert.match(String(upstream.only().headers['x-request-id']), /^[\w-]{36}$/);
  });

  for (const [what, headers, body] of [
    ['Content-Length', ['Content-Length: 5', 'Connection: content-length'], 'hello'],
    ['Transfer-Encoding', ['Transfer-Encoding: chunked', 'Connection: transfer-encoding'], '5\r\nhello\r\n0\r\n\r\n'],
    ['Expect and TE', ['Content-Length: 5', 'TE: trailers', 'Connection: TE, expect, connection,, '], 'hello'],
  ] as const)
    it(`frames the body as before if it is ${what}`, async () => {
      const { edge, upstream } = await setUp();
      const response = await sendRaw(edge.port, rawRequest('POST /v1/hotels', headers, body));
      assert.deepEqual([statusOf(response), bodyOf(response).includes('ok')], [200, true]);
      assert.equal(upstream.only().body, 'hello');
    });

  for (const name of [
    'Host',
    'Forwarded',
    'X-Forwarded-For',
    'x-forwarded-proto',
    'X_Forwarded_For',
    'X-Forwarded-Anything',
    'X-Travel-User',
    'x_travel_user',
  ])
    it(`is rejected if it is ${name}, before any service is called`, async () => {
      const { edge, upstream, auth } = await setUp({ addresses: { trustedProxies: ['127.0.0.1'] } });
      const response = await sendRaw(edge.port, rawRequest('GET /v1/hotels', [`Connection: x-a, ${name}`]));
      assert.equal(statusOf(response), 400);
      assert.match(response, /Connection must not list/);
      assert.equal(upstream.reached.length + auth.reached.length, 0);
    });

  it('is rejected by the auth listener if it says who the client is, and otherwise ignored there', async () => {
    const desk = await openDesk();
    const { auth } = await desk.listen();
    const credentials = `Authorization: Basic ${btoa('demo:demo')}`;
    for (const [headers, status] of [
      [[credentials], 200],
      [[credentials, 'Connection: X-Forwarded-For'], 400],
      [[credentials, 'Connection: authorization'], 401],
    ] as const)
      assert.equal(statusOf(await sendRaw(auth.port, rawRequest('GET /', headers))), status, headers.join());
  });

  it('is listed by an explanation among the headers that the service does not get', async () => {
    const { edge } = await setUp();
    const explain = explainOf(edge.gateway);
    const request = { method: 'GET', url: '/v1/hotels' };
    const { target, mapping } = await explain({
      ...request,
      headers: [
        ['X-Tenant', 'a'],
        ['Connection', 'x-tenant'],
      ],
    });
    assert.equal(mapping?.name, 'hotel');
    assert.ok(target?.headers_removed.includes('x-tenant'));
    const { outcome } = await explain({ ...request, headers: [['Connection', 'x-travel-user']] });
    assert.equal(outcome.kind === 'refused' && outcome.status, 400);
  });
});
