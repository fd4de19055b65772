/** Rate limits: what clients of the gateway see, and the rate-limit service over gRPC and over HTTP. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import type { Response, Test } from 'supertest';
import { bareProblem } from '../support/error-body.ts';
import { createReflectionClient, type ReflectionClient } from '../support/wire/reflection-client.ts';
import { call, callAsDemo, callAt, type OpenDesk } from './desk.ts';

export function rateLimitCases(desk: OpenDesk): void {
  const labelled = (value: string) => callAsDemo(desk, '/v1/hotels').set('X-Gateway-Test-Allow', value);

  describe('rate limits', () => {
    it('allow ten requests a minute for each value of the label, and respond 429 to the next', async () => {
      const value = randomUUID();
      const responses: Response[] = [];
      while (responses.length <= 20 && responses.at(-1)?.status !== 429) responses.push(await labelled(value));
      const refused = responses.pop() ?? assert.fail();
      // The count starts again if the minute ends during the test.
      assert.deepEqual(responses.map(remaining).slice(-10), [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
      const { detail, ...body } = refused.body;
      bareProblem('too-many-requests')({ status: refused.status, body });
      const { headers } = refused;
      const wait = headers['retry-after'];
      const limit = 'The limit "x-gateway-test-allow" of 10 requests in 60 seconds is exhausted.';
      assert.equal(detail, `${limit} Send the request again after ${wait} ${wait === '1' ? 'second' : 'seconds'}.`);
      assert.equal(headers['content-type'], 'application/json');
      assert.match(headers['retry-after'] ?? '', /^(?:[1-9]|[1-5]\d|60)$/);
      assert.match(headers['ratelimit-policy'] ?? '', /(?:^|, )"x-gateway-test-allow";q=10;w=60(?:,|$)/);
      assert.match(headers['ratelimit'] ?? '', /(?:^|, )"x-gateway-test-allow";r=0;t=\d+(?:,|$)/);
      await labelled(randomUUID()).expect(200);
    });

    it('are shown on the response to every counted request, including errors', async () => {
      const response = await callAsDemo(desk, '/v1/hotels/nowhere').set('x-gateway-test-allow', randomUUID());
      assert.deepEqual([response.status, remaining(response)], [404, 9]);
    });

    it('do not count requests that authentication rejects', async () => {
      const value = randomUUID();
      for (let sent = 0; sent < 12; sent += 1)
        await call(desk, '/v1/hotels').set('x-gateway-test-allow', value).expect(401);
      await labelled(value).expect(200);
    });

    it('count requests without the label by user', async () => {
      await callAsDemo(desk, '/v1/hotels').expect('RateLimit-Policy', '"x-travel-user";q=6000;w=60');
    });

    it('are not shown when the mapping has no labels', async () => {
      const { headers } = await callAsDemo(desk, '/v1/cars').set('x-gateway-test-allow', randomUUID()).expect(200);
      assert.deepEqual([headers['ratelimit'], headers['ratelimit-policy']], [undefined, undefined]);
    });
  });
}

function remaining({ headers }: Response): number | undefined {
  const found = /"x-gateway-test-allow";r=(\d+)/.exec(headers['ratelimit'] ?? '');
  return found === null ? undefined : Number(found[1]);
}

export const rateLimitServices = ['pb.lyft.ratelimit.RateLimitService', 'envoy.service.ratelimit.v3.RateLimitService'];
const reflection = ['grpc.reflection.v1.ServerReflection', 'grpc.reflection.v1alpha.ServerReflection'];

const labelOf = (value: string) => [{ entries: [{ key: 'x-gateway-test-allow', value }] }];

/** Tests the service with a client that has none of our files. */
export function rateLimitServiceCases(desk: OpenDesk): void {
  describe('the rate-limit service over gRPC', () => {
    let client: ReflectionClient;

    before(() => {
      client = createReflectionClient(desk().ratelimitUrl);
    });

    after(() => client.close());

    it('lists its services by reflection and reports them healthy', async () => {
      const services = [...rateLimitServices, 'grpc.health.v1.Health', ...reflection].sort();
      for (const version of ['v1', 'v1alpha'] as const) assert.deepEqual(await client.listServices(version), services);
      for (const service of ['', ...rateLimitServices])
        assert.deepEqual(await client.checkHealth(service), { status: 'SERVING' });
    });

    for (const service of rateLimitServices) {
      it(`decides as ${service}`, async () => {
        const decide = (message: object) => client.call(service, 'ShouldRateLimit', message);
        const codeFor = async (message: object) => Reflect.get(await decide(message), 'overallCode');
        assert.deepEqual(await decide({ domain: 'gateway' }), { overallCode: 'OK' });
        const unknown = [{ entries: [{ key: 'unknown', value: 'x' }] }];
        for (const domain of ['gateway', 'unknown'])
          assert.equal(await codeFor({ domain, descriptors: unknown }), 'OK');
        for (const message of [{}, { domain: '', descriptors: unknown }])
          await assert.rejects(decide(message), { code: status.INVALID_ARGUMENT });
        const codes: unknown[] = [];
        const [value, other] = [randomUUID(), randomUUID()];
        // The minute may end once during the test.
        for (let sent = 0; sent < 21; sent += 1)
          codes.push(await codeFor({ domain: 'gateway', descriptors: labelOf(value) }));
        assert.deepEqual(codes.slice(0, 10), Array(10).fill('OK'));
        assert.ok(codes.includes('OVER_LIMIT'));
        assert.equal(await codeFor({ domain: 'gateway', descriptors: labelOf(other) }), 'OK');
      });
    }
  });
}

