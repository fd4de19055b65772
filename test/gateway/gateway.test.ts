/** The gateway as a whole: its routes, its counts, and the resources that it shares with other gateways. */
import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import Koa, { type Context, type Middleware } from 'koa';
import supertest from 'supertest';
import type { AuthCheck } from '#auth';
import { configurationFrom, type Mapping } from '#config';
import { silentLogger } from '#foundation';
import {
  createGateway,
  createGatewayInTurns,
  createGatewayState,
  type Gateway,
  type GatewayOptions,
  type Handler,
  type Target,
} from '#gateway';
import { createProblemResponses, isolate, publicBase, requestContext } from '#http';
import { createClusters } from '#proxy';
import type { Limiter } from '#ratelimit';
import {
  authRecordOf,
  type EdgeOptions,
  gatewayOf,
  labelled,
  limitRecordOf,
  mappingOf,
  redirectOf,
  rejectAmbiguousPath,
  remote,
  startEdge,
} from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { bodyOf, rawRequest, sendRaw, statusOf } from '../support/wire/raw-client.ts';

describe('the gateway', () => {
  const servers = testServers();
  const local = isolate(async (ctx) => {
    ctx.body = `${ctx.path} by ${ctx.get('x-travel-user')}`;
  });

  it('tries built-in routes after mappings with the same prefix', async () => {
    const internal = { name: 'api', prefix: '/v1', forAdmins: false };
    const run = isolate(async (ctx) => {
      ctx.body = 'internal';
    });
    const edge = await startEdge(servers, {
      mappings: [mappingOf(), mappingOf({ name: 'mine', prefix: '/v2', rewrite: '' })],
      services: { hotel: local },
      internalRoutes: [
        { ...internal, run },
        { ...internal, prefix: '/v2', run },
      ],
    });
    const client = supertest(edge.origin);
    await client.get('/v1/messages').expect(200, 'internal');
    await client.get('/v1/hotels').expect(200, '/ by ');
    await client.get('/v2/messages').expect(200, '/v2/messages by ');
    const listed = edge.gateway.snapshot().routes.map(({ name, prefix }) => `${prefix} ${name}`);
    assert.deepEqual(listed, ['/v1/hotels hotel', '/v2 mine', '/v1 api', '/v2 api']);
  });

  it('calls a service in this process with its own path and base, and restores them, even after an error', async () => {
    const seen: unknown[] = [];
    const edge = await startEdge(servers, {
      inside: [(ctx, next) => next().finally(() => seen.push(ctx.url, requestContext(ctx).basePath))],
      services: {
        async hotel(ctx) {
          seen.push(ctx.url, publicBase(ctx).slice(edge.origin.length));
          if (ctx.path === '/broken') throw new Error('broken');
          ctx.body = 'ok';
        },
      },
    });
    for (const [sent, received] of [
      ['/v1/hotels/bookings/1?a=1&a=2', '/bookings/1?a=1&a=2'],
      ['/v1/hotels?a', '/?a'],
      ['/v1/hotels/broken', '/broken'],
    ] as const) {
      seen.length = 0;
      await fetch(edge.origin + sent);
      assert.deepEqual(seen, [received, '/v1/hotels', sent, '']);
    }
  });

  const prepared: Readonly<Record<string, object>> = {
    'a status and a body': { status: 500, body: 'the host' },
    'a type': { type: 'json' },
    'ctx.respond': { respond: false },
  };
  for (const [what, response] of Object.entries(prepared))
    it(`replaces ${what} that a host app has prepared, on every route`, async () => {
      const run = async (ctx: Context) => {
        ctx.body = { from: 'the gateway' };
      };
      const edge = await startEdge(servers, {
        host: [assigning(response)],
        upstream: await startUpstream(servers, (res) => res.setHeader('Content-Type', 'text/html').end('<p>')),
        internalRoutes: [{ name: 'own', prefix: '/own', forAdmins: false, run }],
      });
      const client = supertest(edge.origin);
      await client.get('/v1/hotels').expect(200, '<p>').expect('Content-Type', 'text/html');
      const { headers } = await client.head('/v1/hotels').expect(200).expect('Content-Type', 'text/html');
      assert.equal(headers['content-length'], undefined);
      await client.get('/own').expect(200, { from: 'the gateway' });
    });

  it('lists its routes, the services in its records, and the counts of their decisions', async () => {
    const moved = redirectOf({ path: { kind: 'prefix', value: '/v1/hotels' }, status: 308 });
    const edge = await startEdge(servers, {
      services: { hotel: local },
      mappings: [mappingOf(), mappingOf({ name: 'moved', prefix: '/moved', redirect: moved })],
      internalRoutes: [{ name: 'own', prefix: '/own', forAdmins: false, run: local }],
      authService: authRecordOf({ authService: 'auth:8082' }),
      rateLimitService: limitRecordOf(),
      limiter: { shouldRateLimit: () => assert.fail('asked') },
      targets: { 'auth:8082': { kind: 'remote', origins: () => ['http://127.0.0.1:8082'], path: '' } },
    });
    const { routes, services, auth, ratelimit } = edge.gateway.snapshot();
    assert.deepEqual(
      services.map(({ role, service, target }) => `${role}: ${service}, ${target()}`),
      [
        'Mapping hotel: hotel, in this process',
        'AuthService auth: auth:8082, http://127.0.0.1:8082',
        'RateLimitService ratelimit: ratelimit, in this process',
      ],
    );
    assert.deepEqual(routes.map(({ name }) => name).sort(), ['hotel', 'moved', 'own']);
    assert.deepEqual(routes.find(({ name }) => name === 'hotel')?.source, { file: 'test.yaml', line: 1 });
    assert.deepEqual(auth, { allowed: 0, denied: 0, error: 0 });
    assert.deepEqual(ratelimit, { ok: 0, over: 0, error: 0 });
  });

  it('can be created from many mappings in several turns of the event loop, so that requests can run in between', async () => {
    const mappings = Array.from({ length: 1000 }, (_, index) =>
      mappingOf({ name: `m${index}`, prefix: `/m${index}`, timeoutMs: 1 + (index % 2) }),
    );
    const resolve = () => ({ kind: 'local', name: 'hotel' }) as const;
    const none = { authServices: [], rateLimitServices: [], versions: [], addresses: [] };
    let turns = 0;
    let gateway: Gateway | undefined;
    const options = { configuration: { mappings, ...none }, services: { hotel: local }, resolve };
    void createGatewayInTurns(options).then((created) => {
      gateway = created;
    });
    for (; gateway === undefined; turns += 1) await nextTurn();
    const atOnce = createGateway(options);
    const names = (one: Gateway) => one.snapshot().routes.map(({ name }) => name);
    assert.deepEqual(names(gateway), names(atOnce));
    for (const one of [gateway, atOnce]) {
      const attributes = {
        method: 'GET',
        path: '/M7',
        search: '',
        host: '',
        headers: {},
        client: '',
        listener: 'http' as const,
      };
      const [route] = one.parts.table.routes;
      assert.throws(() => route && rejectAmbiguousPath(one, attributes, route), { slug: 'bad-path' });
    }
    // A hundred items in each turn: the routes, their groups, the readings of their paths, and the groups of those.
    assert.ok(turns >= 40, `${turns} turns`);
    await Promise.all([gateway.close(), atOnce.close()]);
  });

  it('releases what it shares with other gateways if it cannot be created from all mappings', async () => {
    const state = createGatewayState(createClusters({ logger: silentLogger }));
    servers.later(state.clusters.close);
    const mappings = [mappingOf({ name: 'a' }), mappingOf({ name: 'b', service: 'elsewhere' })];
    const none = { authServices: [], rateLimitServices: [], versions: [], addresses: [] };
    const options = {
      configuration: { mappings, ...none },
      services: {},
      state,
      resolve: (name: string): Target =>
        name === 'hotel' ? remote({ origin: 'http://127.0.0.1:9', port: 9 }) : { kind: 'local', name },
    };
    await assert.rejects(createGatewayInTurns(options), /there is no service "elsewhere" in this process/);
    assert.deepEqual(state.clusters.list(), []);
  });

  it('reports no counts for auth and rate-limit services without records', async () => {
    const edge = await startEdge(servers, { services: { hotel: local } });
    assert.equal(edge.gateway.snapshot().auth, undefined);
    assert.equal(edge.gateway.snapshot().ratelimit, undefined);
    await supertest(edge.origin).get('/v1/hotels').expect(200);
  });

  const exactly = (value: string) => ({ kind: 'exact', value }) as const;

  it('also matches host, method, headers and query, and responds with 404 when nothing matches', async () => {
    const upstream = await startUpstream(servers, (res, { headers }) => res.end(headers['x-mapping']));
    const marked = (name: string, fields: Partial<Mapping>) =>
      mappingOf({
        name,
        requestHeaders: { add: [{ name: 'x-mapping', value: name, append: false }], remove: [] },
        ...fields,
      });
    const edge = await startEdge(servers, {
      mappings: [
        marked('host', { host: { kind: 'suffix', value: '.example' } }),
        marked('method', { method: exactly('PUT') }),
        marked('header', { headers: [{ name: 'x-version', match: exactly('2') }] }),
        marked('query', { queryParameters: [{ name: 'beta', match: { kind: 'present' } }] }),
      ],
      upstream,
    });
    const check = async (line: string, headers: readonly string[], expected: string) => {
      const response = await sendRaw(edge.port, rawRequest(line, headers).replace('Host: front.example\r\n', ''));
      assert.equal(statusOf(response) === 404 ? '404' : bodyOf(response), expected, line);
    };
    await check('GET /v1/hotels', ['Host: API.Example:8080'], 'host');
    await check('PUT /v1/hotels', ['Host: api.test'], 'method');
    await check('GET /v1/hotels', ['Host: api.test', 'X-Version: 2'], 'header');
    await check('GET /v1/hotels?beta', ['Host: api.test'], 'query');
    await check('GET /v1/hotels', ['Host: api.test', 'X-Forwarded-Host: api.example'], '404');
  });

  it('trusts X-Forwarded-Host from a trusted proxy, but not from a client', async () => {
    for (const [trustedProxies, status] of [
      [['127.0.0.1'], 200],
      [[], 404],
    ] as const) {
      const edge = await startEdge(servers, {
        mappings: [mappingOf({ host: exactly('api.example') })],
        services: { hotel: local },
        addresses: { trustedProxies, publicUrl: 'https://public.example' },
      });
      await supertest(edge.origin).get('/v1/hotels').set('X-Forwarded-Host', 'api.example').expect(status);
    }
  });

  it('sends the client, the request line and headers to the limiter, as the labels define', async () => {
    const counted: unknown[] = [];
    const kinds = ['remote_address', 'method', 'path', 'destination_cluster'] as const;
    const [byUser] = labelled('x-travel-user', 'user');
    const all = [...kinds.map((kind) => ({ kind, name: kind })), ...(byUser?.labels ?? [])];
    const labels = { gateway: [{ name: 'all', labels: all }] };
    const edge = await startEdge(servers, {
      mappings: [mappingOf({ labels })],
      services: { hotel: local },
      addresses: { trustedProxies: ['127.0.0.1'] },
      authService: authRecordOf(),
      authPort: () => ({ outcome: 'allow', headers: { 'x-travel-user': 'demo' } }),
      rateLimitService: limitRecordOf(),
      limiter: {
        shouldRateLimit({ descriptors }) {
          counted.push(...descriptors.map(({ entries }) => entries.map(({ value }) => value)));
          return { overallCode: 'OK', statuses: [] };
        },
      },
    });
    const forwarded = { 'X-Forwarded-For': '10.0.0.1, 203.0.113.7' };
    await supertest(edge.origin).delete('/v1/hotels/x?y').set(forwarded).expect(200);
    assert.deepEqual(counted, [['203.0.113.7', 'DELETE', '/v1/hotels/x', 'hotel', 'demo']]);
  });

  it('releases the clusters that it shares with other gateways, even when its creation fails', async () => {
    const clusters = createClusters();
    servers.later(clusters.close);
    const resolve = () => ({ kind: 'remote', origins: () => ['http://127.0.0.1:9'], path: '' }) as const;
    const authServices = [{ record: authRecordOf() }];
    const state = createGatewayState(clusters);
    const acquired = () => clusters.snapshot().map(({ service }) => service);
    const create = (mappings: readonly Mapping[]) => gatewayOf({ mappings, authServices, resolve, state });
    const [one, two] = [create([mappingOf()]), create([mappingOf()])];
    assert.deepEqual(acquired(), ['auth', 'hotel']);
    await one.close();
    assert.deepEqual(acquired(), ['auth', 'hotel']);
    await two.close();
    assert.deepEqual(acquired(), []);
    assert.throws(() => create([mappingOf(), mappingOf({ name: 'x', authService: 'none' })]), /"none"/);
    assert.deepEqual(acquired(), []);
  });

  it('continues the counts of the previous gateway', async () => {
    const clusters = createClusters();
    servers.later(clusters.close);
    const state = createGatewayState(clusters);
    const options: EdgeOptions = {
      services: { hotel: local },
      authService: authRecordOf(),
      authPort: () => ({ outcome: 'allow', headers: {} }),
      state,
    };
    for (const edge of [await startEdge(servers, options), await startEdge(servers, options)])
      await supertest(edge.origin).get('/v1/hotels').expect(200);
    assert.equal(state.counts.auth.allowed, 2);
  });

  for (const [what, failureModeAllow, status] of [
    ['is forwarded', true, 200],
    ['is rejected', false, 403],
  ] as const) {
    it(`records when a service last returned no decision, for a request that ${what}`, async () => {
      const edge = await startEdge(servers, {
        services: { hotel: local },
        authService: authRecordOf({ failureModeAllow, statusOnError: 403 }),
        authPort: () => ({ outcome: 'error', reason: 'down' }),
        rateLimitService: limitRecordOf(),
        mappings: [mappingOf({ labels: { gateway: labelled('x-kind') } })],
        limiter: {
          shouldRateLimit() {
            throw new Error('down');
          },
        },
        clock: () => 1_234,
      });
      assert.deepEqual(edge.gateway.snapshot().lastUnanswered, { auth: undefined, ratelimit: undefined });
      await supertest(edge.origin).get('/v1/hotels').set('X-Kind', 'x').expect(status);
      const ratelimit = failureModeAllow ? 1_234 : undefined;
      assert.deepEqual(edge.gateway.snapshot().lastUnanswered, { auth: 1_234, ratelimit });
    });
  }

  for (const [what, options, message] of [
    ['with a mapping to a missing service in this process', { mappings: [mappingOf()] }, /no service "hotel"/],
    [
      'with a service that is a Koa app',
      { mappings: [mappingOf()], services: { hotel: new Koa() as unknown as Handler } },
      /the service "hotel" is not a function that accepts a Koa context/,
    ],
    ['without the auth service of a record', { authServices: [{ record: authRecordOf() }] }, /auth service "auth"/],
    [
      'with a shadow in this process',
      { mappings: [mappingOf({ shadow: true })], services: { hotel: local } },
      /^TypeError: Mapping hotel is a shadow, .*"hotel" runs in this process/,
    ],
    [
      'with gRPC in this process',
      { mappings: [mappingOf({ grpc: true })], services: { hotel: local } },
      /"hotel" runs in this process: remove it, or name a service by its address$/,
    ],
    ['without the limiter of a record', { rateLimitService: limitRecordOf() }, /no `limiter` was passed/],
    [
      'with an object that is not a limiter',
      { rateLimitService: limitRecordOf(), limiter: {} as Limiter },
      /no function `shouldRateLimit`/,
    ],
    [
      'with an object that is not an auth service',
      { authServices: [{ record: authRecordOf(), port: {} as AuthCheck }] },
      /port of the auth service "auth" is not a function/,
    ],
    ['without services', { mappings: [mappingOf()], services: undefined as never }, /no service "hotel"/],
  ] as const) {
    it(`cannot be created ${what}`, () => {
      assert.throws(() => gatewayOf({ mappings: [], ...options }), message);
    });
  }

  const records = {
    mappings: [mappingOf({ labels: { gateway: labelled('x-kind') } })],
    versions: [],
    addresses: [],
    authServices: [],
    rateLimitServices: [limitRecordOf()],
  };
  const parts = { services: { hotel: local }, resolve: (name: string) => ({ kind: 'local', name }) as const };
  const allowing: Limiter = { shouldRateLimit: () => ({ overallCode: 'OK', statuses: [] }) };
  const unguarded = { ...records, rateLimitServices: [] };

  for (const [what, options, message] of [
    [
      'from the lists of a configuration instead of the whole, which would ignore its rate-limit service',
      { ...records, ...parts },
      /^TypeError: `configuration` has no list `mappings`: pass the `configuration` that configurationFrom returns/,
    ],
    [
      'from a configuration without the list of auth services',
      { configuration: { ...records, authServices: undefined }, ...parts, limiter: allowing },
      /^TypeError: `configuration` has no list `authServices`/,
    ],
    [
      'with a limiter that no record uses',
      { configuration: unguarded, ...parts, limiter: allowing },
      /^TypeError: a `limiter` was passed, but the configuration has no RateLimitService/,
    ],
    [
      'with a check that no record uses',
      { configuration: unguarded, ...parts, authChecks: { auth: () => assert.fail('asked') } },
      /^TypeError: `authChecks` has a check "auth", but no AuthService has that name/,
    ],
    ['without a resolver', { configuration: unguarded, services: {} }, /^TypeError: `resolve` must be a function/],
  ] as const) {
    it(`cannot be created ${what}`, () => {
      assert.throws(() => createGateway(options as unknown as GatewayOptions), message);
    });
  }

  it('serves no part of a configuration with an error', async () => {
    const { configuration } = configurationFrom({
      records: [
        { apiVersion: 'gateway/v1', kind: 'Mapping', name: 'open', prefix: '/', service: 'hotel' },
        { apiVersion: 'gateway/v1', kind: 'Mapping', name: 'broken', prefix: '/v1', service: 'hotel', timeout_ms: -1 },
      ],
    });
    const gateway = createGateway({ configuration, ...parts });
    servers.later(gateway.close);
    const app = new Koa().use(createProblemResponses({ logger: silentLogger })).use(gateway.middleware);
    await supertest(app.callback()).get('/v2/hotels').expect(404);
    await supertest(app.callback()).get('/v1/hotels').expect(404);
  });
});

function assigning(values: object): Middleware {
  return function assign(ctx, next) {
    Object.assign(ctx, values);
    return next();
  };
}
