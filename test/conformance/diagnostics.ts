/** The gateway's diagnostics, which need credentials, and its two probes, which do not. */
import assert from 'node:assert/strict';
import { call, callAsDemo, type OpenDesk } from './desk.ts';

const path = '/gateway/v0/diag/';

interface RouteRow {
  readonly name: string;
  readonly prefix: string;
  readonly source?: string;
}

export function diagnosticsCases(desk: OpenDesk): void {
  describe('diagnostics', () => {
    it('are only for administrators, and have no subpaths', async () => {
      await call(desk, path).expect(401);
      await call(desk, path).auth('guest', 'guest').expect(403);
      await call(desk, path).auth('demo', 'wrong').expect(401);
      await callAsDemo(desk, `${path}x`).expect(404);
    });

    it('list routes with their source lines, services, limits and counters', async () => {
      const { body } = await callAsDemo(desk, path).expect(200).expect('Content-Type', 'application/json');
      const routes = body.routes as RouteRow[];
      const hotel = routes.findIndex(({ name }) => name === 'hotel');
      assert.equal(routes[hotel]?.prefix, '/v1/hotels');
      assert.match(routes[hotel]?.source ?? '', /config\/services\/hotel\.yaml:\d+$/);
      assert.ok(hotel < routes.findIndex(({ prefix }) => prefix === '/v1'));
      assert.deepEqual(body.errors, []);
      assert.ok(body.auth.allowed > 0 && body.auth.denied > 0);
      assert.match(body.version, /^\d+\.\d+\.\d+/);
      assert.ok(Number.isInteger(body.uptime_seconds));
      const roles = body.services.map(({ role }: { role: string }) => role);
      // If the API runs in another process, its versions are mappings too.
      const recorded = roles.filter((role: string) => !role.startsWith('Mapping api-'));
      assert.deepEqual(recorded, ['Mapping car', 'Mapping hotel', 'AuthService auth', 'RateLimitService ratelimit']);
      const [{ descriptor, limit }] = body.limits;
      assert.deepEqual([descriptor, limit], ['x-gateway-test-allow', '10 per minute']);
    });

    it('are available as a page with the address of its data, and show no secrets in any representation', async () => {
      const page = await callAsDemo(desk, path).set('Accept', 'text/html').expect(200);
      assert.equal(page.headers['content-type'], 'text/html; charset=utf-8');
      const [, address = ''] = /<noscript>.*href="(.*?)"/.exec(page.text) ?? [];
      const data = await callAsDemo(desk, path + address).expect(200);
      assert.ok(data.text.includes('/v1/hotels') && data.text.includes('hotel.yaml'));
      const others = ['application/json', 'application/yaml'].map((type) => callAsDemo(desk, path).set('Accept', type));
      for (const { text } of [page, data, ...(await Promise.all(others))])
        assert.doesNotMatch(text, /scrypt|password/i);
    });
  });

  it('probes need no credentials, and have no trailing slash', async () => {
    for (const status of ['alive', 'ready']) {
      await call(desk, `/gateway/v0/check_${status}`).expect(200, { status }).expect('Cache-Control', 'no-store');
      await call(desk, `/gateway/v0/check_${status}/`).expect(404);
    }
  });
}
