/** An auth service over HTTP: the request that it receives, and the effects of its response. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import supertest from 'supertest';
import type { AuthService } from '#config';
import { isolate } from '#http';
import { authRecordOf, type EdgeOptions, mappingOf, remote, startEdge } from '../../support/edge.ts';
import { type Served, testServers } from '../../support/serve.ts';
import { startUpstream } from '../../support/upstream.ts';
import { createDeferred } from '../../support/waiting.ts';
import { rawRequest, sendRaw } from '../../support/wire/raw-client.ts';

type Respond = (res: ServerResponse) => void;

const allow: Respond = (res) => res.writeHead(200, { 'X-Travel-User': 'demo' }).end();

describe('an auth service over HTTP', () => {
  const servers = testServers();

  async function behind(service: Served, record: Partial<AuthService> = {}, more: EdgeOptions = {}) {
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, {
      authService: authRecordOf(record),
      targets: { auth: remote(service), hotel: remote(upstream) },
      ...more,
    });
    return { upstream, edge, client: supertest(edge.origin) };
  }

  async function setUp(respond: Respond = allow, record: Partial<AuthService> = {}, more: EdgeOptions = {}) {
    const auth = await startUpstream(servers, respond);
    return { auth, ...(await behind(auth, record, more)) };
  }

  it('receives the method, the original path and query, the credentials, and no spoofed headers', async () => {
    const { auth, edge } = await setUp();
    const credentials = ['Authorization: Basic ZGVtbzpkZW1v', 'Cookie: a=1'];
    const spoofed = ['X-Travel-User: admin', 'X_Travel_User: admin', 'X-Forwarded-Uri: /open', 'X-Other: 1'];
    const ofBody = ['Content-Length: 5', 'Expect: 100-continue'];
    await sendRaw(
      edge.port,
      rawRequest('DELETE /v1/hotels/bookings/1?a=%20&b', [...credentials, ...spoofed, ...ofBody], 'hello'),
    );
    const { method, url, headers, names, body } = auth.only();
    assert.deepEqual([method, url, body], ['DELETE', '/v1/hotels/bookings/1?a=%20&b', '']);
    const { connection, traceparent, 'x-request-id': id, ...others } = headers;
    assert.deepEqual(others, {
      authorization: 'Basic ZGVtbzpkZW1v',
      cookie: 'a=1',
      host: 'front.example',
      prefer: 'return=minimal',
      via: '1.1 frontdesk',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-host': 'front.example',
      'x-forwarded-method': 'DELETE',
      'x-forwarded-proto': 'http',
      'x-forwarded-root': '/',
      'x-forwarded-uri': '/v1/hotels/bookings/1?a=%20&b',
    });
    assert.match(String(id), /^[\w-]{36}$/);
    assert.ok(connection !== undefined && traceparent !== undefined && names.length === new Set(names).size);
  });

  it('receives the normalised path, however the client writes it', async () => {
    const { auth, edge } = await setUp();
    for (const target of ['http://evil.example/v1/hotels/x?y', '/v1/%68otels/x?y'])
      assert.match(await sendRaw(edge.port, rawRequest(`GET ${target}`)), /^HTTP\/1\.1 200 /, target);
    assert.deepEqual(new Set(auth.reached.map(({ url }) => url)), new Set(['/v1/hotels/x?y']));
  });

  it('is called below its base path and path_prefix, verbatim', async () => {
    const auth = await startUpstream(servers, allow);
    const upstream = await startUpstream(servers);
    for (const [pathPrefix, path, expected] of [
      ['', '/verify', '/verify/v1/hotels?a'],
      ['/extauth', '', '/extauth/v1/hotels?a'],
      ['/extauth/', '/base', '/base/extauth//v1/hotels?a'],
    ] as const) {
      const edge = await startEdge(servers, {
        authService: authRecordOf({ pathPrefix }),
        targets: { auth: remote(auth, path), hotel: remote(upstream) },
      });
      await supertest(edge.origin).get('/v1/hotels?a').expect(200);
      assert.equal(auth.reached.at(-1)?.url, expected);
    }
    assert.deepEqual(new Set(upstream.reached.map(({ url }) => url)), new Set(['/?a']));
  });

  it('receives the headers that the record lists, except for those of the connection and of the gateway', async () => {
    const allowedRequestHeaders = [
      'x-tenant',
      'connection',
      'content-length',
      'x-forwarded-for',
      'x-request-id',
      'te',
      'via',
    ];
    const { auth, edge } = await setUp(allow, { allowedRequestHeaders });
    const others = [
      'X-Forwarded-For: 10.0.0.1',
      'X-Request-Id: mine',
      'TE: trailers',
      'Content-Length: 5',
      'Via: 2 cdn',
    ];
    await sendRaw(edge.port, rawRequest('POST /v1/hotels', ['X-Tenant: 7', ...others], 'hello'));
    const { headers, body } = auth.only();
    assert.equal(headers['x-tenant'], '7');
    assert.deepEqual(
      [headers['x-forwarded-for'], headers['x-request-id'], headers['te'], headers['via']],
      ['127.0.0.1', 'mine', undefined, '2 cdn, 1.1 frontdesk'],
    );
    assert.deepEqual([headers['content-length'], body], ['0', '']);
  });

  it("receives add_auth_headers in place of the client's headers, which the service still receives", async () => {
    const { auth, upstream, client } = await setUp(allow, {
      allowedRequestHeaders: ['x-tenant'],
      addAuthHeaders: [
        { name: 'X-Tenant', value: 'ours' },
        { name: 'authorization', value: 'Bearer of-the-gateway' },
        { name: 'x-forwarded-proto', value: 'https' },
        { name: 'host', value: 'login.example' },
      ],
    });
    await client.get('/v1/hotels').set({ 'X-Tenant': 'theirs', Authorization: 'Basic eA==' }).expect(200);
    const { headers, names } = auth.only();
    const seen = [headers['x-tenant'], headers.authorization, headers['x-forwarded-proto'], headers.host];
    assert.deepEqual(seen, ['ours', 'Bearer of-the-gateway', 'https', 'login.example']);
    assert.equal(names.length, new Set(names).size);
    const sent = upstream.only().headers;
    assert.deepEqual([sent['x-tenant'], sent.authorization], ['theirs', 'Basic eA==']);
  });

  for (const [status, allowStatus, expected] of [
    [204, '2xx', 200],
    [202, '2xx', 200],
    [299, '2xx', 200],
    [204, 200, 204],
    [200, 200, 200],
    [302, '2xx', 302],
  ] as const)
    it(`${expected === 200 ? 'allows' : 'denies'} with ${status} if allow_status is ${allowStatus}`, async () => {
      const { upstream, edge } = await setUp(
        (res) => res.writeHead(status, { 'X-Travel-User': 'demo', Location: '/login' }).end(),
        { allowStatus },
      );
      const response = await fetch(`${edge.origin}/v1/hotels`, { redirect: 'manual' });
      assert.equal(response.status, expected);
      const users = upstream.reached.map(({ headers }) => headers['x-travel-user']);
      assert.deepEqual(users, expected === 200 ? ['demo'] : []);
    });

  describe('with allowed_client_headers_on_success', () => {
    const listed = { allowedClientHeadersOnSuccess: ['set-cookie', 'x-session', 'x-absent'] };
    const renew: Respond = (res) =>
      res
        .writeHead(200, [
          'X-Travel-User',
          'demo',
          'X-Session',
          'renewed',
          'X-Secret',
          'auth',
          'Set-Cookie',
          'session=1; Path=/',
          'Set-Cookie',
          'other=2',
        ])
        .end();
    const ofService = { 'Set-Cookie': 'app=1', 'X-Session': 'of the service', 'X-App': 'a' };

    async function seenBy(origin: string) {
      const { status, headers } = await fetch(`${origin}/v1/hotels`);
      return [
        status,
        headers.getSetCookie(),
        headers.get('x-session'),
        headers.get('x-secret'),
        headers.get('x-travel-user'),
      ];
    }
    const cookies = ['session=1; Path=/', 'other=2'];
    const renewed = ['renewed', null, null];

    it('sends them to the client beside the cookies of the service', async () => {
      const app = await startUpstream(servers, (res) => res.writeHead(200, ofService).end());
      const auth = await startUpstream(servers, renew);
      const targets = { auth: remote(auth), hotel: remote(app) };
      const { edge } = await behind(auth, listed, { targets });
      assert.deepEqual(await seenBy(edge.origin), [200, [...cookies, 'app=1'], ...renewed]);
    });

    it('sends them with the response of a service in this process, and with an error', async () => {
      const auth = await startUpstream(servers, renew);
      const hotel = isolate((ctx) => {
        ctx.append('Set-Cookie', 'app=1');
        ctx.body = 'ok';
      });
      const { edge } = await behind(auth, listed, { targets: { auth: remote(auth) }, services: { hotel } });
      assert.deepEqual(await seenBy(edge.origin), [200, [...cookies, 'app=1'], ...renewed]);
      const down = { auth: remote(auth), hotel: remote(await servers.refusing()) };
      const broken = await behind(auth, listed, { targets: down });
      assert.deepEqual(await seenBy(broken.edge.origin), [503, cookies, ...renewed]);
    });

    it('sends those of an auth service of the program, and none that are not listed', async () => {
      const upstream = await startUpstream(servers);
      const clientHeaders = { 'set-cookie': cookies, 'x-session': 'renewed', 'x-secret': 'auth' };
      const edge = await startEdge(servers, {
        upstream,
        authService: authRecordOf(listed),
        authPort: () => ({ outcome: 'allow', headers: {}, clientHeaders }),
      });
      assert.deepEqual(await seenBy(edge.origin), [200, cookies, ...renewed]);
      const silent = await startEdge(servers, {
        upstream,
        authService: authRecordOf(),
        authPort: () => ({ outcome: 'allow', headers: {}, clientHeaders }),
      });
      assert.deepEqual(await seenBy(silent.origin), [200, [], null, null, null]);
    });

    it('rejects a request whose auth service of the program returns a malformed one', async () => {
      const edge = await startEdge(servers, {
        upstream: await startUpstream(servers),
        authService: authRecordOf(listed),
        authPort: () => ({ outcome: 'allow', headers: {}, clientHeaders: { 'set-cookie': 'a\r\nb' } }),
      });
      assert.equal((await fetch(`${edge.origin}/v1/hotels`)).status, 503);
    });

    it('sends their bytes unchanged', async () => {
      const auth = await startUpstream(servers, (res) =>
        res.writeHead(200, { 'Set-Cookie': 'city=Z\u00c3\u00bcrich', 'X-Session': '\u00ff' }).end(),
      );
      const { edge } = await behind(auth, listed);
      const response = await sendRaw(edge.port, rawRequest('GET /v1/hotels'));
      assert.match(response, /set-cookie: city=Z\u00c3\u00bcrich\r\n/i);
      assert.match(response, /x-session: \u00ff\r\n/i);
    });

    it('sends none of a refusal or without the field', async () => {
      const { edge } = await setUp((res) => res.writeHead(403, { 'X-Session': 'renewed' }).end(), listed);
      assert.deepEqual(await seenBy(edge.origin), [403, [], null, null, null]);
      const unlisted = await setUp(renew);
      assert.deepEqual(await seenBy(unlisted.edge.origin), [200, [], null, null, null]);
    });
  });

  for (const [what, start] of [
    ['is down', servers.refusing],
    ['closes the connection', () => servers.tcp((socket) => void socket.once('data', () => socket.end()))],
    [
      'responds with something else',
      () => servers.tcp((socket) => void socket.once('data', () => socket.end('no\r\n'))),
    ],
  ] as const)
    it(`is called at another address when one ${what}`, async () => {
      const auth = await startUpstream(servers, allow);
      const down = await start();
      const upstream = await startUpstream(servers);
      const edge = await startEdge(servers, {
        authService: authRecordOf(),
        targets: {
          auth: { kind: 'remote', origins: () => [down.origin, auth.origin], path: '' },
          hotel: remote(upstream),
        },
      });
      const client = supertest(edge.origin);
      for (let time = 0; time < 4; time += 1) await client.get('/v1/hotels').expect(200);
      assert.deepEqual([auth.reached.length, upstream.reached.length], [4, 4]);
      assert.deepEqual(edge.gateway.snapshot().auth, { allowed: 4, denied: 0, error: 0 });
    });

  /** Responds to the first `servedMax` requests on each connection, and resets the connection at the next one. */
  function startResetting(servedMax: number, seen: { requests: number }) {
    return servers.tcp((socket) => {
      let received = 0;
      socket.on('data', () => {
        seen.requests += 1;
        received += 1;
        if (received > servedMax) socket.destroy();
        else socket.write('HTTP/1.1 200 OK\r\nX-Travel-User: demo\r\nContent-Length: 0\r\n\r\n');
      });
    });
  }

  async function behindResetting(servedMax: number) {
    const seen = { requests: 0 };
    return { seen, ...(await behind(await startResetting(servedMax, seen))) };
  }

  it('is asked only a few times for a request if it is the gateway itself, even with failure_mode_allow', async () => {
    const upstream = await startUpstream(servers);
    const origins: string[] = [];
    let asked = 0;
    const edge = await startEdge(servers, {
      authService: authRecordOf({ failureModeAllow: true }),
      targets: { hotel: remote(upstream), auth: { kind: 'remote', origins: () => origins, path: '' } },
      host: [
        (_ctx, next) => {
          asked += 1;
          return next();
        },
      ],
    });
    origins.push(edge.origin);
    await supertest(edge.origin).get('/v1/hotels').set('Via', Array(5).fill('1.1 frontdesk').join()).expect(508);
    assert.deepEqual([asked, upstream.reached.length], [1, 0]);
    await supertest(edge.origin).get('/v1/hotels');
    assert.equal(asked, 1 + 6);
  });

  it('is called at its next address when one accepts no connections', async () => {
    const [mute, other] = [await servers.tcp(() => {}), await startUpstream(servers, allow)];
    const origins = [mute.origin.replace('http:', 'https:'), other.origin];
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, {
      connectTimeoutMs: 50,
      authService: authRecordOf({ timeoutMs: 5000 }),
      targets: { hotel: remote(upstream), auth: { kind: 'remote', origins: () => origins, path: '' } },
    });
    for (let round = 0; round < 2; round += 1) await supertest(edge.origin).get('/v1/hotels').expect(200);
    assert.equal(other.reached.length, 2);
  });

  it('is called again when it closes an idle connection just as the request arrives', async () => {
    const { client, seen, upstream } = await behindResetting(1);
    await client.get('/v1/hotels').expect(200);
    await client.post('/v1/hotels').expect(200);
    assert.deepEqual([seen.requests, upstream.reached.length], [3, 2]);
  });

  it('is called at most twice for a request, whatever its addresses do', async () => {
    const seen = { requests: 0 };
    const addresses = [await startResetting(0, seen), await startResetting(1, seen)];
    const origins = () => addresses.map(({ origin }) => origin);
    const upstream = await startUpstream(servers);
    const targets = { auth: { kind: 'remote' as const, origins, path: '' }, hotel: remote(upstream) };
    const edge = await startEdge(servers, { authService: authRecordOf(), targets });
    for (let turn = 1; turn <= 4; turn += 1) {
      seen.requests = 0;
      await supertest(edge.origin).get('/v1/hotels');
      assert.ok(seen.requests <= 2, `${seen.requests} in turn ${turn}`);
    }
  });

  it('is not called again when it resets a new connection', async () => {
    const { client, seen } = await behindResetting(0);
    await client.get('/v1/hotels').expect(503);
    assert.equal(seen.requests, 1);
  });

  describe('with a cache', () => {
    const cached = { cacheMs: 60_000, allowedRequestHeaders: ['x-tenant'] };

    it('is called once for equal requests, each of which receives the identity, and again for any other', async () => {
      const { auth, upstream, edge } = await setUp(allow, cached);
      const same = { method: 'GET', path: '/v1/hotels?a', headers: { authorization: 'Basic eA==' } };
      const others: Readonly<Record<string, object>> = {
        'the same': {},
        'other credentials': { headers: { authorization: 'Basic eB==' } },
        'no credentials': { headers: {} },
        'another cookie': { headers: { ...same.headers, cookie: 'a=1' } },
        'another method': { method: 'DELETE' },
        'another path': { path: '/v1/hotels/x?a' },
        'another query': { path: '/v1/hotels?b' },
        'another value of a listed header': { headers: { ...same.headers, 'x-tenant': '7' } },
      };
      for (const [index, [what, change]] of Object.entries(others).entries()) {
        const { path, ...init } = { ...same, ...change };
        for (let time = 0; time < 2; time += 1) assert.equal((await fetch(edge.origin + path, init)).status, 200);
        assert.equal(auth.reached.length, index + 1, what);
      }
      const users = upstream.reached.map(({ headers }) => headers['x-travel-user']);
      assert.deepEqual(users, Array(16).fill('demo'));
      assert.deepEqual(edge.gateway.snapshot().auth, { allowed: 16, denied: 0, error: 0 });
    });

    const always: readonly (readonly [what: string, respond: Respond, record?: Partial<AuthService>])[] = [
      ['sends no-store', (res) => res.writeHead(200, { 'Cache-Control': 'no-store' }).end()],
      ['sets a cookie', (res) => res.writeHead(200, { 'Set-Cookie': 'a=1' }).end()],
      ['denies the request', (res) => res.writeHead(403).end()],
      ['fails', (res) => res.writeHead(500).end()],
      ['receives bodies', allow, { includeBody: { maxBytes: 10, allowPartial: false } }],
    ];
    for (const [what, respond, record] of always) {
      it(`is called each time when it ${what}`, async () => {
        const { auth, client } = await setUp(respond, { ...cached, failureModeAllow: true, ...record });
        for (let time = 0; time < 2; time += 1) await client.get('/v1/hotels');
        assert.equal(auth.reached.length, 2);
      });
    }
  });

  it('sets only the listed headers of a 200 on the request, with all values of a repeated one', async () => {
    const returned = ['X-Travel-User', 'demo', 'X-Travel-User', 'admin', 'X-Other', 'theirs', 'Set-Cookie', 'a=1'];
    const { upstream, client } = await setUp((res) =>
      res.writeHead(200, [...returned, 'Accept', 'b/c']).end('ignored'),
    );
    const response = await client.get('/v1/hotels').set({ 'X-Travel-User': 'me', Accept: 'a/b' }).expect(200, 'ok');
    const { accept, 'x-travel-user': user, 'x-other': other } = upstream.only().headers;
    assert.deepEqual([accept, user, other], ['a/b', 'demo, admin', undefined]);
    assert.deepEqual([response.headers['set-cookie'], response.headers['x-travel-user']], [undefined, undefined]);
  });

  it('denies the request with any other status below 500, and its body reaches the client unchanged', async () => {
    let status = 0;
    const { upstream, edge } = await setUp((res) => res.writeHead(status, { 'Content-Type': 'a/b' }).end('<no>'));
    for (status of [302, 400, 401, 403, 404, 429, 499]) {
      const response = await fetch(`${edge.origin}/v1/hotels`, { redirect: 'manual' });
      const seen = [response.status, await response.text(), response.headers.get('content-type')];
      assert.deepEqual(seen, [status, '<no>', 'a/b']);
    }
    assert.equal(upstream.reached.length, 0);
  });

  /** As a proxy or another gateway in front of the service refuses what has the content type of gRPC. */
  const inGrpc: readonly (readonly [grpcStatus: string, expected: number])[] = [
    ['16', 401],
    ['7', 403],
    ['8', 429],
    ['14', 503],
    ['14, 0', 503],
    ['0', 200],
  ];
  for (const [grpcStatus, expected] of inGrpc)
    it(`causes ${expected} with a 200 whose status of gRPC is ${grpcStatus}, even with failure_mode_allow`, async () => {
      const { upstream, client } = await setUp(
        (res) => res.writeHead(200, { 'Content-Type': 'application/grpc', 'grpc-status': grpcStatus }).end(),
        { failureModeAllow: true },
      );
      await client.post('/v1/hotels').send('a').expect(expected);
      assert.equal(upstream.reached.length, expected === 200 ? 1 : 0);
    });

  for (const failureModeAllow of [false, true])
    it(`rejects a login that a busy frontdesk did not check (failure_mode_allow: ${failureModeAllow})`, async () => {
      const unchecked = { 'Preference-Applied': 'return=minimal', 'Retry-After': '7' };
      const { client, edge, upstream } = await setUp((res) => res.writeHead(503, unchecked).end(), {
        failureModeAllow,
      });
      await client.get('/v1/hotels').expect(503).expect('Retry-After', '7');
      assert.deepEqual([upstream.reached, edge.log.filter(({ level }) => level === 'warn')], [[], []]);
    });

  it('has a denial without a body sent with its status and our error body', async () => {
    let status = 0;
    const { client } = await setUp((res) => res.writeHead(status).end());
    for (status of [400, 401, 403, 404, 429, 499]) {
      const { body, headers } = await client.get('/v1/hotels').expect(status);
      assert.deepEqual([body.code, headers['retry-after']], [status, status === 429 ? '1' : undefined]);
    }
  });

  it('can add challenges, a wait, cookies, a redirect and the listed headers to a denial, and nothing else', async () => {
    const listed = {
      'www-authenticate': 'Basic realm="x"',
      'set-cookie': ['a=1', 'b=2'],
      location: 'https://login.example/?next=%2Fv1',
      'proxy-authenticate': 'Basic realm="y"',
      'retry-after': '7',
      'x-travel-user': 'none',
    };
    const { client } = await setUp((res) => res.writeHead(302, { ...listed, 'X-Bar': 'theirs' }).end());
    const { headers } = await client.get('/v1/hotels').redirects(0).expect(302);
    const names = [...Object.keys(listed), 'cache-control', 'x-bar', 'content-type'];
    const seen = Object.fromEntries(names.map((name) => [name, headers[name]]));
    assert.deepEqual(seen, { ...listed, 'cache-control': 'no-store', 'x-bar': undefined, 'content-type': undefined });
  });

  for (const body of ['', 'no'])
    it(`has its denial headers forwarded byte for byte, ${body === '' ? 'without' : 'with'} a body`, async () => {
      const headers = ['WWW-Authenticate: Basic realm="Z\xc3\xbcrich"', 'Set-Cookie: a=\xe9', 'Set-Cookie: b=2'];
      const types = ['Content-Type: a/b', 'Content-Type: c/d', `Content-Length: ${body.length}`, '', body];
      const auth = await servers.tcp((socket) => {
        socket.on('data', () => socket.end(['HTTP/1.1 401 No', ...headers, ...types].join('\r\n'), 'latin1'));
      });
      const { edge } = await behind(auth);
      const response = await sendRaw(edge.port, rawRequest('GET /v1/hotels'));
      assert.match(response, /^HTTP\/1\.1 401 /);
      for (const header of headers) assert.ok(response.includes(`\r\n${header}\r\n`), response);
    });

  const unauthorized = (res: ServerResponse) =>
    res.writeHead(401, { 'WWW-Authenticate': 'Basic realm="x"', 'Content-Type': 'text/html' });
  const bodiless: readonly (readonly [what: string, respond: Respond, method?: 'head'])[] = [
    ['it has no body', (res) => unauthorized(res).end()],
    ['the request is a HEAD', (res) => unauthorized(res).end(), 'head'],
    ['its body is too large', (res) => unauthorized(res).end('x'.repeat(70_000))],
    ['its body is incomplete', (res) => unauthorized(res).write('half', () => res.socket?.end())],
  ];
  for (const [what, respond, method] of bodiless) {
    it(`has its denial sent with our error body when ${what}, even with failure_mode_allow`, async () => {
      const { upstream, client } = await setUp(respond, { failureModeAllow: true });
      const { status, headers, body } = await client[method ?? 'get']('/v1/hotels');
      const seen = [status, headers['content-type'], headers['www-authenticate']];
      assert.deepEqual(seen, [401, 'application/json', 'Basic realm="x"']);
      if (method === undefined) assert.deepEqual(body, { code: 401, message: '401: Unauthorized' });
      assert.equal(upstream.reached.length, 0);
    });
  }

  describe('without a decision', () => {
    const failing: Readonly<Record<string, () => Promise<Served>>> = {
      'a refused connection': servers.refusing,
      'a reset': () => servers.tcp((socket) => void socket.once('data', () => socket.resetAndDestroy())),
      'no response in time': () => servers.tcp(() => {}),
      'a 500': () => startUpstream(servers, (res) => res.writeHead(500).end('at Object.<anonymous>')),
      'a 503': () => startUpstream(servers, (res) => res.writeHead(503).end()),
      'an invalid response': () => servers.tcp((socket) => void socket.once('data', () => socket.end('hello\r\n'))),
    };

    for (const [how, start] of Object.entries(failing)) {
      it(`causes 503 after ${how}, or lets the request pass without an identity with failure_mode_allow`, async () => {
        const service = await start();
        const closed = await behind(service, { timeoutMs: 100 });
        const { body, headers } = await closed.client.get('/v1/hotels').expect(503);
        assert.deepEqual(body, { code: 503, message: '503: Service Unavailable' });
        assert.equal(headers['retry-after'], '1');
        assert.equal(closed.upstream.reached.length, 0);
        assert.deepEqual(closed.edge.gateway.snapshot().auth, { allowed: 0, denied: 0, error: 1 });
        const open = await behind(service, { timeoutMs: 100, failureModeAllow: true });
        await open.client.get('/v1/hotels').set('X-Travel-User', 'admin').expect(200);
        assert.equal(open.upstream.only().headers['x-travel-user'], undefined);
      });
    }

    /** An oauth2-proxy, for example, puts the URL into the `Location` of its login page. */
    it('causes 503 even with failure_mode_allow when the client made its response too long', async () => {
      const auth = await servers.http((req, res) => {
        res.writeHead(302, { Location: `/login?rd=${encodeURIComponent(req.url ?? '')}` }).end();
      });
      const { upstream, client } = await behind(auth, { failureModeAllow: true });
      await client.get('/v1/hotels?short').redirects(0).expect(302);
      await client
        .get(`/v1/hotels?${'/'.repeat(6000)}`)
        .redirects(0)
        .expect(503);
      assert.equal(upstream.reached.length, 0);
    });

    it('causes the status in status_on_error', async () => {
      const { client } = await behind(await servers.refusing(), { statusOnError: 403 });
      await client.get('/v1/hotels').expect(403, { code: 403, message: '403: Forbidden' });
    });
  });

  it('is abandoned when the client disconnects, without calling the service, even with failure_mode_allow', async () => {
    const asked = createDeferred();
    const dropped = createDeferred();
    const finished = createDeferred();
    const auth = await servers.http((req) => {
      req.socket.once('close', dropped.resolve);
      asked.resolve();
    });
    const { edge, upstream } = await behind(
      auth,
      { failureModeAllow: true },
      { host: [(_ctx, next) => next().finally(finished.resolve)], mappings: [mappingOf()] },
    );
    const leaving = connect(edge.port, '127.0.0.1');
    leaving.write(rawRequest('GET /v1/hotels'));
    await asked.promise;
    leaving.destroy();
    await Promise.all([once(leaving, 'close'), dropped.promise, finished.promise]);
    assert.equal(upstream.reached.length, 0);
    assert.deepEqual(edge.log, []);
  });
});