/** Tests the same messages in their proto3 JSON form. */
export function rateLimitHttpCases(desk: OpenDesk): void {
  describe('the rate-limit service over HTTP', () => {
    const decide = (body: object): Test => callAt(desk, 'ratelimitHttpUrl', '/json', 'post').send(body);

    it('responds 200 or 429 with the code, and 400 to an empty domain', async () => {
      await decide({ domain: 'gateway' }).expect(200, { overallCode: 'OK' });
      await decide({}).expect(400, { code: 400, message: '400: Bad Request', detail: 'domain must not be empty' });
      const message = { domain: 'gateway', descriptors: labelOf(randomUUID()) };
      const { body } = await decide({ ...message, hits_addend: 11 });
      assert.equal(body.overallCode, 'OVER_LIMIT');
      const statuses: number[] = [];
      // The minute may end once during the test.
      for (const hitsAddend of ['10', 10, 10]) statuses.push((await decide({ ...message, hitsAddend })).status);
      assert.equal(statuses[0], 200);
      assert.ok(statuses.includes(429));
    });

    it('shares its counters with gRPC', async () => {
      const client = createReflectionClient(desk().ratelimitUrl);
      const message = { domain: 'gateway', descriptors: labelOf(randomUUID()), hitsAddend: 10 };
      await decide(message).expect(200);
      const codes: unknown[] = [];
      for (let sent = 0; sent < 2; sent += 1)
        codes.push(
          Reflect.get(await client.call(rateLimitServices[1] ?? '', 'ShouldRateLimit', message), 'overallCode'),
        );
      client.close();
      assert.ok(codes.includes('OVER_LIMIT'));
      await decide(message).expect(429);
    });

    it('shows its health, its limits and its metrics', async () => {
      const get = async (path: string) => (await callAt(desk, 'ratelimitHttpUrl', path).expect(200)).text;
      assert.equal(await get('/healthcheck'), 'OK');
      assert.match(await get('/rlconfig'), /^gateway\.x-gateway-test-allow: unit=MINUTE requests_per_unit=10,/m);
      assert.match(await get('/metrics'), /^frontdesk_ratelimit_hits_total\{domain="gateway",/m);
    });
  });
}
