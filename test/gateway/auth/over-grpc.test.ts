/** An auth service over gRPC (ext_authz): what it is told about a request, and the effects of its response. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { status } from '@grpc/grpc-js';
import Koa from 'koa';
import mount from 'koa-mount';
import supertest from 'supertest';
import { createAuthenticator, createAuthService, createUsers, hashPassword, type Verdicts } from '#auth';
import type { AuthService } from '#config';
import { createAddresses, createRequestContext } from '#http';
import { authRecordOf, type EdgeOptions, mappingOf, remote, startEdge } from '../../support/edge.ts';
import { type Served, testServers } from '../../support/serve.ts';
import { startUpstream } from '../../support/upstream.ts';
import { createDeferred } from '../../support/waiting.ts';
import { type Described, type ForeignAnswer, type HeaderOption, startExtAuthz } from '../../support/wire/ext-authz.ts';
import { startHttp } from '../../support/wire/http-server.ts';
import { rawRequest, sendRaw } from '../../support/wire/raw-client.ts';

const option = (key: string, value: string, more: object = {}): HeaderOption => ({ header: { key, value }, ...more });
const user = option('x-travel-user', 'demo');
const allow: ForeignAnswer = { status: {}, okResponse: { headers: [user] } };
const failed = (code: number, details = 'why') => Object.assign(new Error(details), { code, details });

describe('an auth service over gRPC', () => {
  const servers = testServers();

  async function behind(service: Served, record: Partial<AuthService> = {}, more: EdgeOptions = {}) {
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, {
      authService: authRecordOf({ proto: 'grpc', ...record }),
      targets: { auth: remote(service), hotel: remote(upstream) },
      ...more,
    });
    return { upstream, edge, client: supertest(edge.origin) };
  }

  async function setUp(
    answer: ForeignAnswer | ((described: Described) => ForeignAnswer | Promise<ForeignAnswer>) = allow,
    record: Partial<AuthService> = {},
    more: EdgeOptions = {},
  ) {
    const auth = await startExtAuthz(servers, typeof answer === 'function' ? answer : () => answer);
    return { auth, ...(await behind(auth, record, more)) };
  }

  describe('is told', () => {
    it('the whole request as Envoy describes it, without spoofed headers', async () => {
      const { auth, edge } = await setUp();
      const sent = [
        'Authorization: Basic ZGVtbzpkZW1v',
        'Cookie: a=1',
        'X-Other: 1',
        'X-Other: 2',
        'X-Name: Z\u00c3\u00bcrich',
      ];
      const spoofed = ['X-Travel-User: admin', 'X_Travel_User: admin', 'X-Forwarded-For: 9.9.9.9'];
      const ofHop = ['TE: trailers', 'X-Envoy-Auth-Partial-Body: true', 'Content-Length: 5'];
      await sendRaw(
        edge.port,
        rawRequest('DELETE /v1/hotels/bookings/1?a=%20&b', [...sent, ...spoofed, ...ofHop], 'hello'),
      );
      const [{ source, destination, request, contextExtensions = {}, tlsSession } = assert.fail()] = auth.asked;
      const {
        headers: { traceparent = '', 'x-request-id': requestId = '', ...headers } = {},
        id,
        ...http
      } = request.http;
      assert.equal(source?.address.socketAddress.address, '127.0.0.1');
      assert.ok(Number(source?.address.socketAddress.portValue) > 0);
      assert.deepEqual(destination?.address, { socketAddress: { address: '127.0.0.1', portValue: edge.port } });
      assert.deepEqual([contextExtensions, tlsSession], [{}, undefined]);
      assert.match(traceparent, /^00-/);
      assert.ok(id !== undefined && id === requestId);
      assert.deepEqual(http, {
        method: 'DELETE',
        path: '/v1/hotels/bookings/1?a=%20&b',
        query: 'a=%20&b',
        host: 'front.example',
        scheme: 'http',
        size: 5,
        protocol: 'HTTP/1.1',
      });
      assert.deepEqual(headers, {
        ':authority': 'front.example',
        ':method': 'DELETE',
        ':path': '/v1/hotels/bookings/1?a=%20&b',
        ':scheme': 'http',
        authorization: 'Basic ZGVtbzpkZW1v',
        cookie: 'a=1',
        'x-name': 'Zürich',
        'x-other': '1, 2',
        'x-forwarded-for': '127.0.0.1',
        'x-forwarded-host': 'front.example',
        'x-forwarded-proto': 'http',
        'x-forwarded-root': '/',
        via: '1.1 frontdesk',
      });
    });

    it('the client that a trusted proxy reports', async () => {
      const { auth, client } = await setUp(allow, {}, { addresses: { trustedProxies: ['127.0.0.1'] } });
      await client.get('/v1/hotels').set('X-Forwarded-For', '203.0.113.7').expect(200);
      assert.deepEqual(auth.asked[0]?.source?.address.socketAddress, { address: '203.0.113.7' });
    });

    it('the auth_context_extensions of the mapping, and the add_auth_headers of its own record', async () => {
      const mappings = [
        mappingOf({ authContextExtensions: [['tier', 'gold']] }),
        mappingOf({ name: 'plain', prefix: '/plain' }),
      ];
      const addAuthHeaders = [{ name: 'X-Asked-By', value: 'gateway' }];
      const { auth, client } = await setUp(allow, { addAuthHeaders }, { mappings });
      await client.get('/v1/hotels').set('X-Asked-By', 'client').expect(200);
      await client.get('/plain').expect(200);
      assert.deepEqual(
        auth.asked.map(({ contextExtensions = {} }) => contextExtensions),
        [{ tier: 'gold' }, {}],
      );
      assert.equal(auth.asked[0]?.request.http.headers?.['x-asked-by'], 'gateway');
    });

    it('the body, or its beginning, with include_body', async () => {
      const includeBody = { maxBytes: 5, allowPartial: true };
      const { auth, upstream, client } = await setUp(allow, { includeBody });
      for (const body of ['hello', 'hello world', Buffer.of(0xff, 0)]) await client.post('/v1/hotels').send(body);
      await client.get('/v1/hotels');
      const seen = auth.asked.map(({ request: { http } }) => [
        http.body ?? http.rawBody,
        http.size,
        http.headers?.['x-envoy-auth-partial-body'],
      ]);
      assert.deepEqual(seen, [
        ['hello', 5, 'false'],
        ['hello', 11, 'true'],
        [Buffer.of(0xff, 0), 2, 'false'],
        [undefined, undefined, 'false'],
      ]);
      assert.deepEqual(
        upstream.reached.map(({ body }) => body),
        ['hello', 'hello world', '\u00ff\0', ''],
      );
      const strict = await setUp(allow, { includeBody: { maxBytes: 5, allowPartial: false } });
      await strict.client.post('/v1/hotels').send('hello world').expect(413);
      assert.equal(strict.auth.asked.length, 0);
    });

    it('in the call how long it may take, and that the gateway writes error bodies itself', async () => {
      const { auth, client } = await setUp(allow, { timeoutMs: 1234 });
      await client.get('/v1/hotels').expect(200);
      const metadata = auth.metadata[0]?.getMap() ?? {};
      assert.equal(metadata['prefer'], 'return=minimal');
      assert.match(String(metadata['x-request-id']), /^[\w-]{36}$/);
    });
  });

  describe('that allows a request', () => {
    it('sets headers, in place of those of the client unless it appends, and removes others', async () => {
      const { upstream, client } = await setUp({
        okResponse: {
          headers: [
            user,
            option('X-Set', 'ours'),
            option('x-added', 'ours', { append: { value: true } }),
            option('x-new', 'ours', { append: { value: true } }),
            option('x-absent', 'ours', { appendAction: 1 }),
            option('x-present', 'ours', { appendAction: 1 }),
            option('x-if-present', 'ours', { appendAction: 3 }),
            option('x-if-absent', 'ours', { appendAction: 3 }),
            option('x-name', 'Zürich'),
          ],
          headersToRemove: ['X-Secret', 'authorization', 'host', ':path'],
        },
      });
      const sent = { 'X-Set': 'theirs', 'X-Added': 'theirs', 'X-Present': 'theirs', 'X-If-Present': 'theirs' };
      await client
        .get('/v1/hotels')
        .set({ ...sent, 'X-Secret': '1', Authorization: 'Basic eA==' })
        .expect(200);
      const { headers, names } = upstream.only();
      const seen = Object.fromEntries(Object.entries(headers).filter(([name]) => /^x-(?!forw|req)|^auth/.test(name)));
      assert.deepEqual(seen, {
        'x-travel-user': 'demo',
        'x-set': 'ours',
        'x-added': 'theirs, ours',
        'x-new': 'ours',
        'x-absent': 'ours',
        'x-present': 'theirs',
        'x-if-present': 'ours',
        'x-name': 'Z\u00c3\u00bcrich',
      });
      assert.equal(names.length, new Set(names).size);
    });

    it('cannot frame the request, or set identity headers of others, even in another spelling', async () => {
      const forged = ['content-length', 'transfer-encoding', 'connection', 'host', 'x-forwarded-for', ':path'];
      const headers = [
        user,
        ...forged.map((name) => option(name, '7')),
        option('x-api-key-name', 'ci'),
        option('X_Travel_User', 'admin'),
      ];
      const { upstream, client } = await setUp(
        { okResponse: { headers } },
        {},
        { identityHeaders: ['x-api-key-name'] },
      );
      await client.post('/v1/hotels').send('hello').expect(200);
      const { headers: seen, body, url } = upstream.only();
      assert.deepEqual([body, url, seen['content-length'], seen['x-forwarded-for']], ['hello', '/', '5', '127.0.0.1']);
      assert.deepEqual(
        [seen['x-api-key-name'], seen['x_travel_user'], seen['x-travel-user']],
        [undefined, undefined, 'demo'],
      );
    });

    it('names no user if it does not set the header, whatever the client sends', async () => {
      const { upstream, client } = await setUp({ status: {} });
      await client.get('/v1/hotels').set('X-Travel-User', 'admin').expect(200);
      assert.equal(upstream.only().headers['x-travel-user'], undefined);
    });

    it('adds headers and cookies to the response', async () => {
      const app = await startUpstream(servers, (res) =>
        res.writeHead(200, { 'Set-Cookie': 'app=1', 'X-Session': 'app' }).end(),
      );
      const auth = await startExtAuthz(servers, () => ({
        okResponse: {
          responseHeadersToAdd: [
            option('Set-Cookie', 'a=1'),
            option('set-cookie', 'b=2'),
            option('x-session', 'renewed'),
            option('content-type', 'text/evil'),
            option('connection', 'close'),
          ],
        },
      }));
      const { edge } = await behind(auth, {}, { targets: { auth: remote(auth), hotel: remote(app) } });
      const { headers } = await fetch(`${edge.origin}/v1/hotels`);
      assert.deepEqual(headers.getSetCookie(), ['a=1', 'b=2', 'app=1']);
      assert.deepEqual([headers.get('x-session'), headers.get('content-type')], ['renewed', null]);
    });
  });

  describe('that denies a request', () => {
    const denial = (code: number, deniedResponse: ForeignAnswer['deniedResponse'] = {}): ForeignAnswer => ({
      status: { code: 7 },
      deniedResponse: { ...deniedResponse, status: { code } },
    });

    it('has its status, headers and body sent to the client, without those of a connection', async () => {
      const headers = [
        option('WWW-Authenticate', 'Bearer'),
        option('www-authenticate', 'Basic', { append: { value: true } }),
        option('content-type', 'text/html'),
        option('content-length', '99'),
        option('set-cookie', 'a=1'),
        option('set-cookie', 'b=2'),
      ];
      const { upstream, client, edge } = await setUp(denial(401, { headers, body: '<p>no</p>' }));
      const response = await client.get('/v1/hotels').expect(401, '<p>no</p>').expect('Content-Type', 'text/html');
      assert.equal(response.headers['www-authenticate'], 'Bearer, Basic');
      assert.deepEqual(response.headers['set-cookie'], ['a=1', 'b=2']);
      assert.equal(response.headers['content-length'], '9');
      assert.equal(response.headers['cache-control'], 'no-store');
      assert.equal(upstream.reached.length, 0);
      assert.deepEqual(edge.gateway.snapshot().auth, { allowed: 0, denied: 1, error: 0 });
    });

    it('has a redirect sent to the client', async () => {
      const { client } = await setUp(denial(302, { headers: [option('location', '/login')] }));
      await client.get('/v1/hotels').redirects(0).expect(302).expect('Location', '/login');
    });

    it('has our error body sent if it has none, with 403 by default, even with failure_mode_allow', async () => {
      for (const [answer, code, message] of [
        [denial(401), 401, 'Unauthorized'],
        [{ status: { code: 16 } }, 403, 'Forbidden'],
        [denial(503), 503, 'Service Unavailable'],
      ] as const) {
        const { client, upstream } = await setUp(answer, { failureModeAllow: true });
        await client.get('/v1/hotels').expect(code, { code, message: `${code}: ${message}` });
        assert.equal(upstream.reached.length, 0);
      }
    });
  });

  describe('with a cache', () => {
    it('is called once for equal requests, and again for any other header', async () => {
      const { auth, upstream, client } = await setUp(
        { okResponse: { headers: [user, option('x-set', '1')] } },
        { cacheMs: 60_000 },
      );
      const get = (more: Readonly<Record<string, string>> = {}) => client.get('/v1/hotels').set(more).expect(200);
      for (const [index, headers] of [{}, { 'X-Any': '1' }, { Authorization: 'Basic eA==' }].entries()) {
        for (let time = 0; time < 2; time += 1) await get(headers);
        assert.equal(auth.asked.length, index + 1);
      }
      assert.deepEqual(
        new Set(upstream.reached.map(({ headers }) => `${headers['x-travel-user']} ${headers['x-set']}`)),
        new Set(['demo 1']),
      );
    });

    it('is called each time when it sets a cookie, denies the request or fails', async () => {
      for (const answer of [
        { okResponse: { responseHeadersToAdd: [option('set-cookie', 'a=1')] } },
        { status: { code: 7 } },
        { errorResponse: {} },
      ]) {
        const { auth, client } = await setUp(answer, { cacheMs: 60_000 });
        for (let time = 0; time < 2; time += 1) await client.get('/v1/hotels');
        assert.equal(auth.asked.length, 2);
      }
    });
  });

  describe('without a decision', () => {
    const failing: Readonly<Record<string, () => Promise<Served>>> = {
      'a refused connection': servers.refusing,
      'no response in time': () => servers.tcp(() => {}),
      'a response that is not HTTP/2': () =>
        servers.tcp((socket) => void socket.once('data', () => socket.end('hello\r\n'))),
      'a call that does not end': () => startExtAuthz(servers, () => new Promise(() => {})),
      'the status INTERNAL': () => startExtAuthz(servers, () => Promise.reject(failed(status.INTERNAL))),
      'the status UNAVAILABLE': () => startExtAuthz(servers, () => Promise.reject(failed(status.UNAVAILABLE))),
      'an error_response': () => startExtAuthz(servers, () => ({ status: { code: 13 }, errorResponse: {} })),
      'an HTTP error': () =>
        startHttp(servers, {
          http2: true,
          handler: (_req, res) => res.writeHead(500).end('at Object.<anonymous>'),
        }).then(({ port }) => ({ port, origin: `http://127.0.0.1:${port}` })),
    };
    for (const [how, start] of Object.entries(failing))
      it(`causes 503 after ${how}, or lets the request pass without an identity with failure_mode_allow`, async () => {
        const service = await start();
        const closed = await behind(service, { timeoutMs: 200 });
        const { body, headers } = await closed.client.get('/v1/hotels').expect(503);
        assert.deepEqual(body, { code: 503, message: '503: Service Unavailable' });
        assert.equal(headers['retry-after'], '1');
        assert.equal(closed.upstream.reached.length, 0);
        assert.deepEqual(closed.edge.gateway.snapshot().auth, { allowed: 0, denied: 0, error: 1 });
        const open = await behind(service, { timeoutMs: 200, failureModeAllow: true });
        await open.client.get('/v1/hotels').set('X-Travel-User', 'admin').expect(200);
        assert.equal(open.upstream.only().headers['x-travel-user'], undefined);
      });

    const provoked: Readonly<Record<string, ForeignAnswer | (() => ForeignAnswer)>> = {
      'a response that says nothing': {},
      'a denial with the status OK': { status: {}, deniedResponse: {} },
      'a change of the query': { okResponse: { queryParametersToSet: [{ key: 'a', value: 'b' }] } },
      'a header with a line break': { okResponse: { headers: [option('x-a', 'a\r\nx-travel-user: admin')] } },
      'a header with an invalid name': { okResponse: { headers: [option('x a', 'b')] } },
      'a header for the client with a line break': { okResponse: { responseHeadersToAdd: [option('x-a', 'a\nb')] } },
      'a denial with an unknown status': { status: { code: 7 }, deniedResponse: { status: { code: 99 } } },
      'a denial whose header has a line break': {
        status: { code: 7 },
        deniedResponse: { headers: [option('location', 'a\nb')] },
      },
      'a response that is too long': { status: { code: 7 }, deniedResponse: { body: 'x'.repeat(70_000) } },
      'the status RESOURCE_EXHAUSTED': () => {
        throw failed(status.RESOURCE_EXHAUSTED);
      },
    };
    for (const [how, answer] of Object.entries(provoked))
      it(`causes 503 after ${how}, even with failure_mode_allow, because a client may have caused it`, async () => {
        const { upstream, client } = await setUp(typeof answer === 'function' ? answer : () => answer, {
          failureModeAllow: true,
        });
        await client.get('/v1/hotels').expect(503);
        assert.equal(upstream.reached.length, 0);
      });

    it('causes the status in status_on_error, and is logged with the status of gRPC but without credentials', async () => {
      const { edge, client } = await setUp(() => Promise.reject(failed(status.INTERNAL, 'no key für 5 %')), {
        statusOnError: 403,
      });
      await client.get('/v1/hotels').auth('demo', 'sesame').expect(403, { code: 403, message: '403: Forbidden' });
      const [line] = edge.log;
      assert.equal(line?.fields['reason'], 'it responded with INTERNAL: no key für 5 %');
      assert.doesNotMatch(JSON.stringify(edge.log), /sesame|c2VzYW1l/);
    });
  });

  it('is called at its next address when one is down', async () => {
    const [down, auth] = [await servers.refusing(), await startExtAuthz(servers, () => allow)];
    const origins = () => [down.origin, auth.origin];
    const upstream = await startUpstream(servers);
    const { client } = await behind(
      auth,
      {},
      {
        targets: { auth: { kind: 'remote', origins, path: '' }, hotel: remote(upstream) },
      },
    );
    for (let time = 0; time < 4; time += 1) await client.get('/v1/hotels').expect(200);
    assert.equal(auth.asked.length, 4);
  });

  it('is asked over one connection, for concurrent requests too', async () => {
    let connections = 0;
    const auth = await startExtAuthz(servers, () => allow);
    const relay = await servers.tcp((socket) => {
      connections += 1;
      const other = connect(auth.port, '127.0.0.1').on('error', () => socket.destroy());
      socket.pipe(other).pipe(socket);
      socket.once('close', () => other.destroy());
    });
    const { client } = await behind(relay);
    await client.get('/v1/hotels').expect(200);
    await Promise.all(Array.from({ length: 20 }, () => client.get('/v1/hotels').expect(200)));
    assert.deepEqual([auth.asked.length, connections], [21, 1]);
  });

  it('is abandoned when the client disconnects, without calling the service, even with failure_mode_allow', async () => {
    const asked = createDeferred();
    const finished = createDeferred();
    const auth = await startExtAuthz(servers, () => {
      asked.resolve();
      return new Promise(() => {});
    });
    const { edge, upstream } = await behind(
      auth,
      { failureModeAllow: true },
      { host: [(_ctx, next) => next().finally(finished.resolve)] },
    );
    const leaving = connect(edge.port, '127.0.0.1');
    leaving.write(rawRequest('GET /v1/hotels'));
    await asked.promise;
    leaving.destroy();
    await Promise.all([once(leaving, 'close'), finished.promise]);
    assert.equal(upstream.reached.length, 0);
    assert.deepEqual(edge.log, []);
  });

  describe("that is frontdesk's own", () => {
    async function withOwn(verdicts?: Verdicts) {
      const passwordHash = await hashPassword('sesame', undefined, { ln: 1, r: 1, p: 1 });
      const users = createUsers([{ name: 'Jane Doe', passwordHash }]);
      const service = createAuthService({ authenticator: verdicts ?? createAuthenticator({ users }) });
      const app = new Koa();
      app.use(createRequestContext(createAddresses()));
      app.use(mount(service.app));
      const { port } = await startHttp(servers, { handler: app.callback(), http2: true });
      return behind({ port, origin: `http://127.0.0.1:${port}` });
    }

    it('names the user, and challenges other clients with the error body of the gateway', async () => {
      const { upstream, client } = await withOwn();
      await client.get('/v1/hotels').auth('Jane Doe', 'sesame').set('X_Travel_User', 'admin').expect(200);
      const { headers } = upstream.only();
      assert.deepEqual([headers['x-travel-user'], headers['x_travel_user']], ['Jane Doe', undefined]);
      const denied = await client.get('/v1/hotels').auth('Jane Doe', 'guess').expect(401);
      assert.equal(denied.headers['www-authenticate'], 'Basic realm="api", charset="UTF-8"');
      assert.deepEqual(denied.body, { code: 401, message: '401: Unauthorized' });
      assert.match(denied.headers['x-request-id'] ?? '', /^[\w-]{36}$/);
    });

    it('has 429 sent for throttled logins, 503 while it is busy, and 503 when it fails', async () => {
      const sender = { network: '192.0.2.1', isShared: false };
      const throttled = await withOwn({ verdictOf: () => ({ kind: 'throttled', retryAfterS: 7, sender }) });
      await throttled.client.get('/v1/hotels').expect(429).expect('Retry-After', '7');
      const busy = await withOwn({ verdictOf: () => ({ kind: 'busy' }) });
      await busy.client.get('/v1/hotels').expect(503).expect('Retry-After', '1');
      assert.deepEqual(busy.edge.gateway.snapshot().auth, { allowed: 0, denied: 1, error: 0 });
      const failing = await withOwn({ verdictOf: () => Promise.reject(new Error('out of memory')) });
      await failing.client.get('/v1/hotels').expect(503);
      assert.deepEqual(failing.edge.gateway.snapshot().auth, { allowed: 0, denied: 0, error: 1 });
    });
  });
});
