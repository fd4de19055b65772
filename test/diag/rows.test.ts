/** The rows of the diagnostics: traffic and health of routes, clusters, and failed requests without credentials. */
import assert from 'node:assert/strict';
import type { FailedRequest, RouteSnapshot } from '#gateway';
import { createClusters } from '#proxy';
import { conceal } from '../../src/diag/rows.ts';
import { readDiagnostics } from '../../src/diag/snapshot.ts';
import { createTraffic } from '../../src/gateway/traffic/traffic.ts';
import { breakersOf, specOf } from '../support/clusters.ts';
import { hotelRoute, parts } from './diagnostics-parts.ts';

describe('the traffic in the diagnostics', () => {
  function setUp(startedAtMs = 0) {
    let nowMs = startedAtMs;
    const traffic = createTraffic({ stopwatch: () => nowMs });
    const counted = traffic.acquire('hotel').value;
    const gateway = () => ({ ...parts.gateway(), routes: [hotelRoute] });
    return {
      traffic,
      send(count: number, status = 200, refusedBy?: 'auth' | 'limit', durationMs = 4) {
        for (let sent = 0; sent < count; sent += 1) counted.count({ status, durationMs, refusedBy }, nowMs);
      },
      at(ms: number) {
        nowMs = ms;
      },
      route() {
        const [row] = readDiagnostics({ ...parts, gateway, traffic, uptimeMs: () => nowMs }).routes;
        return row ?? assert.fail('no route');
      },
    };
  }

  it('is counted since the start, and in slots for the last five minutes', () => {
    const { send, at, route } = setUp();
    send(6, 200);
    send(1, 403, 'auth');
    send(1, 429, 'limit');
    send(1, 503);
    send(1, 499);
    at(62_500);
    send(10);
    const { recent, ...total } = route().traffic;
    assert.deepEqual(total, {
      requests: 20,
      in_flight: 0,
      errors: 1,
      refused_by_address: 0,
      refused_by_auth: 1,
      refused_by_limit: 1,
      abandoned: 1,
      upstream: undefined,
    });
    const { requests = [], errors = [], ...figures } = recent ?? {};
    assert.deepEqual([requests.length, requests.at(-1), requests.at(-13), errors.at(-13)], [60, 10, 10, 1]);
    assert.deepEqual(figures, {
      slot_seconds: 5,
      // The average of eleven full slots and half of the last one.
      requests_per_second: 0.174,
      error_share: 0.05,
      refused_by_address: 0,
      refused_by_auth: 1,
      refused_by_limit: 1,
      p50_ms: 4,
      p99_ms: 4.98,
    });
  });

  it('has rates that are measured from the start of a new process, and none without requests', () => {
    const { send, at, route } = setUp();
    assert.equal(route().traffic.recent, undefined);
    send(10);
    at(4_000);
    assert.equal(route().traffic.recent?.requests_per_second, 2.5);
    at(400_000);
    assert.deepEqual([route().traffic.requests, route().traffic.recent, route().health], [10, undefined, 'unknown']);
  });

  it('makes a route degraded above 10 % errors, and failing above 30 %', () => {
    const check = (errors: number, of: number, expected: string) => {
      const { send, route } = setUp();
      send(errors, 500);
      send(of - errors, 404);
      assert.equal(route().health, expected, `${errors} of ${of}`);
    };
    check(0, 1, 'ok');
    check(1, 10, 'ok');
    check(2, 10, 'degraded');
    check(3, 10, 'degraded');
    check(31, 100, 'failing');
    check(1, 1, 'failing');
  });

  it('shows failed requests without the credentials in their texts', () => {
    const failure: FailedRequest = {
      atMs: Date.UTC(2026, 0, 2),
      requestId: 'r1',
      method: 'GET',
      path: '/to/http://ann:pw-1@host/',
      mapping: 'hotel',
      status: 503,
      problem: 'upstream-unavailable',
      reason: 'connect to postgres://ann:pw-2@db:5432 failed',
      upstream: 'http://10.0.0.1:9001',
    };
    const failures = () => [failure, { ...failure, problem: undefined, reason: undefined }];
    const { failures: rows } = readDiagnostics({ ...parts, traffic: { ...parts.traffic, failures } });
    const { atMs: _, requestId, ...unchanged } = failure;
    const row = {
      ...unchanged,
      at: '2026-01-02T00:00:00.000Z',
      request_id: requestId,
      path: '/to/http://…@host/',
      reason: 'connect to postgres://…@db:5432 failed',
    };
    assert.deepEqual(rows, [row, { ...row, problem: undefined, reason: undefined }]);
  });
});

type Cluster = NonNullable<RouteSnapshot['transport']['cluster']>;

const origins = ['http://10.0.0.1:9001', 'http://10.0.0.2:9001'] as const;

