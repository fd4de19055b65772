/** Mappings with the same match: a canary says its weight, a shadow says that it is one, and anything else is a mistake. */
import type { ConfigurationError } from './configuration.ts';
import type { Fault } from './fields.ts';
import type { Mapping } from './gateway-records.ts';
import { matchKey } from './match-key.ts';
import type { Kept } from './uniqueness.ts';

/** Of members that cannot be together the first stays. */
export function keepGroups(mappings: readonly Mapping[]): Kept<Mapping> {
  const groups = new Map<string, Mapping[]>();
  for (const mapping of mappings) {
    const key = matchKey(mapping);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [mapping]);
    else group.push(mapping);
  }
  const errors = [...groups.values()].filter((group) => !isAlone(group)).flatMap(groupErrors);
  if (errors.length === 0) return { kept: mappings, errors };
  const dropped = new Set(errors.map(({ record }) => record));
  return { kept: mappings.filter((mapping) => !dropped.has(nameOf(mapping))), errors };
}

/** As most are: there is nothing to judge. */
function isAlone(group: readonly Mapping[]): boolean {
  const [only] = group;
  return group.length === 1 && only?.weight === undefined && only?.shadow === false;
}

/** One at most for each member. */
function groupErrors(group: readonly Mapping[]): readonly ConfigurationError[] {
  const errors: ConfigurationError[] = [];
  const members: Mapping[] = [];
  let shadow: Mapping | undefined;
  for (const mapping of group) {
    const clash = mapping.shadow ? shadowClash(shadow) : memberClash(mapping, members);
    if (clash !== undefined) errors.push(errorOf(mapping, clash.fault, clash.other));
    else if (mapping.shadow) shadow = mapping;
    else members.push(mapping);
  }
  return [...errors, ...(errors.length === 0 ? incomplete(members) : []), ...lonely(shadow, members)];
}

interface Clash {
  readonly fault: Fault;
  readonly other: Mapping;
}

function shadowClash(shadow: Mapping | undefined): Clash | undefined {
  if (shadow === undefined) return undefined;
  const message = `Mapping ${shadow.name} is the shadow of these requests already`;
  return { fault: { message, remedy: 'Keep one shadow: it gets copies of what the others get.' }, other: shadow };
}

function memberClash(mapping: Mapping, members: readonly Mapping[]): Clash | undefined {
  const [first] = members;
  if (first === undefined) return undefined;
  return unweighted(mapping, members) ?? overweight(mapping, members, first) ?? disagreement(mapping, first);
}

/** One may be without a weight: it takes what the others leave. */
function unweighted(mapping: Mapping, members: readonly Mapping[]): Clash | undefined {
  const other = members.find(({ weight }) => weight === undefined);
  if (mapping.weight !== undefined || other === undefined) return undefined;
  const { method, host, headers, queryParameters } = mapping;
  const isPathAlone = method === undefined && host === undefined && headers.length + queryParameters.length === 0;
  const message = isPathAlone
    ? `the prefix "${mapping.prefix}" already belongs to Mapping ${other.name}`
    : `Mapping ${other.name} takes the same requests under "${mapping.prefix}"`;
  const remedy = 'Give each Mapping a match of its own; or a weight to one of them, which shares the requests out.';
  return { fault: { message, remedy }, other };
}

function overweight(mapping: Mapping, members: readonly Mapping[], first: Mapping): Clash | undefined {
  const sum = weightOf([...members, mapping]);
  if (sum <= 100) return undefined;
  const message = `with its weight ${mapping.weight} the mappings of these requests have ${sum} of 100`;
  return { fault: { message, remedy: 'Make the weights add up to 100.' }, other: first };
}

/** Who of the group takes a request is decided by lot, and the lot must not decide who is let in or how much. */
function disagreement(mapping: Mapping, first: Mapping): Clash | undefined {
  const field = agreements.find(({ read }) => JSON.stringify(read(mapping)) !== JSON.stringify(read(first)))?.field;
  if (field === undefined) return undefined;
  const message = `does not agree on ${field} with Mapping ${first.name}, with which it shares its requests`;
  return {
    fault: { message, remedy: `Write the same ${field} in both: which of the two takes a request is a lot.` },
    other: first,
  };
}

const agreements: readonly { readonly field: string; readonly read: (mapping: Mapping) => unknown }[] = [
  { field: 'bypass_auth', read: ({ bypassAuth }) => bypassAuth },
  { field: 'auth_service', read: ({ authService }) => authService ?? null },
  { field: 'labels', read: ({ labels }) => labels },
  { field: 'cors', read: ({ cors }) => cors ?? null },
];

/** Told of the last, which is where whoever reads the file from the top learns that something is missing. */
function incomplete(members: readonly Mapping[]): readonly ConfigurationError[] {
  const last = members.at(-1);
  const sum = weightOf(members);
  if (last === undefined || sum === 100 || members.some(({ weight }) => weight === undefined)) return [];
  const message = `the weights of the mappings of these requests add up to ${sum}, not 100`;
  const remedy = 'Raise one of them, or remove the weight of the one that takes the rest.';
  return [errorOf(last, { message, remedy }, members.length > 1 ? members[0] : undefined)];
}

function lonely(shadow: Mapping | undefined, members: readonly Mapping[]): readonly ConfigurationError[] {
  if (shadow === undefined || members.some(({ redirect }) => redirect === undefined)) return [];
  const message = 'there is no mapping that takes the same requests, so there is nothing to copy';
  return [errorOf(shadow, { message, remedy: 'Write the mapping whose requests it should get, with the same match.' })];
}

function weightOf(members: readonly Mapping[]): number {
  return members.reduce((sum, { weight = 0 }) => sum + weight, 0);
}

function errorOf(mapping: Mapping, fault: Fault, other?: Mapping): ConfigurationError {
  return { source: mapping.source, record: nameOf(mapping), ...fault, other: other?.source };
}

function nameOf({ name }: Mapping): string {
  return `Mapping ${name}`;
}
