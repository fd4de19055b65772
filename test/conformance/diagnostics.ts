/** Section 4: the gateway's diagnostics, behind the auth service, and the two probes that are open. */
import assert from 'node:assert/strict';
import { call, callAsDemo, type OpenDesk } from './desk.ts';

const path = '/gateway/v0/diag/';

interface RouteRow {
  readonly name: string;
  readonly prefix: string;
  readonly authenticated: boolean;
  readonly source?: string;
}

export function diagnosticsCases(desk: OpenDesk): void {
  describe('diagnostics', () => {
    it('are behind the auth service', async () => {
      await call(desk, path).expect(401);
      await call(desk, path).auth('demo', 'wrong').expect(401);
      await callAsDemo(desk, path).expect(200);
    });

    it('tell machines the routes with their place in the configuration, services, limits and counts', async () => {
      const { body } = await callAsDemo(desk, path).expect(200).expect('Content-Type', 'application/json');
      const routes = body.routes as RouteRow[];
      const hotel = routes.find(({ name }) => name === 'hotel');
      assert.equal(hotel?.prefix, '/v1/hotels');
      assert.match(hotel?.source ?? '', /config\/services\/hotel\.yaml:\d+$/);
      assert.ok(routes.findIndex(({ name }) => name === 'hotel') < routes.findIndex(({ prefix }) => prefix === '/v1'));
      assert.deepEqual(body.errors, []);
      assert.ok(body.auth.allowed > 0 && body.auth.denied > 0);
      assert.match(body.version, /^\d+\.\d+\.\d+/);
      assert.ok(Number.isInteger(body.uptime_seconds));
      const roles = body.services.map(({ role }: { role: string }) => role);
      assert.deepEqual(roles, ['Mapping car', 'Mapping hotel', 'AuthService auth', 'RateLimitService ratelimit']);
      const limits = body.limits.map(({ descriptor, limit }: { descriptor: string; limit: string }) => [
        descriptor,
        limit,
      ]);
      assert.deepEqual(limits[0], ['x-gateway-test-allow', '10 per minute']);
    });

    it('are a page for people', async () => {
      const { text } = await callAsDemo(desk, path)
        .set('Accept', 'text/html')
        .expect(200)
        .expect('Content-Type', 'text/html; charset=utf-8');
      assert.ok(text.includes('/v1/hotels'));
      assert.ok(text.includes('hotel.yaml'));
    });

    it('tell no secret', async () => {
      for (const accept of ['application/json', 'text/html', 'application/yaml']) {
        const { text } = await callAsDemo(desk, path).set('Accept', accept);
        assert.doesNotMatch(text, /scrypt|password/i);
      }
    });

    it('have nothing below them', async () => {
      await callAsDemo(desk, `${path}x`).expect(404);
    });
  });

  describe('probes', () => {
    const probes = [
      ['/gateway/v0/check_alive', 'alive'],
      ['/gateway/v0/check_ready', 'ready'],
    ] as const;

    for (const [probe, status] of probes) {
      it(`are open: ${probe}`, async () => {
        await call(desk, probe).expect(200, { status });
      });

      it(`are what they are, without a slash: ${probe}/ is 404`, async () => {
        await call(desk, `${probe}/`).expect(404);
      });
    }
  });
}
