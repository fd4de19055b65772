/** Notices about limits that no label can reach and labels without a limit, which may be typing mistakes. */
import { type ConfigurationError, didYouMean } from '../errors.ts';
import type { Configuration } from '../model.ts';
import { quote } from '../quote.ts';
import { fullName } from '../records/conflicts.ts';
import type { Label, LabelGroup } from '../records/labels.ts';
import type { Mapping } from '../records/mapping.ts';
import { flatMapInParts, forEachInParts, type Work } from '../work.ts';
import type { LimitDescriptor, LimitDomain } from './domains.ts';

/** Compares the labels and limits of a gateway and limiter in the same process. The gateway uses `domain`. */
export function* unreachableNotices({ mappings, limits }: Configuration, domain: string): Work<ConfigurationError[]> {
  const labelled = mappings.filter(({ redirect }) => redirect === undefined);
  const reached = new Set<Place>();
  const used = limits.find((one) => one.domain === domain);
  yield* forEachInParts(labelled, (mapping) => {
    for (const group of mapping.labels[domain] ?? [])
      for (const place of placesAfter(group, mapping, used?.descriptors ?? [])) reached.add(place);
  });
  const keys = used && keysOf(used.descriptors);
  return [
    ...(yield* flatMapInParts(labelled, (mapping) => labelNotices(mapping, domain, keys, limits))),
    ...limits.flatMap((one) => (one === used ? limitNotices(one, reached) : [domainNotice(one, domain)])),
  ];
}

type Place = Pick<LimitDescriptor, 'descriptors'>;

/** Returns the descriptors that a request with the labels of the group can reach. */
function placesAfter({ labels }: LabelGroup, mapping: Mapping, descriptors: LimitDescriptor['descriptors']) {
  let places: readonly Place[] = [{ descriptors }];
  for (const label of labels) {
    const below = places.flatMap((place) => place.descriptors.filter((one) => canMatch(one, label, mapping)));
    places = isOptional(label) ? [...new Set([...places, ...below])] : below;
  }
  return places;
}

function isOptional(label: Label): boolean {
  return label.kind === 'header' && label.omitIfNotPresent;
}

function canMatch({ key, value }: LimitDescriptor, label: Label, { service }: Mapping): boolean {
  if (key !== label.name) return false;
  if (value === undefined || value.includes('*')) return true;
  if (label.kind === 'generic_key') return value === label.value;
  // The label sends the host in lower case, without a port or trailing dot.
  if (label.kind === 'header' && label.header === 'host') return !/[A-Z]|:\d+$|\.$/.test(value);
  return label.kind !== 'destination_cluster' || value === service;
}

function limitNotices({ domain, descriptors }: LimitDomain, reached: ReadonlySet<Place>): ConfigurationError[] {
  const walk = (some: readonly LimitDescriptor[], above: string): ConfigurationError[] =>
    some.flatMap((descriptor) => {
      const { key, limits, descriptors: below, source } = descriptor;
      // Omits values, which may be secrets. The line number identifies the descriptor.
      const path = `${above}${key}`;
      const isUnreached = (limits.length > 0 || below.length === 0) && !reached.has(descriptor);
      return [
        ...(isUnreached
          ? [notice(source, `domain ${domain}`, `no Mapping has labels that reach ${path}`, checkKeys)]
          : []),
        ...walk(below, `${path} › `),
      ];
    });
  return walk(descriptors, '');
}

const checkKeys = 'Compare its keys, values and their order with the labels of the mappings, or remove it.';

function domainNotice({ domain, source }: LimitDomain, used: string): ConfigurationError {
  const remedy = 'Rename one of the two, or ignore this if other proxies use these limits.';
  return notice(source, `domain ${domain}`, `the gateway uses the domain ${quote(used)}, never this one`, remedy);
}

/** `keys` are the keys of the domain that the gateway uses, or undefined if this domain has no limits. */
function labelNotices(
  mapping: Mapping,
  used: string,
  keys: ReadonlySet<string> | undefined,
  limits: readonly LimitDomain[],
): ConfigurationError[] {
  return Object.entries(mapping.labels).flatMap(([domain, groups]) => {
    const noticeOf = (message: string, remedy: string) => notice(mapping.source, fullName(mapping), message, remedy);
    if (keys === undefined || domain !== used) {
      const names = limits.map((one) => one.domain);
      const message = `labels are for the domain ${quote(domain)}, which has no limits here${didYouMean(domain, names)}`;
      return [noticeOf(message, `The gateway uses ${quote(used)}, whose limits are in ratelimit/*.yaml.`)];
    }
    const unknown = new Set(
      groups.flatMap(({ labels }) => labels.map(({ name }) => name)).filter((key) => !keys.has(key)),
    );
    return [...unknown].map((key) =>
      noticeOf(
        `no limit of the domain ${quote(domain)} has the key ${quote(key)}${didYouMean(key, [...keys])}`,
        'Correct the label, add a limit for it, or remove it.',
      ),
    );
  });
}

function keysOf(descriptors: readonly LimitDescriptor[]): Set<string> {
  return new Set(descriptors.flatMap(({ key, descriptors: below }) => [key, ...keysOf(below)]));
}

function notice(
  source: ConfigurationError['source'],
  record: string,
  message: string,
  remedy: string,
): ConfigurationError {
  return { source, record, message, remedy };
}
