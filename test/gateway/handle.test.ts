/** The stages of the gateway: they run in order, and the first one that rejects the request is the last. */
import assert from 'node:assert/strict';
import { request } from 'node:http';
import supertest from 'supertest';
import type { AuthDecision } from '#auth';
import type { LabelGroup } from '#config';
import { requestContext } from '#http';
import type { Decision } from '#ratelimit';
import { authRecordOf, labelled, limitRecordOf, mappingOf, remote, startEdge } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { createDeferred } from '../support/waiting.ts';

const byUser = labelled('x-travel-user', 'user');
const byAddress: LabelGroup = { name: 'address', labels: [{ kind: 'remote_address', name: 'from' }] };

interface Script {
  readonly auth?: AuthDecision;
  /** Decides about each label. */
  readonly limit?: (label: string) => Decision['overallCode'];
}

const denied: AuthDecision = { outcome: 'deny', status: 401, headers: {} };

describe('the stages of a request', () => {
  const servers = testServers();

  /** `asked` has a line for each call to a service. */
  async function setUp({ auth, limit = () => 'OK' }: Script = {}) {
    const asked: string[] = [];
    const upstream = await startUpstream(servers, (res, { url, headers }) => {
      asked.push(`service ${url} by ${headers['x-travel-user']}`);
      res.end('ok');
    });
    const copied = createDeferred();
    const shadow = await startUpstream(servers, (res) => {
      copied.resolve();
      res.writeHead(500).end();
    });
    const edge = await startEdge(servers, {
      mappings: [
        mappingOf({ labels: { gateway: [...byUser, byAddress] } }),
        mappingOf({ name: 'next', service: 'next', shadow: true }),
      ],
      authService: authRecordOf(),
      authPort({ url, headers }) {
        asked.push(`auth ${url} by ${headers['x-travel-user']}`);
        return auth ?? { outcome: 'allow', headers: { 'x-travel-user': 'demo', 'x-other': 'theirs' } };
      },
      rateLimitService: limitRecordOf(),
      limiter: {
        shouldRateLimit({ descriptors }) {
          const [entry] = descriptors.flatMap(({ entries }) => entries);
          asked.push(`limit ${entry?.key}=${entry?.value}`);
          return { overallCode: limit(entry?.key ?? ''), statuses: [] };
        },
      },
      targets: { hotel: remote(upstream), next: remote(shadow) },
    });
    return { asked, edge, upstream, shadow, copied, client: supertest(edge.origin) };
  }

  it('run in order: limits by address, authentication, other limits, the shadow, and the service', async () => {
    const { asked, client, upstream, shadow, copied } = await setUp();
    await client.post('/v1/hotels/bookings/1?a=1').set('X-Travel-User', 'admin').send('hello').expect(200, 'ok');
    assert.deepEqual(asked, [
      'limit from=127.0.0.1',
      'auth /v1/hotels/bookings/1?a=1 by undefined',
      'limit user=demo',
      'service /bookings/1?a=1 by demo',
    ]);
    await copied.promise;
    for (const { only } of [upstream, shadow])
      assert.deepEqual([only().method, only().url, only().body], ['POST', '/bookings/1?a=1', 'hello']);
    assert.equal(upstream.only().headers['x-other'], undefined, 'no identity header');
  });

  const overFor = (label: string) => (one: string) => (one === label ? 'OVER_LIMIT' : 'OK');
  const address = 'limit from=127.0.0.1';
  const auth = 'auth /v1/hotels by undefined';
  for (const [what, script, path, status, expected] of [
    ['an ambiguous path', {}, '/v1/hotels/%2e%2e/cars', 400, []],
    ['a path without a route', {}, '/v1/hotelsx', 404, []],
    ['an exhausted limit by address', { limit: overFor('from') }, '/v1/hotels', 429, [address]],
    ['a denial by the auth service', { auth: denied, limit: overFor('user') }, '/v1/hotels', 401, [address, auth]],
    ['another exhausted limit', { limit: overFor('user') }, '/v1/hotels', 429, [address, auth, 'limit user=demo']],
  ] as const) {
    it(`end with ${what}, before any further service is called`, async () => {
      const { asked, client, shadow } = await setUp(script);
      const { body } = await client.get(path).expect(status);
      assert.equal(body.code, status);
      assert.deepEqual([asked, shadow.reached.length], [expected, 0]);
    });
  }

  it('count requests by Authorization before remove_authorization removes it', async () => {
    const counted: unknown[] = [];
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, {
      mappings: [mappingOf({ labels: { gateway: labelled('authorization') } })],
      authService: authRecordOf({ removeAuthorization: true }),
      authPort: () => ({ outcome: 'allow', headers: {} }),
      rateLimitService: limitRecordOf(),
      limiter: {
        shouldRateLimit({ descriptors }) {
          counted.push(descriptors.map(({ entries }) => entries));
          return { overallCode: 'OK', statuses: [] };
        },
      },
      upstream,
    });
    await supertest(edge.origin).get('/v1/hotels').set('Authorization', 'Bearer of-ann').expect(200);
    assert.deepEqual(counted, [[[{ key: 'authorization', value: 'Bearer of-ann' }]]]);
    assert.equal(upstream.only().headers.authorization, undefined);
  });

  it('end if the client disconnects while another process decides, and copy nothing to the shadow', async () => {
    const asked = createDeferred();
    const decided = createDeferred();
    const edge = await startEdge(servers, {
      mappings: [
        mappingOf({ labels: { gateway: [byAddress] } }),
        mappingOf({ name: 'next', service: 'next', shadow: true }),
      ],
      rateLimitService: limitRecordOf(),
      limiter: {
        async shouldRateLimit() {
          asked.resolve();
          await decided.promise;
          return { overallCode: 'OK', statuses: [] };
        },
      },
      targets: { hotel: remote(await startUpstream(servers)), next: remote(await startUpstream(servers)) },
      inside: [
        async ({ res }, next) => {
          res.once('close', decided.resolve);
          await next();
          ended.resolve();
        },
      ],
    });
    const ended = createDeferred();
    const leaving = request(`${edge.origin}/v1/hotels`, { method: 'POST', headers: { 'Content-Length': 10 } });
    leaving.on('error', () => {}).write('half');
    await asked.promise;
    leaving.destroy();
    await ended.promise;
    const inFlight = edge.gateway
      .snapshot()
      .routes.map(({ name, transport }) => [name, transport.cluster?.snapshot().activeRequests]);
    assert.deepEqual(inFlight, [
      ['hotel', 0],
      ['next', 0],
    ]);
  });

  it('record the mapping and the user for the access log', async () => {
    const seen: unknown[] = [];
    const edge = await startEdge(servers, {
      authService: authRecordOf(),
      authPort: () => ({ outcome: 'allow', headers: { 'x-travel-user': 'demo' } }),
      services: { hotel: async () => {} },
      inside: [
        async (ctx, next) => {
          await next();
          const { mapping, user } = requestContext(ctx);
          seen.push({ mapping, user });
        },
      ],
    });
    await supertest(edge.origin).get('/v1/hotels');
    assert.deepEqual(seen, [{ mapping: 'hotel', user: 'demo' }]);
  });
});
