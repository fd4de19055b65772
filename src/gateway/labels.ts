/** Labels to descriptors: what the rate-limit service is told of a request. */
import { createHash } from 'node:crypto';
import type { Label, LabelGroup } from '#config';
import type { Descriptor, Entry } from '#ratelimit';
import type { Facts } from './facts.ts';

export type Describe = (facts: Facts) => readonly Descriptor[];

/** Tells the value of one label, or that it is left out. */
interface Reader {
  readonly key: string;
  readonly read: (facts: Facts) => string | undefined;
}

/** What `source_cluster` says: who sends the request on. */
export const sourceCluster = 'frontdesk';

/**
 * One descriptor for each group. A label whose header is missing is left out with `omitIfNotPresent`, and sent with its
 * default otherwise; a group that is left with no label is dropped. (Emissary drops the whole group instead.)
 * `destination`: the mapping's service reference. `folds`: its prefix meets paths in any case, and so does a limit on
 * them: they are told in lower case.
 */
export function createDescribe(groups: readonly LabelGroup[], destination: string, folds = false): Describe {
  const pathOf = folds ? ({ path }: Facts) => path.toLowerCase() : ({ path }: Facts) => path;
  const readers = groups.map(({ labels }) => labels.map((label) => readerOf(label, { destination, pathOf })));
  return (facts) => {
    const descriptors: Descriptor[] = [];
    for (const group of readers) {
      const entries = entriesOf(group, facts);
      if (entries.length > 0) descriptors.push({ entries });
    }
    return descriptors;
  };
}

function entriesOf(group: readonly Reader[], facts: Facts): Entry[] {
  const entries: Entry[] = [];
  for (const { key, read } of group) {
    const value = read(facts);
    if (value !== undefined) entries.push({ key, value: bounded(value) });
  }
  return entries;
}

/** What labels say of a mapping. */
interface Said {
  readonly destination: string;
  readonly pathOf: (facts: Facts) => string;
}

function readerOf(label: Label, said: Said): Reader {
  return { key: label.name, read: label.kind === 'header' ? readHeader(label, said) : readFact(label, said) };
}

function readHeader(
  { header, omitIfNotPresent, default: fallback }: Extract<Label, { kind: 'header' }>,
  { pathOf }: Said,
) {
  if (header === ':path') return pathOf;
  const missing = omitIfNotPresent ? undefined : fallback;
  const pseudo = pseudoHeaders.get(header);
  if (pseudo !== undefined) return pseudo;
  return ({ headers }: Facts) => {
    const value = headers[header];
    if (value === undefined) return missing;
    return typeof value === 'string' ? value : value.join(', ');
  };
}

/**
 * The names that HTTP/2, and so Envoy, has for parts of the request line, beside `:path`. That is told without the query:
 * with it, a limit on a path would be no limit for a client that adds `?1`, `?2`, …
 */
const pseudoHeaders: ReadonlyMap<string, (facts: Facts) => string> = new Map([
  [':authority', ({ host }: Facts) => host],
  [':method', ({ method }: Facts) => method],
]);

function readFact(label: Exclude<Label, { kind: 'header' }>, { destination, pathOf }: Said): (facts: Facts) => string {
  switch (label.kind) {
    case 'generic_key':
      return () => label.value;
    case 'source_cluster':
      return () => sourceCluster;
    case 'destination_cluster':
      return () => destination;
    case 'remote_address':
      return ({ client }) => client;
    case 'method':
      return ({ method }) => method;
    case 'path':
      return pathOf;
  }
}

const valueLengthMax = 512;

/** Every value becomes a counter's key, and two long tokens may differ in their last characters alone. */
function bounded(value: string): string {
  if (value.length <= valueLengthMax) return value;
  return `sha256:${createHash('sha256').update(value).digest('hex')}`;
}
