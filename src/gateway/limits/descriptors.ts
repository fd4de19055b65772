/** A mapping's labels as descriptors for the limiter, and which of them count before authentication. */
import { createHash } from 'node:crypto';
import { type Label, type LabelGroup, requestBounds, requestBytesMax } from '#config';
import { maskAddress } from '#http';
import type { Descriptor, Entry } from '#ratelimit';
import type { RequestAttributes } from '#routing';

export type DescriptorsOf = (attributes: RequestAttributes) => readonly Descriptor[];

/** Undefined: no label group of the mapping belongs there. */
export interface RouteDescriptors {
  /** Of groups that count every request from an address, with wrong credentials or without any. */
  readonly beforeAuth: DescriptorsOf | undefined;
  /** Of all others: a client without credentials must not use up another client's quota. */
  readonly afterAuth: DescriptorsOf | undefined;
}

/** `destination`: the mapping's service reference. `ignoresCase`: the mapping matches paths in any case, and so do its limits. */
export function createRouteDescriptors(
  groups: readonly LabelGroup[],
  destination: string,
  ignoresCase: boolean,
): RouteDescriptors {
  const create = (some: readonly LabelGroup[]) =>
    some.length === 0 ? undefined : createDescriptors(some, destination, ignoresCase);
  return {
    beforeAuth: create(groups.filter(countsBeforeAuth)),
    afterAuth: create(groups.filter((group) => !countsBeforeAuth(group))),
  };
}

/** Headers are left to after authentication, since the auth service may set them. */
export function countsBeforeAuth({ labels }: LabelGroup): boolean {
  const kinds = new Set(labels.map(({ kind }) => kind));
  return (kinds.has('remote_address') || kinds.has('masked_remote_address')) && !kinds.has('header');
}

/** Reads the value of one label; undefined: the label is left out. */
interface Reader {
  readonly key: string;
  readonly read: (attributes: RequestAttributes) => string | undefined;
}

/** The value of `source_cluster`: the sender of the request. */
export const sourceCluster = 'frontdesk';

/**
 * One descriptor for each group. A label whose header is missing is left out with `omitIfNotPresent`, and sent with its
 * default otherwise; a group without a label left is dropped. (Emissary drops the whole group as soon as one is missing.)
 */
export function createDescriptors(
  groups: readonly LabelGroup[],
  destination: string,
  ignoresCase = false,
): DescriptorsOf {
  const pathOf = ignoresCase
    ? ({ path }: RequestAttributes) => path.toLowerCase()
    : ({ path }: RequestAttributes) => path;
  const readers = groups.map(({ labels }) => labels.map((label) => readerOf(label, { destination, pathOf })));
  const lengthMax = valueLengthMax(readers.flat().length);
  return (attributes) => {
    const descriptors: Descriptor[] = [];
    for (const group of readers) {
      const entries = entriesOf(group, attributes, lengthMax);
      if (entries.length > 0) descriptors.push({ entries });
    }
    return descriptors;
  };
}

function entriesOf(group: readonly Reader[], attributes: RequestAttributes, lengthMax: number): Entry[] {
  const entries: Entry[] = [];
  for (const { key, read } of group) {
    const value = read(attributes);
    if (value !== undefined) entries.push({ key, value: bounded(value, lengthMax) });
  }
  return entries;
}

/** What labels read of a mapping. A path has no query: a client could get around a limit on it by adding `?1`, `?2`, … */
interface MappingValues {
  readonly destination: string;
  readonly pathOf: (attributes: RequestAttributes) => string;
}

function readerOf(label: Label, values: MappingValues): Reader {
  return { key: label.name, read: label.kind === 'header' ? readHeader(label) : readAttribute(label, values) };
}

function readHeader({
  header,
  omitIfNotPresent,
  default: fallback,
}: Extract<Label, { kind: 'header' }>): Reader['read'] {
  const missing = omitIfNotPresent ? undefined : fallback;
  const read = header === 'host' ? readHost : ({ headers }: RequestAttributes) => headers[header];
  return (attributes) => {
    const value = read(attributes);
    if (value === undefined) return missing;
    return typeof value === 'string' ? value : value.join(', ');
  };
}

/** As mappings compare it: they take a host with any port, in capitals and with a dot at its end, and a limit must count them all. */
function readHost({ host, headers }: RequestAttributes): string | undefined {
  return host === '' ? headers.host : host;
}

function readAttribute(
  label: Exclude<Label, { kind: 'header' }>,
  { destination, pathOf }: MappingValues,
): (attributes: RequestAttributes) => string {
  switch (label.kind) {
    case 'generic_key':
      return () => label.value;
    case 'source_cluster':
      return () => sourceCluster;
    case 'destination_cluster':
      return () => destination;
    case 'remote_address':
      return ({ client }) => client;
    case 'masked_remote_address':
      return ({ client }) => maskAddress(client, label);
    case 'method':
      return ({ method }) => method;
    case 'path':
      return pathOf;
  }
}

/**
 * Of each of so many labels, so that a rate-limit service takes them all in one request: a client whose request it refuses
 * would pass every limit. A character has up to 3 bytes of UTF-8, and a quarter of the request is for the keys.
 */
function valueLengthMax(labels: number): number {
  return Math.min(requestBounds.value, Math.floor(requestBytesMax / 4 / labels));
}

const digestLength = 'sha256:'.length + 64;

/**
 * A longer value keeps its beginning and its end, so that a client cannot make it too long for a limit with a wildcard.
 * The digest keeps two values apart that differ in between.
 */
function bounded(value: string, lengthMax: number): string {
  if (value.length <= lengthMax) return value;
  const digest = createHash('sha256').update(value).digest('hex');
  const keptLength = Math.floor((lengthMax - digestLength) / 2);
  return `${value.slice(0, keptLength)}sha256:${digest}${value.slice(-keptLength)}`;
}
