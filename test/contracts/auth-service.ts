/** What every auth service in another process means for a request, whichever protocol it is called with. */
import assert from 'node:assert/strict';
import supertest from 'supertest';
import type { AuthService } from '#config';
import { authRecordOf, type EdgeOptions, mappingOf, remote, startEdge } from '../support/edge.ts';
import { type Served, type TestServers, testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';

/** What the service is told about a request. Names of headers are in lower case. */
export interface AskedRequest {
  readonly method: string;
  readonly path: string;
  readonly host: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
}

type Headers = Readonly<Record<string, string>>;

export type ServiceDecision =
  | { readonly kind: 'allow'; readonly headers?: Headers; readonly cookie?: string }
  | { readonly kind: 'deny'; readonly status: number; readonly headers?: Headers; readonly body?: string }
  | { readonly kind: 'fail' };

export interface AuthProtocol {
  /** The fields of a record that calls the service so. */
  readonly record: Partial<AuthService>;
  readonly start: (
    servers: TestServers,
    decide: (asked: AskedRequest) => ServiceDecision | Promise<ServiceDecision>,
  ) => Promise<Served>;
}

const allow: ServiceDecision = { kind: 'allow', headers: { 'x-travel-user': 'demo' } };

export function describeAuthService(name: string, protocol: AuthProtocol): void {
  describe(`an auth service over ${name}`, () => {
    const servers = testServers();

    async function setUp(
      decision: ServiceDecision | Served = allow,
      record: Partial<AuthService> = {},
      more: EdgeOptions = {},
    ) {
      const asked: AskedRequest[] = [];
      const decide = (request: AskedRequest) => {
        asked.push(request);
        return decision as ServiceDecision;
      };
      const service = 'origin' in decision ? decision : await protocol.start(servers, decide);
      const upstream = await startUpstream(servers);
      const edge = await startEdge(servers, {
        authService: authRecordOf({ ...protocol.record, ...record }),
        targets: { auth: remote(service), hotel: remote(upstream) },
        ...more,
      });
      return { asked, upstream, edge, client: supertest(edge.origin) };
    }

    it('is told the method, the path and query, the host, the credentials and the client, and nothing forged', async () => {
      const { asked, client } = await setUp();
      const sent = { Authorization: 'Basic eA==', Cookie: 'a=1', 'User-Agent': 'test', Host: 'front.example' };
      const forged = { 'X-Travel-User': 'admin', X_Travel_User: 'admin', 'X-Forwarded-For': '9.9.9.9' };
      await client.delete('/v1/hotels/a%20b?c=%2F&c').set({ ...sent, ...forged });
      const [{ method, path, host, headers } = assert.fail()] = asked;
      assert.deepEqual([method, path, host], ['DELETE', '/v1/hotels/a%20b?c=%2F&c', 'front.example']);
      assert.deepEqual(
        [headers['authorization'], headers['cookie'], headers['user-agent'], headers['x-forwarded-for']],
        ['Basic eA==', 'a=1', 'test', '127.0.0.1'],
      );
      assert.match(String(headers['x-request-id']), /^[\w-]{36}$/);
      assert.deepEqual([headers['x-travel-user'], headers['x_travel_user']], [undefined, undefined]);
    });

    it('is told the address of the client that a trusted proxy reports', async () => {
      const { asked, client } = await setUp(allow, {}, { addresses: { trustedProxies: ['127.0.0.1'] } });
      await client.get('/v1/hotels').set('X-Forwarded-For', '203.0.113.7');
      assert.equal(asked[0]?.headers['x-forwarded-for'], '203.0.113.7, 127.0.0.1');
    });

    it('gets add_auth_headers in place of those of the client, which the service still gets', async () => {
      const addAuthHeaders = [{ name: 'authorization', value: 'Bearer of-the-gateway' }];
      const { asked, upstream, client } = await setUp(allow, { addAuthHeaders });
      await client.get('/v1/hotels').set('Authorization', 'Basic eA==').expect(200);
      assert.equal(asked[0]?.headers['authorization'], 'Bearer of-the-gateway');
      assert.equal(upstream.only().headers.authorization, 'Basic eA==');
    });

    it('gets the beginning of a body with include_body, which the service gets whole', async () => {
      const { asked, upstream, client } = await setUp(allow, { includeBody: { maxBytes: 5, allowPartial: true } });
      await client.post('/v1/hotels').type('text/plain').send('hello world').expect(200);
      assert.deepEqual([asked[0]?.body, asked[0]?.headers['x-envoy-auth-partial-body']], ['hello', 'true']);
      assert.equal(upstream.only().body, 'hello world');
    });

    it('names the user, in place of whom the client claims to be', async () => {
      const { upstream, client } = await setUp({ kind: 'allow', headers: { 'x-travel-user': 'Z\u00c3\u00bcrich' } });
      await client.get('/v1/hotels').set('X-Travel-User', 'admin').expect(200);
      assert.equal(upstream.only().headers['x-travel-user'], 'Z\u00c3\u00bcrich');
    });

    it('names no user if it sends no header, and none on a route without it', async () => {
      const mappings = [mappingOf(), mappingOf({ name: 'open', prefix: '/open', bypassAuth: true })];
      const { asked, upstream, client } = await setUp({ kind: 'allow' }, {}, { mappings });
      for (const path of ['/v1/hotels', '/open']) await client.get(path).set('X-Travel-User', 'admin').expect(200);
      assert.deepEqual(
        upstream.reached.map(({ headers }) => headers['x-travel-user']),
        [undefined, undefined],
      );
      assert.equal(asked.length, 1);
    });

    it('has its denial sent to the client, with its headers and body', async () => {
      const headers = { 'www-authenticate': 'Basic realm="x"', 'content-type': 'text/html', 'set-cookie': 'a=1' };
      const { upstream, client, edge } = await setUp({ kind: 'deny', status: 401, headers, body: '<p>no</p>' });
      const response = await client.get('/v1/hotels').expect(401, '<p>no</p>').expect('Content-Type', 'text/html');
      assert.deepEqual(
        [response.headers['www-authenticate'], response.headers['set-cookie'], response.headers['cache-control']],
        ['Basic realm="x"', ['a=1'], 'no-store'],
      );
      assert.equal(upstream.reached.length, 0);
      assert.deepEqual(edge.gateway.snapshot().auth, { allowed: 0, denied: 1, error: 0 });
    });

    it('has its redirect sent to the client', async () => {
      const { client } = await setUp({ kind: 'deny', status: 302, headers: { location: '/login' } });
      await client.get('/v1/hotels').redirects(0).expect(302).expect('Location', '/login');
    });

    for (const method of ['get', 'head'] as const)
      it(`has a denial without a body sent with our error body after ${method.toUpperCase()}`, async () => {
        const headers = { 'www-authenticate': 'Basic realm="x"' };
        const { client } = await setUp({ kind: 'deny', status: 401, headers }, { failureModeAllow: true });
        const response = await client[method]('/v1/hotels').expect(401).expect('WWW-Authenticate', 'Basic realm="x"');
        assert.equal(response.headers['content-type'], 'application/json');
        if (method === 'get') assert.deepEqual(response.body, { code: 401, message: '401: Unauthorized' });
      });

    it('is asked once for equal requests with cache_ms, unless it denies them or sets a cookie', async () => {
      const counts: number[] = [];
      for (const [decision, listed] of [
        [allow, []],
        [{ kind: 'deny', status: 403 }, []],
        [{ kind: 'allow', cookie: 'a=1' }, ['set-cookie']],
      ] as const) {
        const ofHttp = protocol.record.proto === 'grpc' ? {} : { allowedClientHeadersOnSuccess: listed };
        const { asked, client } = await setUp(decision, { cacheMs: 60_000, ...ofHttp });
        for (let time = 0; time < 2; time += 1) await client.get('/v1/hotels');
        counts.push(asked.length);
      }
      assert.deepEqual(counts, [1, 2, 2]);
    });

    it('is asked at its next address when one is down', async () => {
      const [down, service] = [await servers.refusing(), await protocol.start(servers, () => allow)];
      const upstream = await startUpstream(servers);
      const origins = () => [down.origin, service.origin];
      const targets = { auth: { kind: 'remote' as const, origins, path: '' }, hotel: remote(upstream) };
      const { client } = await setUp(service, {}, { targets });
      for (let time = 0; time < 4; time += 1) await client.get('/v1/hotels').expect(200);
    });

    const failing: Readonly<Record<string, () => Promise<Served>>> = {
      'is down': servers.refusing,
      'does not respond': () => servers.tcp(() => {}),
      'closes the connection': () => servers.tcp((socket) => void socket.once('data', () => socket.end())),
      'responds with something else': () =>
        servers.tcp((socket) => void socket.once('data', () => socket.end('no\r\n'))),
      fails: () => protocol.start(servers, () => ({ kind: 'fail' })),
      'responds after the time-out': () => protocol.start(servers, () => new Promise(() => {})),
    };
    for (const [what, start] of Object.entries(failing))
      it(`rejects requests while it ${what}, or lets them pass without a user with failure_mode_allow`, async () => {
        const service = await start();
        const record = { timeoutMs: 150 };
        const closed = await setUp(service, record);
        await closed.client.get('/v1/hotels').expect(503, { code: 503, message: '503: Service Unavailable' });
        await (await setUp(service, { ...record, statusOnError: 403 })).client.get('/v1/hotels').expect(403);
        assert.equal(closed.upstream.reached.length, 0);
        assert.deepEqual(closed.edge.gateway.snapshot().auth, { allowed: 0, denied: 0, error: 1 });
        const open = await setUp(service, { ...record, failureModeAllow: true });
        await open.client.get('/v1/hotels').set('X-Travel-User', 'admin').expect(200);
        assert.equal(open.upstream.only().headers['x-travel-user'], undefined);
      });
  });
}
