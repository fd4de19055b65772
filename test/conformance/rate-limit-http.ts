/** The rate-limit service over HTTP: the same counters as over gRPC, in the proto3 JSON rendering. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import request, { type Test } from 'supertest';
import { createStranger } from '../support/grpc-stranger.ts';
import type { OpenDesk } from './desk.ts';

export function rateLimitHttpCases(desk: OpenDesk): void {
  describe('the rate-limit service over HTTP', () => {
    const descriptors = (value: string) => [{ entries: [{ key: 'x-gateway-test-allow', value }] }];
    const decide = (body: object): Test => request(desk().ratelimitHttpUrl).post('/json').send(body);

    it('answers OK to a request with nothing but a domain', async () => {
      await decide({ domain: 'gateway' }).expect(200, { overallCode: 'OK' });
    });

    it('answers 400 to an empty domain', async () => {
      const { body } = await decide({}).expect(400);
      assert.deepEqual(body, { code: 400, message: '400: Bad Request', detail: 'domain must not be empty' });
    });

    it('answers 429 and OVER_LIMIT once the ten of a minute are used up', async () => {
      const value = randomUUID();
      const { body } = await decide({ domain: 'gateway', descriptors: descriptors(value), hits_addend: 11 });
      assert.equal(body.overallCode, 'OVER_LIMIT');
      const statuses: number[] = [];
      // The minute may turn once on the way.
      for (const hitsAddend of ['10', 10, 10])
        statuses.push((await decide({ domain: 'gateway', descriptors: descriptors(value), hitsAddend })).status);
      assert.equal(statuses[0], 200);
      assert.ok(statuses.includes(429));
    });

    it('counts together with gRPC', async () => {
      const stranger = createStranger(desk().ratelimitUrl);
      const service = 'envoy.service.ratelimit.v3.RateLimitService';
      const message = { domain: 'gateway', descriptors: descriptors(randomUUID()), hitsAddend: 10 };
      await decide(message).expect(200);
      const codes: unknown[] = [];
      for (let sent = 0; sent < 2; sent += 1) {
        const answer = await stranger.call(service, 'ShouldRateLimit', message);
        codes.push('overallCode' in answer && answer.overallCode);
      }
      stranger.close();
      assert.ok(codes.includes('OVER_LIMIT'));
      await decide(message).expect(429);
    });

    it('shows its health, its limits and its metrics', async () => {
      const get = (path: string) => request(desk().ratelimitHttpUrl).get(path).expect(200);
      assert.equal((await get('/healthcheck')).text, 'OK');
      assert.match((await get('/rlconfig')).text, /^gateway\.x-gateway-test-allow: unit=MINUTE requests_per_unit=10,/m);
      assert.match((await get('/metrics')).text, /^frontdesk_ratelimit_hits_total\{domain="gateway",/m);
    });
  });
}
