/** Finds the metrics in queries of Prometheus, and compares them and their labels with those of frontdesk. */
import { familiesOf } from '../../src/metrics/metrics.ts';
import { parts } from '../metrics/metrics-parts.ts';

/** Label names by metric, without those that Prometheus adds. */
export const labelsOf = new Map(familiesOf(parts).map(({ name, labels }) => [name, labels]));

/** Returns every use of one of our metrics, with the labels in its selector. */
export function usesIn(text: string) {
  return [...text.matchAll(/\b(frontdesk_\w+?)(?:_bucket)?(?:\{([^}]*)\}|(?![\w{]))/g)].map(
    ([, name = '', given = '']) => ({
      name,
      labels: [...given.matchAll(/(\w+)(?=[=!])/g)].map(([label]) => label).filter((label) => !added.includes(label)),
    }),
  );
}

/** By Prometheus, and by histograms. */
const added = ['instance', 'job', 'le'];

/** Returns what a query names and frontdesk does not have. */
export function wrongUsesIn(text: string): readonly string[] {
  return usesIn(text).flatMap(({ name, labels }) => {
    const known = labelsOf.get(name);
    if (known === undefined) return [`there is no metric ${name}`];
    return labels.filter((label) => !known.includes(label)).map((label) => `${name} has no label ${label}`);
  });
}
