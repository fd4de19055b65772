/** An auth service across HTTP: what it is asked, and what follows from its response. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import supertest from 'supertest';
import type { AuthService } from '#config';
import { authRecordOf, type EdgeOptions, mappingOf, remote, startEdge } from '../../support/edge.ts';
import { type Served, testServers } from '../../support/serve.ts';
import { startUpstream } from '../../support/upstream.ts';
import { createSignal } from '../../support/waiting.ts';
import { rawRequest, sendRaw } from '../../support/wire/raw-client.ts';

type Answer = (res: ServerResponse) => void;

const allow: Answer = (res) => res.writeHead(200, { 'X-Travel-User': 'demo' }).end();

describe('an auth service across HTTP', () => {
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

  async function setUp(answer: Answer = allow, record: Partial<AuthService> = {}, more: EdgeOptions = {}) {
    const auth = await startUpstream(servers, answer);
    return { auth, ...(await behind(auth, record, more)) };
  }

  it('is asked with the method, the original path and query, and the credentials', async () => {
    const { auth, edge } = await setUp();
    await sendRaw(
      edge.port,
      rawRequest('DELETE /v1/hotels/bookings/1?a=%20&b', ['Authorization: Basic ZGVtbzpkZW1v', 'Cookie: a=1']),
    );
    const { method, url, headers, body } = auth.only();
    assert.deepEqual([method, url, body], ['DELETE', '/v1/hotels/bookings/1?a=%20&b', '']);
    assert.equal(headers.authorization, 'Basic ZGVtbzpkZW1v');
    assert.equal(headers.cookie, 'a=1');
    assert.equal(headers['x-forwarded-for'], '127.0.0.1');
    assert.equal(headers['x-forwarded-host'], 'front.example');
    assert.equal(headers['x-forwarded-proto'], 'http');
    assert.match(String(headers['x-request-id']), /^[\w-]{36}$/);
    assert.equal(headers['host'], auth.origin.slice('http://'.length));
  });

  it('gets no other header, least of all one that it sets itself', async () => {
    const { auth, edge } = await setUp();
    const lies = ['X-Travel-User: admin', 'X_Travel_User: admin', 'X-Forwarded-For: 10.0.0.1', 'X-Other: 1'];
    await sendRaw(
      edge.port,
      rawRequest('GET /v1/hotels', [...lies, 'Content-Length: 5', 'Expect: 100-continue'], 'hello'),
    );
    assert.deepEqual([...auth.only().names].sort(), [
      'connection',
      'host',
      'traceparent',
      'x-forwarded-for',
      'x-forwarded-host',
      'x-forwarded-proto',
      'x-request-id',
    ]);
    assert.equal(auth.only().headers['x-forwarded-for'], '127.0.0.1');
  });

  it('is asked for the routed path, in whatever form the client writes it', async () => {
    const { auth, edge } = await setUp();
    for (const target of ['http://evil.example/v1/hotels/x?y', '//v1/hotels/x?y', '/v1/%68otels/x?y'])
      assert.match(await sendRaw(edge.port, rawRequest(`GET ${target}`)), /^HTTP\/1\.1 200 /, target);
    assert.deepEqual(new Set(auth.reached.map(({ url }) => url)), new Set(['/v1/hotels/x?y']));
  });

  it('is asked below its base path and path_prefix, verbatim', async () => {
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

  it('gets the headers that the record lists, but none of the connection and none that the gateway sets', async () => {
    const allowedRequestHeaders = ['x-tenant', 'connection', 'content-length', 'x-forwarded-for', 'x-request-id', 'te'];
    const { auth, edge } = await setUp(allow, { allowedRequestHeaders });
    const lies = ['X-Forwarded-For: 10.0.0.1', 'X-Request-Id: mine', 'TE: trailers', 'Content-Length: 5'];
    await sendRaw(edge.port, rawRequest('POST /v1/hotels', ['X-Tenant: 7', ...lies], 'hello'));
    const { headers, body } = auth.only();
    assert.equal(headers['x-tenant'], '7');
    assert.deepEqual(
      [headers['x-forwarded-for'], headers['x-request-id'], headers['te']],
      ['127.0.0.1', 'mine', undefined],
    );
    assert.deepEqual([headers['content-length'], body], ['0', '']);
  });

  it('gets add_auth_headers in place of the headers of the client, which the service still gets', async () => {
    const { auth, upstream, client } = await setUp(allow, {
      allowedRequestHeaders: ['x-tenant'],
      addAuthHeaders: [
        { name: 'X-Tenant', value: 'ours' },
        { name: 'authorization', value: 'Bearer of-the-gateway' },
        { name: 'x-forwarded-proto', value: 'https' },
      ],
    });
    await client.get('/v1/hotels').set({ 'X-Tenant': 'theirs', Authorization: 'Basic eA==' }).expect(200);
    const told = auth.only();
    const names = ['x-tenant', 'authorization', 'x-forwarded-proto'];
    assert.deepEqual(
      names.map((name) => told.headers[name]),
      ['ours', 'Bearer of-the-gateway', 'https'],
    );
    for (const name of names) assert.equal(told.names.filter((one) => one === name).length, 1);
    assert.equal(upstream.only().headers['x-tenant'], 'theirs');
    assert.equal(upstream.only().headers.authorization, 'Basic eA==');
  });

  it('may repeat the identity header: the service gets one list', async () => {
    const { upstream, client } = await setUp((res) =>
      res
        .writeHead(200, [
          ['X-Travel-User', 'demo'],
          ['X-Travel-User', 'admin'],
        ] as never)
        .end(),
    );
    await client.get('/v1/hotels').expect(200);
    assert.equal(upstream.only().headers['x-travel-user'], 'demo, admin');
  });

  it('is asked at another address when one is down', async () => {
    const auth = await startUpstream(servers, allow);
    const down = await servers.refusing();
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

  it('is asked once more when it closes an idle connection as the request arrives', async () => {
    let questions = 0;
    const auth = await servers.tcp((socket) => {
      let heard = 0;
      socket.on('data', () => {
        heard += 1;
        questions += 1;
        if (heard > 1) socket.destroy();
        else socket.write('HTTP/1.1 200 OK\r\nX-Travel-User: demo\r\nContent-Length: 0\r\n\r\n');
      });
    });
    const { client, upstream } = await behind(auth);
    await client.get('/v1/hotels').expect(200);
    await client.post('/v1/hotels').expect(200);
    assert.equal(questions, 3);
    assert.equal(upstream.reached.length, 2);
  });

  it('is not asked again when it resets a new connection', async () => {
    let questions = 0;
    const auth = await servers.tcp(
      (socket) =>
        void socket.once('data', () => {
          questions += 1;
          socket.destroy();
        }),
    );
    const { client } = await behind(auth);
    await client.get('/v1/hotels').expect(503);
    assert.equal(questions, 1);
  });

  describe('with a cache', () => {
    const kept = { cacheMs: 60_000, allowedRequestHeaders: ['x-tenant'] };

    it('is asked once about equal requests, each of which gets the identity', async () => {
      const { auth, upstream, edge } = await setUp(allow, kept);
      const get = () => fetch(`${edge.origin}/v1/hotels?a`, { headers: { Authorization: 'Basic eA==' } });
      for (let time = 0; time < 3; time += 1) assert.equal((await get()).status, 200);
      assert.equal(auth.reached.length, 1);
      assert.deepEqual(
        upstream.reached.map(({ headers }) => headers['x-travel-user']),
        ['demo', 'demo', 'demo'],
      );
      assert.deepEqual(edge.gateway.snapshot().auth, { allowed: 3, denied: 0, error: 0 });
    });

    const same = { method: 'GET', path: '/v1/hotels?a', headers: { authorization: 'Basic eA==' } };

    for (const [what, change] of Object.entries({
      'other credentials': { headers: { authorization: 'Basic eB==' } },
      'no credentials': { headers: {} },
      'another cookie': { headers: { ...same.headers, cookie: 'a=1' } },
      'another method': { method: 'DELETE' },
      'another path': { path: '/v1/hotels/x?a' },
      'another query': { path: '/v1/hotels?b' },
      'another value of a listed header': { headers: { ...same.headers, 'x-tenant': '7' } },
    })) {
      it(`is asked again with ${what}`, async () => {
        const { auth, edge } = await setUp(allow, kept);
        for (const { path, ...request } of [same, { ...same, ...change }])
          await fetch(edge.origin + path, request as RequestInit);
        assert.equal(auth.reached.length, 2);
      });
    }

    const always: readonly (readonly [what: string, answer: Answer, record?: Partial<AuthService>])[] = [
      ['says no-store', (res) => res.writeHead(200, { 'Cache-Control': 'no-store' }).end()],
      ['sets a cookie', (res) => res.writeHead(200, { 'Set-Cookie': 'a=1' }).end()],
      ['refuses', (res) => res.writeHead(403).end()],
      ['fails', (res) => res.writeHead(500).end()],
      ['gets bodies', allow, { includeBody: { maxBytes: 10, allowPartial: false } }],
    ];
    for (const [what, answer, record] of always) {
      it(`is asked each time when it ${what}`, async () => {
        const { auth, client } = await setUp(answer, { ...kept, failureModeAllow: true, ...record });
        for (let time = 0; time < 2; time += 1) await client.get('/v1/hotels');
        assert.equal(auth.reached.length, 2);
      });
    }
  });

  it('sets the listed headers of a 200 on the request, and no others', async () => {
    const { upstream, client } = await setUp((res) =>
      res
        .writeHead(200, { 'X-Travel-User': 'demo', 'X-Other': 'theirs', 'Set-Cookie': 'a=1', Accept: 'text/html' })
        .end('ignored'),
    );
    const answer = await client.get('/v1/hotels').set('X-Travel-User', 'admin').set('Accept', 'a/b').expect(200, 'ok');
    const { headers } = upstream.only();
    assert.equal(headers['x-travel-user'], 'demo');
    assert.equal(headers['x-other'], undefined);
    assert.equal(headers.accept, 'a/b');
    assert.equal(answer.headers['set-cookie'], undefined);
    assert.equal(answer.headers['x-travel-user'], undefined);
  });

  it('that names no user leaves the request without one', async () => {
    const { upstream, client } = await setUp((res) => res.writeHead(200).end());
    await client.get('/v1/hotels').set('X-Travel-User', 'admin').expect(200);
    assert.equal(upstream.only().headers['x-travel-user'], undefined);
  });

  it('refuses with any other status below 500, and its body reaches the client unchanged', async () => {
    let status = 0;
    const { upstream, edge } = await setUp((res) => res.writeHead(status, { 'Content-Type': 'a/b' }).end('<no>'));
    for (status of [201, 204, 302, 400, 401, 403, 404, 429, 499]) {
      const answer = await fetch(`${edge.origin}/v1/hotels`, { redirect: 'manual' });
      const expected = status === 204 ? ['', null] : ['<no>', 'a/b'];
      const seen = [answer.status, await answer.text(), answer.headers.get('content-type')];
      assert.deepEqual(seen, [status, ...expected]);
    }
    assert.equal(upstream.reached.length, 0);
  });

  it('may add a challenge, cookies and a redirect to a refusal, and no header that is not listed', async () => {
    const { client } = await setUp((res) =>
      res
        .writeHead(302, {
          'WWW-Authenticate': 'Basic realm="x"',
          'Set-Cookie': ['a=1', 'b=2'],
          Location: 'https://login.example/?next=%2Fv1',
          'X-Travel-User': 'none',
          'X-Bar': 'theirs',
          Connection: 'close',
        })
        .end(),
    );
    const { headers, status } = await client.get('/v1/hotels').redirects(0);
    assert.equal(status, 302);
    assert.equal(headers['www-authenticate'], 'Basic realm="x"');
    assert.deepEqual(headers['set-cookie'], ['a=1', 'b=2']);
    assert.equal(headers['location'], 'https://login.example/?next=%2Fv1');
    assert.equal(headers['x-travel-user'], 'none');
    assert.equal(headers['x-bar'], undefined);
    assert.equal(headers['content-type'], undefined);
    assert.equal(headers['cache-control'], 'no-store');
  });

  function checkBodiless(what: string, answer: Answer, method: 'get' | 'head' = 'get') {
    it(`refuses ${what}: the client gets the error body`, async () => {
      const { upstream, client } = await setUp(answer);
      const { status, headers, body } = await client[method]('/v1/hotels');
      assert.equal(status, 401);
      assert.equal(headers['content-type'], 'application/json');
      assert.equal(headers['www-authenticate'], 'Basic realm="x"');
      if (method === 'get') assert.deepEqual(body, { code: 401, message: '401: Unauthorized' });
      assert.equal(upstream.reached.length, 0);
    });
  }

  const challenge = { 'WWW-Authenticate': 'Basic realm="x"', 'Content-Type': 'text/html' };
  checkBodiless('without a body', (res) => res.writeHead(401, challenge).end());
  checkBodiless('a HEAD request', (res) => res.writeHead(401, challenge).end(), 'head');
  checkBodiless('at too great a length', (res) => res.writeHead(401, challenge).end('x'.repeat(70_000)));
  checkBodiless('and breaks off', (res) => {
    res.writeHead(401, challenge).write('half');
    res.socket?.end();
  });

  describe('without an answer', () => {
    const failing: Readonly<Record<string, () => Promise<Served>>> = {
      'a refused connection': servers.refusing,
      'a reset': () => servers.tcp((socket) => void socket.once('data', () => socket.resetAndDestroy())),
      'no response in time': () => servers.tcp(() => {}),
      'a 500': () => startUpstream(servers, (res) => res.writeHead(500).end('at Object.<anonymous>')),
      'a 503': () => startUpstream(servers, (res) => res.writeHead(503).end()),
      nonsense: () => servers.tcp((socket) => void socket.once('data', () => socket.end('hello\r\n'))),
    };

    for (const [how, start] of Object.entries(failing)) {
      it(`after ${how}: 503, or without an identity with failure_mode_allow`, async () => {
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

    it('makes the status of status_on_error', async () => {
      const { client } = await behind(await servers.refusing(), { statusOnError: 403 });
      await client.get('/v1/hotels').expect(403, { code: 403, message: '403: Forbidden' });
    });
  });

  it('refuses with too large a body, with failure_mode_allow too', async () => {
    const { upstream, client } = await setUp((res) => res.writeHead(403).end('x'.repeat(70_000)), {
      failureModeAllow: true,
    });
    await client.get('/v1/hotels').expect(403);
    assert.equal(upstream.reached.length, 0);
  });

  it('loses its call when the client disconnects, which gets no request past it with failure_mode_allow', async () => {
    const asked = createSignal();
    const dropped = createSignal();
    const finished = createSignal();
    const auth = await servers.http((req) => {
      req.socket.once('close', dropped.give);
      asked.give();
    });
    const { edge, upstream } = await behind(
      auth,
      { failureModeAllow: true },
      { host: [(_ctx, next) => next().finally(finished.give)], mappings: [mappingOf()] },
    );
    const leaving = connect(edge.port, '127.0.0.1');
    leaving.write(rawRequest('GET /v1/hotels'));
    await asked.given;
    leaving.destroy();
    await Promise.all([once(leaving, 'close'), dropped.given, finished.given]);
    assert.equal(upstream.reached.length, 0);
    assert.deepEqual(edge.log, []);
  });
});
