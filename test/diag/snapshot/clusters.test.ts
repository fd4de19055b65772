/** The clusters in the diagnostics, and the routes that use them. */
import assert from 'node:assert/strict';
import type { RouteSnapshot } from '#gateway';
import { createClusters } from '#proxy';
import { readDiagnostics } from '../../../src/diag/snapshot/snapshot.ts';
import { breakersOf, specOf } from '../../support/clusters.ts';
import { hotelRoute, parts } from '../diagnostics-parts.ts';

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
      const addresses = health.map((one) => ({
        origin: 'http://10.0.0.1',
        health: one,
        activeRequests: 0,
        activeUpgrades: 0,
      }));
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
