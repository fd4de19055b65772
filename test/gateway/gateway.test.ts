/** A request's journey through the edge: in one order, each stage once, and no further than the first refusal. */
import assert from 'node:assert/strict';
import supertest from 'supertest';
import type { AuthAnswer } from '#auth';
import { createGateway, type GatewayOptions } from '#gateway';
import { exchangeOf, isolate } from '#http';
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
          const { mapping, user } = exchangeOf(ctx);
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
    assert.deepEqual(listed, ['/v1/hotels hotel', '/v1 api', '/v2 mine']);
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
    const edge = await startEdge(servers, {
      services: { hotel: local },
      authService: authRecordOf({ authService: 'auth:8082' }),
      rateLimitService: limitRecordOf(),
      limiter: { shouldRateLimit: () => assert.fail('asked') },
      targets: { 'auth:8082': { kind: 'remote', origin: () => 'http://127.0.0.1:8082', path: '' } },
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
    assert.deepEqual(routes[0]?.source, { file: 'test.yaml', line: 1 });
    assert.deepEqual(auth, { allowed: 0, denied: 0, error: 0 });
    assert.deepEqual(ratelimit, { ok: 0, over: 0, error: 0 });
  });

  it('has nothing to tell of an auth or a rate-limit service that no record names', async () => {
    const edge = await startEdge(servers, { services: { hotel: local } });
    assert.equal(edge.gateway.snapshot().auth, undefined);
    assert.equal(edge.gateway.snapshot().ratelimit, undefined);
    await supertest(edge.origin).get('/v1/hotels').expect(200);
  });

  function checkRefused(what: string, options: Partial<GatewayOptions>, message: RegExp) {
    it(`does not start ${what}`, () => {
      const resolve = (name: string) => ({ kind: 'local', name }) as const;
      assert.throws(() => createGateway({ mappings: [], services: {}, resolve, ...options }), message);
    });
  }

  checkRefused('with a mapping to a module that is not there', { mappings: [mappingOf()] }, /no service "hotel"/);
  checkRefused('open when its auth service is not there', { authService: authRecordOf() }, /auth service "auth"/);
  checkRefused('unlimited when its limiter is not there', { rateLimitService: limitRecordOf() }, /no limiter/);
});
