/** Section 4: the rate-limit service on its own port, over gRPC, as a client finds it that has never seen our files. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { createStranger, type Stranger } from '../support/grpc-stranger.ts';
import type { OpenDesk } from './desk.ts';

const rateLimitServices = ['pb.lyft.ratelimit.RateLimitService', 'envoy.service.ratelimit.v3.RateLimitService'];

const services = [
  ...rateLimitServices,
  'grpc.health.v1.Health',
  'grpc.reflection.v1.ServerReflection',
  'grpc.reflection.v1alpha.ServerReflection',
];

export function rateLimitServiceCases(desk: OpenDesk): void {
  describe('the rate-limit service', () => {
    let stranger: Stranger;

    before(() => {
      stranger = createStranger(desk().ratelimitUrl);
    });

    after(() => stranger.close());

    for (const version of ['v1', 'v1alpha'] as const) {
      it(`lists its services by reflection ${version}`, async () => {
        assert.deepEqual(await stranger.listServices(version), [...services].sort());
      });
    }

    for (const service of ['', ...rateLimitServices]) {
      it(`is healthy: ${service || 'as a whole'}`, async () => {
        assert.deepEqual(await stranger.checkHealth(service), { status: 'SERVING' });
      });
    }

    for (const service of rateLimitServices) {
      const decide = (request: object) => stranger.call(service, 'ShouldRateLimit', request);
      const descriptors = (key: string, value: string) => [{ entries: [{ key, value }] }];

      describe(service, () => {
        it('answers OK to a request with nothing but a domain', async () => {
          assert.deepEqual(await decide({ domain: 'gateway' }), { overallCode: 'OK' });
        });

        it('answers OK to a domain and to a label that it does not know', async () => {
          for (const domain of ['gateway', 'unknown']) {
            const answer = await decide({ domain, descriptors: descriptors('unknown', 'x') });
            assert.equal('overallCode' in answer && answer.overallCode, 'OK');
          }
        });

        it('answers INVALID_ARGUMENT to an empty domain', async () => {
          const refused = { code: status.INVALID_ARGUMENT };
          await assert.rejects(decide({}), refused);
          await assert.rejects(decide({ domain: '', descriptors: descriptors('a', 'b') }), refused);
        });

        it('answers OVER_LIMIT once the ten of a minute are used up, and counts each value for itself', async () => {
          const value = randomUUID();
          const codes: unknown[] = [];
          // The minute may turn once on the way.
          for (let sent = 0; sent < 21; sent += 1) {
            const answer = await decide({ domain: 'gateway', descriptors: descriptors('x-gateway-test-allow', value) });
            codes.push('overallCode' in answer && answer.overallCode);
          }
          assert.deepEqual(codes.slice(0, 10), Array(10).fill('OK'));
          assert.ok(codes.includes('OVER_LIMIT'));
          const other = await decide({
            domain: 'gateway',
            descriptors: descriptors('x-gateway-test-allow', randomUUID()),
          });
          assert.equal('overallCode' in other && other.overallCode, 'OK');
        });
      });
    }
  });
}
