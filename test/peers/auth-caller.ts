/** Cases for every proxy that uses the auth service: what its clients get, and what reaches the service behind it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { connect } from 'node:net';
import request from 'supertest';
import { freePort } from '../support/programs/free-port.ts';
import { type Server, startServer } from '../support/programs/frontdesk-process.ts';
import { type ProxyProcess, type ProxyProgram, startProxy } from '../support/programs/proxy-process.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

export interface RecipePorts {
  readonly proxy: number;
  readonly auth: number;
  readonly upstream: number;
}

export interface AuthCaller {
  readonly program: ProxyProgram;
  /** Returns the recipe's configuration with the ports of a test. */
  readonly recipe: (ports: RecipePorts) => string;
  /** The status that clients get when the auth service is unreachable. */
  readonly unavailable: number;
}

const challenge = 'Basic realm="api", charset="UTF-8"';
const basic = (user: string, password = user) => `Basic ${btoa(`${user}:${password}`)}`;

const methods = ['get', 'head', 'post', 'put', 'patch', 'delete', 'options'] as const;

const refusal = { code: 401, message: '401: Unauthorized' };

const forged = [
  'X-Travel-User',
  'x-travel-user',
  'X_Travel_User',
  'X-Travel_User',
  'x_travel-USER',
  'X.Travel.User',
  'X-Travel.User',
  'X!Travel!User',
];

/** Targets that a proxy may interpret as another path. */
const oddPaths = [
  '//',
  '//x',
  '/a/../b',
  '/%2e%2e/x',
  '/a%2Fb',
  '/%',
  '/%00',
  '/\\x',
  '/;x',
  '/?a=../b',
  '/x#y',
  '/_auth',
  '/_auth/',
  '/x/../_auth',
  '/%5fauth',
  'http://elsewhere.example/x',
  '*',
  'x',
];

const chunkedPost = rawRequest(
  'POST /',
  ['Transfer-Encoding: chunked', `Authorization: ${basic('demo')}`],
  '3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n',
);

