/** Turns a mapping's labels into descriptors for the limiter, and decides which ones count before authentication. */
import { createHash } from 'node:crypto';
import type { Label, LabelGroup } from '#config';
import { decodeHeader, maskAddress } from '#http';
import type { Descriptor, Entry } from '#ratelimit';
import { requestBounds, requestBytesMax } from '#ratelimit/limit';
import type { RequestAttributes } from '#routing';

export type DescriptorsOf = (attributes: RequestAttributes) => readonly Descriptor[];

/** Each is undefined if the mapping has no label groups for it. */
export interface RouteDescriptors {
  /** Creates descriptors for groups that limit by address. They count every request, even with wrong credentials. */
  readonly beforeAuth: DescriptorsOf | undefined;
  /** Creates descriptors for other groups: a client without credentials must not use up another client's quota. */
  readonly afterAuth: DescriptorsOf | undefined;
}

/**
 * `destination`: the mapping's service reference. `ignoresCase`: limits ignore the case of paths, as the mapping does.
 */
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

/** Groups with headers count after authentication, because the auth service may set these headers. */
export function countsBeforeAuth({ labels }: LabelGroup): boolean {
  const kinds = new Set(labels.map(({ kind }) => kind));
  return (kinds.has('remote_address') || kinds.has('masked_remote_address')) && !kinds.has('header');
}

/** Reads the value of one label. Undefined omits the label. */
interface Reader {
  readonly key: string;
  readonly read: (attributes: RequestAttributes) => string | undefined;
}

/** The value of `source_cluster`, which names the proxy that sends the request. */
export const sourceCluster = 'frontdesk';

/**
 * Creates one descriptor for each group. If the header of a label is missing, the label is omitted with
 * `omitIfNotPresent`, and has its default value otherwise. A group whose labels are all omitted is dropped. (Emissary
 * drops a group as soon as one of its labels is missing.)
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
    if (value !== undefined) entries.push({ key, value: shorten(value, lengthMax) });
  }
  return entries;
}

/**
 * Label values that depend on the mapping. The path has no query, or clients could evade its limit with `?1`, `?2`, …
 */
interface MappingValues {
  readonly destination: string;
  readonly pathOf: (attributes: RequestAttributes) => string;
}

function readerOf(label: Label, values: MappingValues): Reader {
  return { key: label.name, read: label.kind === 'header' ? readHeader(label) : readAttribute(label, values) };
}

/** The limiter compares text, and another service receives UTF-8: the bytes of the client, if they are valid. */
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
    return decodeHeader(typeof value === 'string' ? value : value.join(', '));
  };
}

/** Returns the normalised host that mappings match, so that a limit counts all spellings of a host together. */
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
 * Returns the maximum length of a value, given the number of labels that share a request to the rate-limit service. If
 * the service rejected the request as too large, the client would pass every limit. A character takes up to 3 bytes of
 * UTF-8, and the remaining quarter of the request is for the keys.
 */
function valueLengthMax(labels: number): number {
  return Math.min(requestBounds.value, Math.floor(requestBytesMax / 4 / labels));
}

const digestLength = 'sha256:'.length + 64;

/**
 * Replaces the middle of a long value with a digest, which keeps different values distinct. The beginning and the end
 * remain, so that a client cannot evade a limit with a wildcard by making the value too long.
 */
function shorten(value: string, lengthMax: number): string {
  if (value.length <= lengthMax) return value;
  const digest = createHash('sha256').update(value).digest('hex');
  const keptLength = Math.floor((lengthMax - digestLength) / 2);
  return `${value.slice(0, keptLength)}sha256:${digest}${value.slice(-keptLength)}`;
}
