/** Finds the limits that can count requests with the labels of a mapping. */
import type { Source } from '#foundation';
import { type Limit, redactedEntry } from '#ratelimit/limit';
import type { Label, LabelGroup } from '../records/labels.ts';
import type { LimitDescriptor } from './domains.ts';

/** Returns the descriptors that a request with the labels of the group can reach. `service` is that of its mapping. */
export function reachedDescriptors(
  { labels }: LabelGroup,
  service: string,
  descriptors: readonly LimitDescriptor[],
): readonly LimitDescriptor[] {
  // Undefined is the place above all descriptors.
  let places: readonly (LimitDescriptor | undefined)[] = [undefined];
  for (const label of labels) {
    const below = places.flatMap((place) =>
      (place?.descriptors ?? descriptors).filter((one) => canMatch(one, label, service)),
    );
    places = isOptional(label) ? [...new Set([...places, ...below])] : below;
  }
  return places.filter((place) => place !== undefined);
}

/** A limit that can count a request, and its descriptor without values, outermost key first: `user › path=…`. */
export interface ReachedLimit {
  readonly descriptor: string;
  readonly limit: Limit;
  readonly source: Source;
}

/** Returns the limits that can count requests with these labels. */
export function reachedLimits(
  groups: readonly LabelGroup[],
  service: string,
  descriptors: readonly LimitDescriptor[],
): readonly ReachedLimit[] {
  const reached = new Set(groups.flatMap((group) => reachedDescriptors(group, service, descriptors)));
  const walk = (some: readonly LimitDescriptor[], above: string): readonly ReachedLimit[] =>
    some.flatMap((one) => {
      const { key, value, limits, descriptors: below, source } = one;
      const descriptor = above + redactedEntry(key, value);
      const own = reached.has(one) ? limits.map((limit) => ({ descriptor, limit, source })) : [];
      return [...own, ...walk(below, `${descriptor} › `)];
    });
  return walk(descriptors, '');
}

function isOptional(label: Label): boolean {
  return label.kind === 'header' && label.omitIfNotPresent;
}

function canMatch({ key, value }: LimitDescriptor, label: Label, service: string): boolean {
  if (key !== label.name) return false;
  if (value === undefined || value.includes('*')) return true;
  if (label.kind === 'generic_key') return value === label.value;
  // The label sends the host in lower case, without a port or trailing dot.
  if (label.kind === 'header' && label.header === 'host') return !/[A-Z]|:\d+$|\.$/.test(value);
  return label.kind !== 'destination_cluster' || value === service;
}