describe('the clusters in the diagnostics', () => {
  const routeTo = (name: string, cluster: Cluster | undefined): RouteSnapshot => ({
    ...hotelRoute,
    name,
    mapping: { ...hotelRoute.mapping, name, service: 'hotel' },
    transport: { ...hotelRoute.transport, cluster },
  });

  /** A cluster that two routes share, one for the same service with other settings, and one that no route uses. */
  function setUp() {
    const clusters = createClusters();
    const shared = clusters.acquire(specOf(origins)).cluster;
    const circuitBreakers = breakersOf({ maxRequests: 1 });
    const strict = clusters.acquire(specOf(origins, { circuitBreakers })).cluster;
    const auth = clusters.acquire(specOf(['http://10.0.0.3:80'], { service: 'auth:3000' }));
    const routes = [routeTo('a', shared), routeTo('b', strict), routeTo('c', shared), routeTo('here', undefined)];
    const gateway = () => ({ ...parts.gateway(), routes });
    const read = (filter = '') =>
      readDiagnostics({ ...parts, gateway, clusters: clusters.list }, { filter, offset: 0 });
    return { clusters, strict, auth, read };
  }

  const address = (origin: string, active_requests = 0) => ({ origin, health: 'unknown', active_requests });

  it('are listed once each, with the names of their routes, and routes name their cluster', () => {
    const { read } = setUp();
    const { clusters, clusters_total, routes } = read();
    const rest = { used: false, circuit: 'closed', active_requests: 0, active_upgrades: 0, overflows: 0 };
    const addresses = origins.map((origin) => address(origin));
    assert.deepEqual(clusters, [
      { name: 'hotel', service: 'hotel', addresses, ...rest, mappings: ['a', 'c'], mappings_total: 2 },
      { name: 'hotel #2', service: 'hotel', addresses, ...rest, mappings: ['b'], mappings_total: 1 },
      {
        name: 'auth:3000',
        service: 'auth:3000',
        addresses: [address('http://10.0.0.3:80')],
        ...rest,
        mappings: [],
        mappings_total: 0,
      },
    ]);
    assert.equal(clusters_total, 3);
    assert.deepEqual(
      routes.map(({ cluster }) => cluster),
      ['hotel', 'hotel #2', 'hotel', undefined],
    );
  });

  it('keep their names, and disappear when released', () => {
    const { clusters, auth, read } = setUp();
    const names = () => read().clusters.map(({ name }) => name);
    const withAuth = names();
    const other = clusters.acquire(specOf(origins, { circuitBreakers: breakersOf({ maxRequests: 2 }) }));
    assert.deepEqual(names(), ['hotel', 'hotel #2', 'auth:3000', 'hotel #3']);
    other.release();
    assert.deepEqual(names(), withAuth);
    auth.release();
    assert.deepEqual(names(), ['hotel', 'hotel #2']);
  });

  it('show active requests, and an open circuit when another request would be rejected', () => {
    const { strict, read } = setUp();
    const attempt = strict.attempt();
    const { active_requests, addresses, circuit, used } = read().clusters[1] ?? assert.fail();
    assert.deepEqual([active_requests, circuit, used], [1, 'open', true]);
    assert.deepEqual(addresses.map((one) => one.active_requests).sort(), [0, 1]);
    attempt.release();
    assert.equal(read().clusters[1]?.circuit, 'closed');
  });

  it('are selected by a filter that selects their routes or matches their names', () => {
    const { read } = setUp();
    const named = (filter: string) => read(filter).clusters.map(({ name }) => name);
    assert.deepEqual(named('a'), ['hotel', 'auth:3000']);
    assert.deepEqual(named('auth'), ['auth:3000']);
    assert.deepEqual(named('10.0.0.3'), ['auth:3000']);
    assert.deepEqual(named('nowhere'), []);
  });

  it('make a route failing when none of their addresses is usable', () => {
    const check = (health: readonly ('healthy' | 'unhealthy' | 'ejected' | 'unknown')[], expected: string) => {
      const idle = { origin: 'http://10.0.0.1', activeRequests: 0, activeUpgrades: 0 };
      const addresses = health.map((one) => ({ ...idle, health: one }));
      const { cluster } = createClusters().acquire(specOf(origins));
      const known = { snapshot: () => ({ ...cluster.snapshot(), addresses }) };
      const gateway = () => ({ ...parts.gateway(), routes: [routeTo('a', known)] });
      assert.equal(readDiagnostics({ ...parts, gateway }).routes[0]?.health, expected, health.join());
    };
    check(['unhealthy', 'ejected'], 'failing');
    check(['unhealthy', 'healthy'], 'unknown');
    check(['unknown'], 'unknown');
  });
});

function check(title: string, read: (text: string) => string, texts: readonly (readonly [string, string?])[]): void {
  it(title, () => {
    for (const [text, expected = text] of texts) assert.equal(read(text), expected);
  });
}

describe('conceal', () => {
  check('removes user and password from every URL, and keeps the rest', conceal, [
    ['no answer of postgres://ann:pw@db:5432/x', 'no answer of postgres://…@db:5432/x'],
    ['redis://:pw@one, redis://ann@two', 'redis://…@one, redis://…@two'],
    ['http://ann:p/w?x#y@host', 'http://…@host'],
    ['http://ann:p@w@host', 'http://…@host'],
    ['/to/http:/ann:pw@host', '/to/http:/…@host'],
    ['/to/http%3A%2F%2Fann%3Apw%40host/x', '/to/http%3A%2F%2F…@host/x'],
    ['/to/http:%2f%2fann:p%2Fw@host/x', '/to/http:%2f%2f…@host/x'],
    ['/to/http%3A//ann%40host/x', '/to/http%3A//…@host/x'],
    ['/at/10%3A30%2F20/ann%40host'],
    ['/at/10:30/ann@host'],
    ['connect ECONNREFUSED 127.0.0.1:80'],
    ['http://host:80/path, ann@example.com'],
  ]);

  check('removes a possible beginning of them at the end of a truncated text', conceal, [
    ['no answer of http://ann:p…', 'no answer of http://…@'],
    ['/to/http:%2F%2Fann…', '/to/http:%2F%2F…@'],
    ['http://host:80/path is long…'],
  ]);
});
