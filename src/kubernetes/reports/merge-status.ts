/** Merges what frontdesk says into the status of an object of the Gateway API: what others have written there stays. */
import { isDeepStrictEqual } from 'node:util';
import { type Condition, controllerName, type DesiredStatus, gatewayApiGroup } from '#config';
import { type Fields, isMap, sortedJson } from '#foundation';
import { timeOf } from './status.ts';

type Status = DesiredStatus['status'];

/** The bounds of the definitions. */
const conditionsMax = 8;
const parentsMax = 32;

/** Returns the members of the status that frontdesk replaces, or undefined if the status says the same already. */
export function statusChange(current: unknown, desired: Status, nowMs: number): Fields | undefined {
  const before = isMap(current) ? current : {};
  // Without members that are undefined, which the API server does not have either.
  const merged: Fields = JSON.parse(JSON.stringify(membersOf(before, desired, timeOf(nowMs))));
  const isSame = Object.entries(merged).every(([name, value]) => isDeepStrictEqual(before[name] ?? [], value));
  return isSame ? undefined : merged;
}

function membersOf(before: Fields, desired: Status, now: string): Fields {
  if (desired.kind === 'Route') return { parents: mergeParents(listOf(before['parents']), desired.parents, now) };
  const conditions = mergeConditions(before['conditions'], desired.conditions, now);
  if (desired.kind === 'GatewayClass') return { conditions, supportedFeatures: desired.supportedFeatures };
  const known = listOf(before['listeners']);
  const listeners = desired.listeners.map((listener) => ({
    ...listener,
    conditions: mergeConditions(
      known.find(({ name }) => name === listener.name)?.['conditions'],
      listener.conditions,
      now,
    ),
  }));
  return { addresses: desired.addresses, conditions, listeners };
}

type ParentStatus = Extract<Status, { readonly kind: 'Route' }>['parents'][number];

function mergeParents(before: readonly Fields[], desired: readonly ParentStatus[], now: string): readonly Fields[] {
  const ours = desired.map((parent) => {
    const known = before.find((one) => parentKey(one) === parentKey(parent));
    return {
      ...parent,
      parentRef: withDefaults(parent.parentRef),
      conditions: mergeConditions(known?.['conditions'], parent.conditions, now),
    };
  });
  const isOurs = (parent: Fields) => parent['controllerName'] === controllerName;
  return mergeEntries(before, ours, { isOurs, keyOf: parentKey }).slice(0, parentsMax);
}

function parentKey({ controllerName: controller, parentRef }: Fields | ParentStatus): string {
  return sortedJson([controller, withDefaults(isMap(parentRef) ? parentRef : {})]);
}

/** The defaults are those of the API server. */
function withDefaults(parentRef: object): Fields {
  return { group: gatewayApiGroup, kind: 'Gateway', ...parentRef };
}

/** Conditions of others have a domain in their type: `example.com/Checked`. */
function mergeConditions(before: unknown, desired: readonly Condition[], now: string): readonly Fields[] {
  const known = listOf(before);
  const ours = desired.map((condition) => {
    const same = known.find(({ type, status }) => type === condition.type && status === condition.status);
    return { ...condition, lastTransitionTime: same?.['lastTransitionTime'] ?? now };
  });
  const isOurs = ({ type }: Fields) => !String(type).includes('/');
  return mergeEntries(known, ours, { isOurs, keyOf: ({ type }) => String(type) }).slice(0, conditionsMax);
}

interface Entries {
  readonly isOurs: (entry: Fields) => boolean;
  readonly keyOf: (entry: Fields) => string;
}

/** Entries stay where they are: those of others as they are, and ours replaced or dropped. New ones follow. */
function mergeEntries(
  before: readonly Fields[],
  ours: readonly Fields[],
  { isOurs, keyOf }: Entries,
): readonly Fields[] {
  const left = new Map(ours.map((entry) => [keyOf(entry), entry]));
  const kept = before.flatMap((entry) => {
    if (!isOurs(entry)) return [entry];
    const now = left.get(keyOf(entry));
    left.delete(keyOf(entry));
    return now === undefined ? [] : [now];
  });
  return [...kept, ...left.values()];
}

function listOf(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.filter(isMap) : [];
}
