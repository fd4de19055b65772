/** What is told of services: one series each, however many clusters they have, and of very many those that were asked. */
import assert from 'node:assert/strict';
import type { ClusterSnapshot } from '#proxy';
import { createClusterFamilies } from '../../src/metrics/cluster-families.ts';
import { formatFamilies } from '../../src/metrics/exposition.ts';
import { among, type Series, seriesOf } from '../support/scrape.ts';

function cluster(service: string, more: Partial<ClusterSnapshot>): ClusterSnapshot {
  return {
    ...{ service, isUsed: false, addresses: [], circuit: 'closed', activeRequests: 0, activeRetries: 0, overflows: 0 },
    ...more,
  };
}

function address(origin: string, health: ClusterSnapshot['addresses'][number]['health']) {
  return { origin, health, activeRequests: 0 };
}

describe('the metrics of services', () => {
  const tell = async (...clusters: readonly ClusterSnapshot[]): Promise<Series> =>
    seriesOf(await formatFamilies(createClusterFamilies({ all: () => clusters })));

  it('take the clusters of one service together', async () => {
    const series = await tell(
      cluster('a', { circuit: 'open', overflows: 2, addresses: [address('x', 'healthy'), address('y', 'ejected')] }),
      cluster('a', { overflows: 3, addresses: [address('x', 'unhealthy'), address('z', 'unknown')] }),
      cluster('b', { addresses: [address('x', 'unknown')] }),
    );
    assert.deepEqual(among(series, 'frontdesk_upstream_circuit_open'), { a: 1, b: 0 });
    assert.deepEqual(among(series, 'frontdesk_upstream_circuit_overflows_total'), { a: 5, b: 0 });
    const healthy = { 'a x': 0, 'a y': 0, 'a z': 1, 'b x': 1 };
    assert.deepEqual(among(series, 'frontdesk_upstream_address_healthy'), healthy);
  });

  it('are those of services that were asked for something where there are more than a thousand', async () => {
    const resting = Array.from({ length: 1_000 }, (_, number) => cluster(`service-${number}`, {}));
    assert.equal(Object.keys(await tell(...resting)).length, 2_000);
    const series = await tell(...resting, cluster('busy', { isUsed: true }));
    assert.deepEqual(among(series, 'frontdesk_upstream_circuit_open'), { busy: 0 });
  });
});
