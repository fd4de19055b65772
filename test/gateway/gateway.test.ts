/** A request's journey through the edge: in one order, each stage once, and no further than the first refusal. */
import assert from 'node:assert/strict';
import supertest from 'supertest';
import type { AuthAnswer } from '#auth';
import type { Mapping } from '#config';
import { createGateway, createGatewayCounts, type GatewayOptions } from '#gateway';
import { isolate, requestContext } from '#http';
import { createClusters } from '#proxy';
import type { Decision } from '#ratelimit';
import {
  authRecordOf,
  type EdgeOptions,
  labelled,
  limitRecordOf,
  mappingOf,
  remote,
  startEdge,
} from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { createSignal } from '../support/waiting.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

const labels = { gateway: labelled('x-travel-user', 'user') };

describe('the journey of a request', () => {
  const servers = testServers();

  interface Script {
    readonly auth?: AuthAnswer;
    readonly limit?: Decision['overallCode'];
  }

  /** Everybody who is asked writes a line. */
  async function setUp({
    auth = { outcome: 'allow', headers: { 'x-travel-user': 'demo' } },
    limit = 'OK',
  }: Script = {}) {
    const journey: string[] = [];
    const upstream = await startUpstream(servers, (res, { url, headers }) => {
      journey.push(`service ${url} by ${headers['x-travel-user']}`);
      res.end('ok');
    });
    const options: EdgeOptions = {
      mappings: [mappingOf({ labels })],
      authService: authRecordOf(),
      authPort({ url, headers }) {
        journey.push(`auth ${url} by ${headers['x-travel-user']}`);
        return auth;
      },
      rateLimitService: limitRecordOf(),
      limiter: {
        shouldRateLimit({ descriptors }) {
          journey.push(`limit ${descriptors.map(({ entries }) => entries[0]?.value)}`);
          return { overallCode: limit, statuses: [] };
        },
      },
      targets: { hotel: remote(upstream) },
    };
    const edge = await startEdge(servers, options);
    return { journey, edge, client: supertest(edge.origin) };
  }

  it('is: the auth service on the original path, the limiter with the user, the service on its own path', async () => {
    const { journey, client } = await setUp();
    await client.get('/v1/hotels/bookings/1?a=1').set('X-Travel-User', 'admin').expect(200);
    assert.deepEqual(journey, [
      'auth /v1/hotels/bookings/1?a=1 by undefined',
      'limit demo',
      'service /bookings/1?a=1 by demo',
    ]);
  });

  async function checkEnd(script: Script, path: string, status: number, expected: readonly string[]) {
    const { journey, client } = await setUp(script);
    const { body } = await client.get(path).expect(status);
    assert.equal(body.code, status);
    assert.deepEqual(journey, expected);
  }

  it('ends before anybody is asked when the path cannot be read in one way', () =>
    checkEnd({}, '/v1/hotels/%2e%2e/cars', 400, []));

  it('ends before anybody is asked when there is no such route', () => checkEnd({}, '/v1/hotelsx', 404, []));

  it('ends before the limiter is asked when the caller is nobody', () =>
    checkEnd({ auth: { outcome: 'deny', status: 401, headers: {} }, limit: 'OVER_LIMIT' }, '/v1/hotels', 401, [
      'auth /v1/hotels by undefined',
    ]));

  it('ends before the service when the limit is used up', () =>
    checkEnd({ limit: 'OVER_LIMIT' }, '/v1/hotels', 429, ['auth /v1/hotels by undefined', 'limit demo']));

  it('tells the log which mapping and which user it was', async () => {
    const seen: unknown[] = [];
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, {
      authService: authRecordOf(),
      authPort: () => ({ outcome: 'allow', headers: { 'x-travel-user': 'demo' } }),
      targets: { hotel: remote(upstream) },
      inside: [
        async (ctx, next) => {
          await next();
          const { mapping, user } = requestContext(ctx);
          seen.push({ mapping, user });
        },
      ],
    });
    await supertest(edge.origin).get('/v1/hotels').expect(200);
    assert.deepEqual(seen, [{ mapping: 'hotel', user: 'demo' }]);
  });
});

