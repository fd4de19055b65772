/** How the services across HTTP are, as the gateway sees them. */
import type { ClusterSnapshot } from '#proxy';
import type { Family, Sample } from './exposition.ts';
import { withoutResting } from './resting.ts';

export interface ClusterParts {
  readonly all: () => readonly ClusterSnapshot[];
}

/** One service may have several clusters, where records treat it differently: they are told together. */
export function createClusterFamilies(parts: ClusterParts): readonly Family[] {
  const all = () => withoutResting(parts.all(), wasAsked);

  return [
    {
      name: 'frontdesk_upstream_circuit_open',
      type: 'gauge',
      labels: ['service'],
      help: '1 while a circuit breaker refuses requests to the service.',
      samples: () => together(all(), ({ circuit }) => [['', circuit === 'open' ? 1 : 0]], serviceAlone, Math.max),
    },
    {
      name: 'frontdesk_upstream_circuit_overflows_total',
      type: 'counter',
      labels: ['service'],
      help: 'Requests that a circuit breaker refused.',
      samples: () => together(all(), ({ overflows }) => [['', overflows]], serviceAlone, sum),
    },
    {
      name: 'frontdesk_upstream_address_healthy',
      type: 'gauge',
      labels: ['service', 'address'],
      help: '0 while the address is left out: it fails its health check, or failed too often in a row.',
      samples: () => together(all(), healthOf, (service, address) => ({ service, address }), Math.min),
    },
  ];
}

function wasAsked({ isUsed }: ClusterSnapshot): boolean {
  return isUsed;
}

function serviceAlone(service: string): Sample['labels'] {
  return { service };
}

function sum(one: number, other: number): number {
  return one + other;
}

function healthOf({ addresses }: ClusterSnapshot): readonly (readonly [string, number])[] {
  return addresses.map(({ origin, health }) => [origin, health === 'unhealthy' || health === 'ejected' ? 0 : 1]);
}

/** No two series may have the same labels: their values become one. */
function together(
  clusters: readonly ClusterSnapshot[],
  valuesOf: (cluster: ClusterSnapshot) => readonly (readonly [address: string, value: number])[],
  labelsOf: (service: string, address: string) => Sample['labels'],
  merge: (one: number, other: number) => number,
): Iterable<Sample> {
  const samples = new Map<string, Sample>();
  for (const cluster of clusters) {
    for (const [address, value] of valuesOf(cluster)) {
      // In a service reference there is no space.
      const key = `${cluster.service} ${address}`;
      const known = samples.get(key);
      samples.set(key, {
        labels: labelsOf(cluster.service, address),
        value: known === undefined ? value : merge(known.value, value),
      });
    }
  }
  return samples.values();
}
