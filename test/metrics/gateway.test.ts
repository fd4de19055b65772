/** The metrics of services and mappings: merged clusters, and a bounded number of series. */
import assert from 'node:assert/strict';
import { durationBoundsMs, type Traffic } from '#gateway';
import type { ClusterSnapshot } from '#proxy';
import { createTraffic } from '../../src/gateway/traffic/traffic.ts';
import { createClusterFamilies, createRouteFamilies } from '../../src/metrics/gateway.ts';
import { createMetricsOf, type Family } from '../../src/metrics/registry.ts';
import { among, type Series, seriesOf } from '../support/scrape.ts';

function cluster(service: string, more: Partial<ClusterSnapshot>): ClusterSnapshot {
  const idle = { activeRequests: 0, activeUpgrades: 0, activeRetries: 0, overflows: 0 };
  return { service, isUsed: false, addresses: [], circuit: 'closed', ...idle, ...more };
}

function address(origin: string, health: ClusterSnapshot['addresses'][number]['health']) {
  return { origin, health, activeRequests: 0, activeUpgrades: 0 };
}

const read = async (families: readonly Family[]): Promise<Series> =>
  seriesOf((await createMetricsOf(families).read()).text);

describe('the metrics of services', () => {
  const seriesWith = (...clusters: readonly ClusterSnapshot[]) => read(createClusterFamilies(() => clusters));

  it('merge the clusters of a service', async () => {
    const series = await seriesWith(
      cluster('a', {
        circuit: 'open',
        overflows: 2,
        activeUpgrades: 4,
        addresses: [address('x', 'healthy'), address('y', 'ejected')],
      }),
      cluster('a', {
        overflows: 3,
        activeUpgrades: 3,
        addresses: [address('x', 'unhealthy'), address('z', 'unknown')],
      }),
      cluster('b', { addresses: [address('x', 'unknown')] }),
    );
    assert.deepEqual(among(series, 'frontdesk_upstream_circuit_open'), { a: 1, b: 0 });
    assert.deepEqual(among(series, 'frontdesk_upstream_circuit_overflows_total'), { a: 5, b: 0 });
    assert.deepEqual(among(series, 'frontdesk_upstream_upgrades'), { a: 7, b: 0 });
    const healthy = { 'a x': 0, 'a y': 0, 'a z': 1, 'b x': 1 };
    assert.deepEqual(among(series, 'frontdesk_upstream_address_healthy'), healthy);
  });

  it('cover only used services if there are more than a thousand', async () => {
    const resting = Array.from({ length: 1_000 }, (_, number) => cluster(`service-${number}`, {}));
    assert.equal(Object.keys(await seriesWith(...resting)).length, 3_000);
    const series = await seriesWith(...resting, cluster('busy', { isUsed: true }));
    assert.deepEqual(among(series, 'frontdesk_upstream_circuit_open'), { busy: 0 });
  });
});

describe('the metrics of mappings', () => {
  async function mappingsIn(traffic: Traffic): Promise<string[]> {
    const series = await read(createRouteFamilies({ all: traffic.routes, durationBoundsMs }));
    return Object.keys(among(series, 'frontdesk_requests_in_flight'));
  }

  function trafficOf(routes: number): Traffic {
    const traffic = createTraffic();
    for (let number = 0; number < routes; number += 1) traffic.acquire(`route-${number}`);
    return traffic;
  }

  it('cover only mappings with requests if there are more than a thousand', async () => {
    const traffic = trafficOf(1_000);
    assert.deepEqual(await mappingsIn(traffic), []);
    traffic.of('route-7')?.count({ status: 200, durationMs: 1, refusedBy: undefined }, 0);
    const busy = traffic.of('route-8');
    if (busy) busy.inFlight = 1;
    assert.deepEqual(await mappingsIn(traffic), ['route-7', 'route-8']);
  });
});