describe('the gateway', () => {
  const servers = testServers();
  const local = isolate(async (ctx) => {
    ctx.body = `${ctx.path} by ${ctx.get('x-travel-user')}`;
  });

  it('serves a module of this process as it would one across HTTP', async () => {
    const edge = await startEdge(servers, {
      services: { hotel: local },
      authService: authRecordOf(),
      authPort: () => ({ outcome: 'allow', headers: { 'x-travel-user': 'demo' } }),
    });
    const client = supertest(edge.origin);
    await client.get('/v1/hotels/x').set('X-Travel-User', 'admin').expect(200, '/x by demo');
  });

  it('serves its own routes, after the mappings', async () => {
    const internal = { name: 'api', prefix: '/v1', rewrite: '', authenticated: false };
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

  it('does not serve a route of its own that needs an auth service without one', async () => {
    const diag = { name: 'diag', prefix: '/gateway/v0/diag', rewrite: '', authenticated: true, run: local };
    const closed = await startEdge(servers, { mappings: [], internalRoutes: [diag] });
    await supertest(closed.origin).get('/gateway/v0/diag/').expect(404);
    const guarded = await startEdge(servers, {
      mappings: [],
      internalRoutes: [diag],
      authService: authRecordOf(),
      authPort: () => ({ outcome: 'deny', status: 401, headers: {} }),
    });
    await supertest(guarded.origin).get('/gateway/v0/diag/').expect(401);
  });

  it('tells of its routes, of whom the records name and how often each was asked', async () => {
    const moved = { host: undefined, path: { kind: 'prefix', value: '/v1/hotels' }, status: 308 } as const;
    const edge = await startEdge(servers, {
      services: { hotel: local },
      mappings: [mappingOf(), mappingOf({ name: 'moved', prefix: '/moved', redirect: moved })],
      internalRoutes: [{ name: 'own', prefix: '/own', rewrite: '', authenticated: false, run: local }],
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

  it('has nothing to tell of an auth or a rate-limit service that no record names', async () => {
    const edge = await startEdge(servers, { services: { hotel: local } });
    assert.equal(edge.gateway.snapshot().auth, undefined);
    assert.equal(edge.gateway.snapshot().ratelimit, undefined);
    await supertest(edge.origin).get('/v1/hotels').expect(200);
  });

  const exactly = (value: string) => ({ kind: 'exact', value }) as const;

  it('chooses by host, method, headers and query as well, and has nothing where none of them fits', async () => {
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
      targets: { hotel: remote(upstream) },
    });
    const check = async (line: string, headers: readonly string[], expected: string) => {
      const answer = await sendRaw(edge.port, rawRequest(line, headers).replace('Host: front.example\r\n', ''));
      assert.equal(/^HTTP\/1\.1 404/.test(answer) ? '404' : answer.slice(answer.lastIndexOf('\n') + 1), expected, line);
    };
    await check('GET /v1/hotels', ['Host: API.Example:8080'], 'host');
    await check('PUT /v1/hotels', ['Host: api.test'], 'method');
    await check('GET /v1/hotels', ['Host: api.test', 'X-Version: 2'], 'header');
    await check('GET /v1/hotels?beta', ['Host: api.test'], 'query');
    await check('GET /v1/hotels', ['Host: api.test', 'X-Forwarded-Host: api.example'], '404');
  });

  it('reads the host from a proxy that is trusted, and from no client', async () => {
    const byHost = (trustedProxies: readonly string[]) =>
      startEdge(servers, {
        mappings: [mappingOf({ host: exactly('api.example') })],
        services: { hotel: local },
        addresses: { trustedProxies, publicUrl: 'https://public.example' },
      });
    const get = ({ origin }: { origin: string }) =>
      supertest(origin).get('/v1/hotels').set('X-Forwarded-Host', 'api.example');
    await get(await byHost(['127.0.0.1'])).expect(200);
    await get(await byHost([])).expect(404);
  });

  it('tells the limiter of the client and the request line, as labels ask for it', async () => {
    const asked: unknown[] = [];
    const labels: Mapping['labels'] = {
      gateway: [
        {
          name: 'all',
          labels: [
            ...(['remote_address', 'method', 'path', 'destination_cluster'] as const).map((kind) => ({
              kind,
              name: kind,
            })),
            { kind: 'header', name: 'user', header: 'x-travel-user', omitIfNotPresent: true, default: '' },
          ],
        },
      ],
    };
    const edge = await startEdge(servers, {
      mappings: [mappingOf({ labels })],
      services: { hotel: local },
      addresses: { trustedProxies: ['127.0.0.1'] },
      authService: authRecordOf(),
      authPort: () => ({ outcome: 'allow', headers: { 'x-travel-user': 'demo' } }),
      rateLimitService: limitRecordOf(),
      limiter: {
        shouldRateLimit({ descriptors }) {
          asked.push(...descriptors.map(({ entries }) => entries.map(({ value }) => value)));
          return { overallCode: 'OK', statuses: [] };
        },
      },
    });
    const forwarded = { 'X-Forwarded-For': '10.0.0.1, 203.0.113.7' };
    await supertest(edge.origin).delete('/v1/hotels/x?y').set(forwarded).expect(200);
    assert.deepEqual(asked, [['203.0.113.7', 'DELETE', '/v1/hotels/x', 'hotel', 'demo']]);
  });

  it('copies requests to a shadow, whatever becomes of the copy, once they may pass', async () => {
    const upstream = await startUpstream(servers);
    const copied = createSignal();
    const shadow = await startUpstream(servers, (res) => {
      copied.give();
      res.writeHead(500).end();
    });
    const mappings = [mappingOf(), mappingOf({ name: 'next', service: 'next', shadow: true })];
    const targets = { hotel: remote(upstream), next: remote(shadow) };
    const open = await startEdge(servers, { mappings, targets });
    await supertest(open.origin).post('/v1/hotels/x?y').send('hello').expect(200, 'ok');
    await copied.given;
    for (const { only } of [upstream, shadow])
      assert.deepEqual([only().method, only().url, only().body], ['POST', '/x?y', 'hello']);
    const closed = await startEdge(servers, {
      mappings,
      targets,
      authService: authRecordOf(),
      authPort: () => ({ outcome: 'deny', status: 401, headers: {} }),
    });
    await supertest(closed.origin).get('/v1/hotels').expect(401);
    assert.equal(shadow.reached.length, 1);
  });

  it('gives back the clusters that it shares with others, also when it cannot be made', async () => {
    const clusters = createClusters();
    servers.later(clusters.close);
    const resolve = () => ({ kind: 'remote', origins: () => ['http://127.0.0.1:9'], path: '' }) as const;
    const authServices = [{ record: authRecordOf() }];
    const held = () => clusters.snapshot().map(({ service }) => service);
    const make = (mappings: readonly Mapping[]) =>
      createGateway({ mappings, authServices, services: {}, resolve, clusters });
    const [one, two] = [make([mappingOf()]), make([mappingOf()])];
    assert.deepEqual(held(), ['auth', 'hotel']);
    await one.close();
    assert.deepEqual(held(), ['auth', 'hotel']);
    await two.close();
    assert.deepEqual(held(), []);
    assert.throws(() => make([mappingOf(), mappingOf({ name: 'x', authService: 'nobody' })]), /"nobody"/);
    assert.deepEqual(held(), []);
  });

  it('counts on where the one before it stopped', async () => {
    const counts = createGatewayCounts();
    const options: EdgeOptions = {
      services: { hotel: local },
      authService: authRecordOf(),
      authPort: () => ({ outcome: 'allow', headers: {} }),
      counts,
    };
    for (const edge of [await startEdge(servers, options), await startEdge(servers, options)])
      await supertest(edge.origin).get('/v1/hotels').expect(200);
    assert.equal(counts.auth.allowed, 2);
  });

  for (const [what, failureModeAllow, status] of [
    ['passes', true, 200],
    ['is refused', false, 403],
  ] as const) {
    it(`tells when nobody judged a request that ${what}, since its route does not`, async () => {
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

  function checkRefused(what: string, options: Partial<GatewayOptions>, message: RegExp) {
    it(`does not start ${what}`, () => {
      const resolve = (name: string) => ({ kind: 'local', name }) as const;
      assert.throws(() => createGateway({ mappings: [], services: {}, resolve, ...options }), message);
    });
  }

  checkRefused('with a mapping to a module that is not there', { mappings: [mappingOf()] }, /no service "hotel"/);
  checkRefused(
    'open when its auth service is not there',
    { authServices: [{ record: authRecordOf() }] },
    /auth service "auth"/,
  );
  checkRefused('unlimited when its limiter is not there', { rateLimitService: limitRecordOf() }, /no limiter/);
});
