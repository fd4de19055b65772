/** What the gateway believes, as data for machines. */
import assert from 'node:assert/strict';
import { readDiagnostics } from '../../src/diag/snapshot.ts';
import { hotelRoute, parts } from './diagnostics-parts.ts';

describe('readDiagnostics', () => {
  it('tells everything that the gateway, the limits and the configuration hand in', () => {
    assert.deepEqual(readDiagnostics(parts), {
      version: '1.2.3',
      uptime_seconds: 61,
      configuration: { generation: 7, hash: '0123456789ab', applied_at: '2026-01-02T03:04:05.000Z' },
      routes: [
        {
          name: 'hotel',
          prefix: '/v1/hotels',
          conditions: ['POST', 'host api.*'],
          rewrite: '/',
          service: 'hotel',
          target: 'in this process',
          authenticated: true,
          labels: ['x-test', 'user + city'],
          timeout_ms: 3000,
          source: 'config/services/hotel.yaml:9',
        },
      ],
      services: [{ role: 'Mapping hotel', service: 'hotel', target: 'http://hotel:80' }],
      versions: [
        {
          name: 'first',
          prefix: '/v1',
          deprecation: '2026-06-30T00:00:00.000Z',
          sunset: undefined,
          successor: '/v2/',
          source: 'config/services/versions.yaml:1',
        },
      ],
      limits: [
        { domain: 'gateway', descriptor: 'user', limit: '10 per minute', source: 'config/ratelimit/x.yaml:3' },
        { domain: 'gateway', descriptor: 'user › city=Paris', limit: 'unlimited', source: 'config/ratelimit/x.yaml:3' },
      ],
      errors: [
        {
          source: 'config/services/car.yaml:4',
          record: 'Mapping <car>',
          message: 'unknown key "prefx"',
          remedy: 'Write "prefix", or remove it.',
        },
      ],
      notices: [
        {
          source: 'config/services/old.yaml:2',
          record: 'Mapping old',
          message: 'grpc is not supported',
          remedy: 'Remove it.',
        },
      ],
      auth: { allowed: 3, denied: 2, error: 1 },
      ratelimit: { ok: 6, over: 5, error: 4 },
    });
  });

  it('keeps the order of the routes, which is that in which they are tried', () => {
    const routes = ['/x/y', '/x', '/'].map((prefix) => ({ ...hotelRoute, prefix }));
    const read = readDiagnostics({ ...parts, gateway: () => ({ ...parts.gateway(), routes }) });
    assert.deepEqual(
      read.routes.map(({ prefix }) => prefix),
      ['/x/y', '/x', '/'],
    );
  });

  it('leaves out what there is not: the place of a route without a record, counts without a service', () => {
    const own = { ...hotelRoute, source: undefined, timeoutMs: undefined };
    const gateway = () => ({ routes: [own], services: [], versions: [], auth: undefined, ratelimit: undefined });
    const told = JSON.parse(JSON.stringify(readDiagnostics({ ...parts, gateway })));
    assert.ok(!('source' in told.routes[0]) && !('timeout_ms' in told.routes[0]));
    assert.ok(!('auth' in told) && !('ratelimit' in told));
  });

  it('changes nothing by looking', () => {
    const once = JSON.stringify(readDiagnostics(parts));
    assert.equal(JSON.stringify(readDiagnostics(parts)), once);
  });

  it('says how a limit counts when that is not the usual way', () => {
    const [domain] = parts.limits();
    const [descriptor] = domain?.descriptors ?? [];
    const [plain] = descriptor?.limits ?? [];
    assert.ok(domain && descriptor && plain);
    const check = (more: Partial<typeof plain>, expected: string) => {
      const descriptors = [{ ...descriptor, limits: [{ ...plain, ...more }], descriptors: [] }];
      assert.equal(
        readDiagnostics({ ...parts, limits: () => [{ ...domain, descriptors }] }).limits[0]?.limit,
        expected,
      );
    };
    check({ unitMultiplier: 30 }, '10 per 30 minutes');
    check({ algorithm: 'sliding_window' }, '10 per minute (sliding window)');
    check({ algorithm: 'token_bucket', shadowMode: true }, '10 per minute (token bucket, shadow)');
  });
});
