/** The snapshot of the gateway: every field, the bounds of lists, and the filter. */
import assert from 'node:assert/strict';
import { readDiagnostics, rowsMax } from '../../src/diag/snapshot.ts';
import { domain, limit, node, unlimited } from '../support/limits.ts';
import { hotelRoute, parts } from './diagnostics-parts.ts';
import { restingTraffic } from './diagnostics-sample.ts';

describe('readDiagnostics', () => {
  const place = { source: 'limits.yaml:1' };
  const unused = { hits: 0, over: 0, fullness: undefined };

  it('reads every field without side effects', () => {
    const before = JSON.stringify(readDiagnostics(parts));
    assert.deepEqual(JSON.parse(before), JSON.parse(JSON.stringify(readDiagnostics(parts))));
    assert.deepEqual(readDiagnostics(parts), {
      version: '1.2.3',
      uptime_seconds: 61,
      at: '2026-01-02T03:05:00.000Z',
      threads: { configured: 1, serving: 1, ended: [], ended_total: 0 },
      connections: { open: 9_125, max: 9_126, http2: 9_127, http2_requests: 9_128 },
      configuration: { generation: 7, hash: '0123456789ab', applied_at: '2026-01-02T03:04:05.000Z' },
      filter: '',
      offset: 0,
      rows_max: 1000,
      routes_total: 1,
      routes_matching: 1,
      unmatched: restingTraffic,
      unmatched_requests: [],
      certificates: [],
      certificates_total: 0,
      clusters: [],
      clusters_total: 0,
      failures: [],
      routes: [
        {
          name: 'hotel',
          prefix: '/v1/hotels',
          conditions: ['POST', 'host api.*'],
          rewrite: '/',
          service: 'hotel',
          target: 'in this process',
          authenticated: true,
          auth: 'auth',
          addresses: '',
          admins_only: false,
          labels: ['x-test', 'user + city'],
          limits: [
            { descriptor: 'user', limit: '10 per minute' },
            { descriptor: 'user › city=…', limit: 'unlimited' },
          ],
          limits_total: 2,
          timeout_ms: 3000,
          compressed: false,
          source: 'config/services/hotel.yaml:9',
          internal: false,
          cluster: undefined,
          refusal: undefined,
          fault: undefined,
          health: 'unknown',
          traffic: restingTraffic,
        },
      ],
      services: [{ role: 'Mapping hotel', service: 'hotel', target: 'http://hotel:80' }],
      services_total: 1,
      token_providers: [],
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
        { domain: 'gateway', descriptor: 'user', limit: '10 per minute', ...place, ...unused },
        { domain: 'gateway', descriptor: 'user › city=…', limit: 'unlimited', ...place, ...unused },
      ],
      limits_total: 2,
      refused: [
        {
          part: 'records',
          object: undefined,
          since: '2026-01-02T03:04:06.000Z',
          consequence: 'records and limits stay as they were',
        },
      ],
      refused_total: 1,
      kubernetes: undefined,
      errors: [
        {
          source: 'config/services/car.yaml:4',
          record: 'Mapping <car>',
          message: 'unknown key "prefx"',
          remedy: 'Write "prefix", or remove it.',
        },
      ],
      errors_total: 1,
      notices: [
        {
          source: 'config/old.yaml',
          record: undefined,
          message: '"old.yaml" is not read',
          remedy: 'Remove it.',
        },
      ],
      notices_total: 1,
      auth: { allowed: 3, denied: 2, error: 1, last_error_at: undefined },
      ratelimit: { ok: 6, over: 5, error: 4, last_error_at: '2026-01-02T03:04:30.000Z' },
    });
  });

  it('reads the state of the cluster that the records come from, and its refused objects', () => {
    const since = Date.UTC(2026, 0, 2, 3, 4, 7);
    const read = readDiagnostics({
      ...parts,
      configuration: {
        ...parts.configuration,
        refused: () => [
          { part: 'records', object: 'Mapping shop/orders', consequence: 'it stays', errors: [], sinceMs: since },
        ],
        kubernetes: () => ({
          namespace: 'edge',
          namespaces: [],
          resources: ['services'],
          isRead: true,
          answeredAtMs: since,
          deliveries: 1,
          readFailures: 2,
          unread: [{ resource: 'services', message: 'the API server does not respond', sinceMs: since }],
          objects: { accepted: 3, lastValid: 4, refused: 5 },
          unserved: undefined,
          writes: { statuses: { succeeded: 6, failed: 7 }, events: { succeeded: 8, failed: 9 }, waiting: 10 },
        }),
      },
    });
    assert.deepEqual(read.kubernetes, {
      namespace: 'edge',
      namespaces: [],
      resources: ['services'],
      read: true,
      answered_at: '2026-01-02T03:04:07.000Z',
      deliveries: 1,
      read_failures: 2,
      unread: [{ resource: 'services', since: '2026-01-02T03:04:07.000Z', message: 'the API server does not respond' }],
      objects: { accepted: 3, last_valid: 4, refused: 5 },
      writes: { succeeded: 14, failed: 16, waiting: 10 },
    });
    assert.deepEqual(read.refused, [
      { part: 'records', object: 'Mapping shop/orders', since: '2026-01-02T03:04:07.000Z', consequence: 'it stays' },
    ]);
  });

  it('omits the source of a built-in route, and the counts of services that do not exist', () => {
    const own = { ...hotelRoute, source: undefined, transport: { ...hotelRoute.transport, timeouts: undefined } };
    const none = { auth: undefined, ratelimit: undefined, domain: undefined };
    const gateway = () => ({ routes: [own], services: [], versions: [], ...none, lastUnanswered: none });
    const read = JSON.parse(JSON.stringify(readDiagnostics({ ...parts, gateway })));
    assert.ok(!('source' in read.routes[0]) && !('timeout_ms' in read.routes[0]));
    assert.ok(!('auth' in read) && !('ratelimit' in read));
  });

  it('says what protects a route: its auth service or none, whether only administrators pass, and the limits', () => {
    const limits = () => [
      domain('other', node('x-test', limit(1))),
      domain(
        'gateway',
        node('x-test', limit(7)),
        node('user', limit(10), node('city=Paris', limit(3)), node('city=Rome', limit(3)), node('role', limit(5))),
        node('city', limit(9)),
      ),
    ];
    const admins = { ...hotelRoute, internal: true, labels: [] };
    const open = { ...hotelRoute, auth: undefined, labels: [] };
    const gateway = () => ({ ...parts.gateway(), routes: [hotelRoute, admins, open] });
    const { routes } = readDiagnostics({ ...parts, gateway, limits });
    assert.deepEqual(
      routes.map((route) => [route.auth, route.admins_only, route.limits, route.limits_total]),
      [
        [
          'auth',
          false,
          [
            { descriptor: 'x-test', limit: '7 per minute' },
            { descriptor: 'user', limit: '10 per minute' },
            // Values may be secret, so limits that differ only in values are one.
            { descriptor: 'user › city=…', limit: '3 per minute' },
            { descriptor: 'city', limit: '9 per minute' },
          ],
          4,
        ],
        ['auth', true, [], 0],
        [undefined, false, [], 0],
      ],
    );
  });

  it('lists the first ten limits of a route, and counts all of them', () => {
    const descriptors = Array.from({ length: 30 }, (_, index) => node('x-test', limit(index + 1)));
    const [route] = readDiagnostics({ ...parts, limits: () => [domain('gateway', ...descriptors)] }).routes;
    assert.deepEqual([route?.limits.length, route?.limits_total], [10, 30]);
  });

  it('shows the later of a rate-limit call without response and a decision that could not be counted', () => {
    const check = (lastUncounted: number, expected: string) => {
      const { ratelimit } = readDiagnostics({ ...parts, lastUncountedAtMs: () => lastUncounted });
      assert.equal(ratelimit?.last_error_at, expected);
    };
    check(Date.UTC(2026, 0, 2, 3, 4, 29), '2026-01-02T03:04:30.000Z');
    check(Date.UTC(2026, 0, 2, 3, 4, 31), '2026-01-02T03:04:31.000Z');
  });

  it("shows a limit's algorithm and shadow mode unless they are the default", () => {
    const check = (more: Parameters<typeof limit>[2], expected: string) => {
      const limits = () => [domain('gateway', node('user', limit(10, 'minute', more)))];
      assert.equal(readDiagnostics({ ...parts, limits }).limits[0]?.limit, expected);
    };
    check({ unitMultiplier: 30 }, '10 per 30 minutes');
    check({ algorithm: 'sliding_window' }, '10 per minute (sliding window)');
    check({ algorithm: 'token_bucket', shadowMode: true }, '10 per minute (token bucket, shadow)');
  });

  it('shows how often a limit was hit and exceeded, and how full it is', () => {
    const usages = () => (domain: string, descriptor: string) =>
      domain === 'gateway' && descriptor === 'user' ? { hits: 7, over: 2, fullness: 0.5 } : undefined;
    const [counted, other] = readDiagnostics({ ...parts, usages }).limits;
    assert.deepEqual([counted?.hits, counted?.over, counted?.fullness], [7, 2, 0.5]);
    assert.deepEqual([other?.hits, other?.over, other?.fullness], [0, 0, undefined]);
  });

  it('lists the first thousand routes in order, and counts all of them', () => {
    const read = readDiagnostics({ ...parts, gateway: () => ({ ...parts.gateway(), ...manyRoutes(10_000) }) });
    assert.deepEqual([read.routes.length, read.routes_total, read.services.length], [rowsMax, 10_000, rowsMax]);
    assert.deepEqual([read.routes[0]?.name, read.routes.at(-1)?.name], ['m0', 'm999']);
    assert.ok(JSON.stringify(read).length < 1024 * 1024);
  });

  it('lists the first thousand limits, and counts all of them', () => {
    const descriptors = Array.from({ length: 5_000 }, (_, index) =>
      node(`user=u${index}`, [limit(5), limit(50, 'hour')]),
    );
    let lookups = 0;
    const usages = () => () => {
      lookups += 1;
      return undefined;
    };
    const read = readDiagnostics({ ...parts, usages, limits: () => [domain('a'), domain('b', ...descriptors)] });
    assert.deepEqual([read.limits.length, read.limits_total], [rowsMax, 10_000]);
    assert.equal(read.limits.at(-1)?.descriptor, 'user=…');
    assert.ok(lookups <= rowsMax + 1);
  });

  it('filters routes by name, prefix, service and target before the bound, ignoring case', () => {
    const gateway = () => ({ ...parts.gateway(), ...manyRoutes(10_000) });
    const read = (filter: string, offset = 0) => readDiagnostics({ ...parts, gateway }, { filter, offset });
    for (const filter of ['M9999', '/P9999', 's9999', '10.0.0.9999']) {
      const { routes, routes_matching, routes_total, services } = read(filter);
      assert.deepEqual([routes.map(({ name }) => name), routes_matching, routes_total], [['m9999'], 1, 10_000], filter);
      assert.deepEqual(services, [{ role: 'Mapping m9999', service: 'S9999', target: 'http://10.0.0.9999:80' }]);
    }
    const later = read('m9', 1110);
    assert.deepEqual([later.routes.map(({ name }) => name), later.routes_matching], [['m9999'], 1111]);
    assert.deepEqual(read('nowhere').routes, []);
  });

  it('hides the values of descriptors except generic_key, but looks up their usage by value', () => {
    const lookedUp: string[] = [];
    const usages = () => (_: string, path: string) => void lookedUp.push(path);
    const below = { ...node('token=pw-3', [limit(10)]), descriptors: [node('generic_key=gold', [unlimited])] };
    const { limits } = readDiagnostics({ ...parts, limits: () => [domain('gateway', below)], usages });
    assert.deepEqual(
      limits.map((row) => row.descriptor),
      ['token=…', 'token=… › generic_key=gold'],
    );
    assert.deepEqual(lookedUp, ['token=pw-3', 'token=pw-3 › generic_key=gold']);
  });
});

/** Creates mappings `m0`, `m1` and so on, each with a different service. */
function manyRoutes(count: number) {
  const numbers = Array.from({ length: count }, (_, index) => `${index}`);
  return {
    routes: numbers.map((number) => ({
      ...hotelRoute,
      name: `m${number}`,
      prefix: `/p${number}`,
      mapping: { ...hotelRoute.mapping, name: `m${number}`, service: `S${number}` },
      transport: { ...hotelRoute.transport, describe: () => `http://10.0.0.${number}:80` },
    })),
    services: numbers.map((number) => ({
      role: `Mapping m${number}`,
      service: `S${number}`,
      target: () => `http://10.0.0.${number}:80`,
    })),
  };
}