export function authCallerCases({ program, recipe, unavailable }: AuthCaller): void {
  const suite = testServers(after);
  const servers = testServers();
  let auth: Server;
  let upstream: Upstream;
  let proxy: ProxyProcess;

  async function startBefore(authPort: number): Promise<ProxyProcess> {
    const port = await freePort();
    const ports = { proxy: port, auth: authPort, upstream: upstream.port };
    return startProxy(program, recipe(ports), port);
  }

  /** Starts the proxy with the test's own auth service. */
  async function startWithAuth(authPort: number): Promise<ProxyProcess> {
    const started = await startBefore(authPort);
    servers.later(started.remove);
    return started;
  }

  async function assertStopped(act: () => unknown): Promise<void> {
    assert.deepEqual(await upstream.reachedBy(act), []);
  }

  before(async () => {
    upstream = await startUpstream(suite);
    auth = await startServer(['--only', 'auth']);
    suite.later(auth.stop);
    proxy = await startBefore(Number(new URL(auth.authUrl).port));
    suite.later(proxy.remove);
  });

  it('rejects requests of any method without credentials with 401, a challenge and the error body', async () => {
    const preflight = { Origin: 'https://app.example', 'Access-Control-Request-Method': 'GET' };
    for (const method of methods) {
      const ask = request(proxy.origin)[method]('/v1/hotels').set(preflight);
      await assertStopped(() => ask.expect(401).expect('WWW-Authenticate', challenge));
    }
    const wrong = request(proxy.origin).get('/v1/hotels').auth('demo', 'wrong');
    await assertStopped(() => wrong.expect(401, refusal).expect('Content-Type', /^application\/json/));
  });

  it("forwards requests of any method with the user's name, and returns the responses", async () => {
    for (const method of methods) {
      const ask = request(proxy.origin)[method]('/v1/hotels?a=%2F&a').auth('demo', 'demo');
      const reached = await upstream.reachedBy(() => ask.expect(200).expect(method === 'head' ? {} : 'ok'));
      assert.deepEqual(
        reached.map((one) => [one.method, one.url, one.headers['x-travel-user']]),
        [[method.toUpperCase(), '/v1/hotels?a=%2F&a', 'demo']],
      );
    }
  });

  it('removes identity headers of the client, in any spelling', async () => {
    const headers = forged.map((name) => `${name}: admin`);
    await assertStopped(async () => {
      assert.match(await sendRaw(proxy.port, rawRequest('GET /', headers)), /^HTTP\/1\.1 401 /);
    });
    const signed = [...headers, `Authorization: ${basic('guest')}`];
    const [reached] = await upstream.reachedBy(() => sendRaw(proxy.port, rawRequest('GET /', signed)));
    assert.deepEqual(
      reached?.names.filter((name) => name.includes('travel')),
      ['x-travel-user'],
    );
    assert.equal(reached?.headers['x-travel-user'], 'guest');
  });

  it('keeps the user name when the client lists its header in Connection', async () => {
    const bytes = [
      'GET / HTTP/1.1',
      'Host: front.example',
      'Connection: close, X-Travel-User',
      `Authorization: ${basic('demo')}`,
      '',
      '',
    ].join('\r\n');
    const [reached] = await upstream.reachedBy(() => sendRaw(proxy.port, bytes));
    assert.equal(reached?.headers['x-travel-user'], 'demo');
  });

  it('forwards bodies in one piece, in chunks and with Expect: 100-continue', async () => {
    const body = 'x'.repeat(300_000);
    const post = () => request(proxy.origin).post('/v1/hotels').type('text/plain');
    await assertStopped(() => post().send('some').expect(401));
    const ask = post().auth('demo', 'demo').send(body).expect(200);
    const [whole] = await upstream.reachedBy(() => ask);
    assert.ok(whole?.body === body);
    for (const bytes of [chunkedPost, chunkedPost.replace('\r\n', '\r\nExpect: 100-continue\r\n')]) {
      const [chunked] = await upstream.reachedBy(() => sendRaw(proxy.port, bytes));
      assert.deepEqual([chunked?.body, chunked?.headers['x-travel-user']], ['abcde', 'demo']);
    }
  });

  it('rejects an upgrade without credentials', async () => {
    const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'];
    const bytes = ['GET / HTTP/1.1', 'Host: front.example', ...upgrade, '', ''].join('\r\n');
    await assertStopped(async () => {
      const socket = connect(proxy.port, '127.0.0.1');
      socket.write(bytes);
      const [headers] = await once(socket, 'data');
      socket.destroy();
      assert.match(String(headers), /^HTTP\/1\.1 401 /);
    });
  });

  it('calls the auth service without the body and its headers', async () => {
    const asked = await startUpstream(servers, (res) => void res.writeHead(200, { 'X-Travel-User': 'ann' }).end());
    const started = await startWithAuth(asked.port);
    const reached = await upstream.reachedBy(async () => {
      await request(started.origin).post('/').type('text/plain').send('some').expect(200);
      await sendRaw(started.port, chunkedPost);
    });
    assert.deepEqual(
      reached.map(({ body, headers }) => [body, headers['x-travel-user']]),
      [
        ['some', 'ann'],
        ['abcde', 'ann'],
      ],
    );
    for (const { body, headers } of asked.reached) {
      assert.deepEqual([body, headers['content-length'] ?? '0', headers['transfer-encoding']], ['', '0', undefined]);
    }
  });

  it('forwards cookies that are longer than the auth service accepts', async () => {
    const strict = await startServer(['--only', 'auth'], { env: { HEADER_BYTES_MAX: '4096' } });
    servers.later(strict.stop);
    const { origin } = await startWithAuth(Number(new URL(strict.authUrl).port));
    const cookie = 'session='.padEnd(6000, 'x');
    const [reached] = await upstream.reachedBy(() =>
      request(origin).get('/').auth('demo', 'demo').set('Cookie', cookie).expect(200),
    );
    assert.deepEqual([reached?.headers.cookie, reached?.headers['x-travel-user']], [cookie, 'demo']);
  });

  it("passes the client's real address to the auth service, not one that the client claims", async () => {
    const asked = await startUpstream(servers, (res) => void res.end());
    const { origin } = await startWithAuth(asked.port);
    await request(origin).get('/').set('X-Forwarded-For', '203.0.113.7').expect(200);
    // There may also be a health check among the requests.
    const forwarded = asked.reached
      .map(({ headers }) => headers['x-forwarded-for'])
      .find((value) => value !== undefined);
    const hops = String(forwarded).split(/, */);
    assert.match(hops.at(-1) ?? '', /^(?!203\.0\.113\.7$)\d+\.\d+\.\d+\.\d+$/);
  });

  it('rejects odd paths without credentials', async () => {
    for (const path of oddPaths) {
      await assertStopped(async () => {
        const answer = await sendRaw(proxy.port, rawRequest(`GET ${path}`));
        assert.match(answer, /^HTTP\/1\.[01] 4\d\d /, `${path}: ${answer}`);
      });
    }
  });

  it('forwards odd paths unchanged', async () => {
    for (const path of ['/a%2Fb', '/a;b/?x=../y', '/%C3%A4', "/!$&'()*+,=:@"]) {
      const bytes = rawRequest(`GET ${path}`, [`Authorization: ${basic('demo')}`]);
      const [reached] = await upstream.reachedBy(() => sendRaw(proxy.port, bytes));
      assert.deepEqual([reached?.url, reached?.headers['x-travel-user']], [path, 'demo']);
    }
  });

  it('keeps users apart in concurrent requests', async () => {
    const users = Array.from({ length: 40 }, (_, index) => (index % 3 === 0 ? 'guest' : 'demo'));
    const reached = await upstream.reachedBy(() =>
      Promise.all(users.map((user, index) => request(proxy.origin).get(`/${index}`).auth(user, user).expect(200))),
    );
    // By path, because a test in another process may still call a port that it used before this upstream did.
    const userNames = users.map((_, index) =>
      reached.filter(({ url }) => url === `/${index}`).map(({ headers }) => headers['x-travel-user']),
    );
    assert.deepEqual(
      userNames,
      users.map((user) => [user]),
    );
  });

  describe('rejects all requests', () => {
    const answers: readonly (readonly [string, RequestListener])[] = [
      ['closes the connection', (req) => void req.socket.destroy()],
      ['responds with 500', (_req, res) => void res.writeHead(500).end()],
      ['responds with 503 because it is busy', (_req, res) => void res.writeHead(503, { 'Retry-After': '1' }).end()],
    ];

    for (const [what, answer] of answers) {
      it(`when the auth service ${what}`, async () => {
        const { origin } = await startWithAuth((await servers.http(answer)).port);
        const ask = request(origin).get('/').auth('demo', 'demo');
        await assertStopped(() => ask.expect(({ status }) => assert.ok(status >= 500, String(status))));
      });
    }

    it(`when the auth service is down, with ${unavailable}`, async () => {
      const { origin } = await startWithAuth((await servers.refusing()).port);
      await assertStopped(() => request(origin).get('/').auth('demo', 'demo').expect(unavailable));
    });
  });

  it('forwards no user name when the auth service returns none', async () => {
    const { port } = await servers.http((_req, res) => void res.end());
    const { origin } = await startWithAuth(port);
    const [reached] = await upstream.reachedBy(() =>
      request(origin).get('/').set('X-Travel-User', 'admin').expect(200),
    );
    assert.ok(reached !== undefined && reached.headers['x-travel-user'] !== 'admin');
  });
}
