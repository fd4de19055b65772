/** Merges the metrics of threads that serve the same ports into those of their process. */
import { createMetricsOf, type FamilySnapshot, type Metrics, mergeByLabels, type Sample } from './registry.ts';

/** The order decides only for families that take the first sample. A thread may lack families of another. */
export function mergeSnapshots(threads: readonly (readonly FamilySnapshot[])[]): readonly FamilySnapshot[] {
  const byName = new Map<string, FamilySnapshot>();
  for (const family of threads.flat()) {
    const samples = [...(byName.get(family.name)?.samples ?? []), ...family.samples];
    byName.set(family.name, { ...family, samples });
  }
  return [...byName.values()].map((family) => ({
    ...family,
    samples: [...mergeByLabels(family.samples, family.merge)],
  }));
}

/**
 * Keeps what a thread that has ended had counted. Otherwise the sums of the others would be lower than before, and
 * Prometheus would take the whole of them for an increase.
 */
export function countedIn(snapshot: readonly FamilySnapshot[]): readonly FamilySnapshot[] {
  return snapshot.filter(({ type, merge = 'sum' }) => type !== 'gauge' && merge === 'sum');
}

/** Renders the metrics of all threads, which are read at each scrape. */
export function createMetricsOfThreads(read: () => Promise<readonly FamilySnapshot[]>): Pick<Metrics, 'read'> {
  return {
    async read() {
      const families = (await read()).map(({ samples, ...family }) => ({
        ...family,
        samples: (): readonly Sample[] => samples,
      }));
      return createMetricsOf(families).read();
    },
  };
}
