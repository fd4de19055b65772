/** The requests of a broken Mapping, which are blocked so that none falls through to a mapping that may be open. */
import { type PlacedFault, type Source, suggestion } from '../errors.ts';
import { mapInParts, type Work } from '../work.ts';
import type { Mapping } from './mapping.ts';
import { mappingFields } from './mapping-fields.ts';
import { type MatchFields, matchKey, type RequestMatch, requestMatchOf } from './match.ts';

/** Which requests a broken Mapping was for, in its own place in the order of trial. */
export interface BlockedMatch extends RequestMatch {
  readonly name: string;
  /** False: the Mapping asks for no credentials. */
  readonly isGuard: boolean;
  readonly source: Source;
}

/** What follows from a Mapping that cannot be read. */
export interface Containment {
  readonly blocked: readonly BlockedMatch[];
  /** False: which requests it guarded is unknown, so the rest cannot be served safely. */
  readonly isContained: boolean;
}

/** For a Mapping with these faults. A fault in its match, or a key that may be part of it, makes the match unknown. */
export function containMapping(
  fields: Readonly<Record<string, unknown>>,
  faults: readonly PlacedFault[],
  source: Source,
): Containment {
  if (fields['shadow'] === true) return { blocked: [], isContained: true };
  const isGuard = fields['bypass_auth'] !== true || fields['auth_service'] !== undefined;
  const match = faults.some(isOfMatch) ? undefined : readMatch(fields);
  if (match === undefined) return { blocked: [], isContained: !isGuard };
  const name = typeof fields['name'] === 'string' ? fields['name'] : '';
  return { blocked: [{ ...match, name, isGuard, source }], isContained: true };
}

const matchKeys = [
  ...(['prefix', 'prefixExact', 'prefixRegex', 'caseSensitive', 'host', 'hostRegex', 'hostname'] as const),
  ...(['method', 'methodRegex', 'headers', 'regexHeaders', 'queryParameters', 'regexQueryParameters'] as const),
  'precedence',
] as const satisfies readonly (keyof MatchFields)[];

const matchNames = new Set(matchKeys.map((key) => mappingFields[key].name));
const names = ['apiVersion', 'kind', ...Object.values(mappingFields).map(({ name }) => name)];

/** A mistyped key counts as the field that it is near to, and as part of the match when it is near to none. */
function isOfMatch({ path: [key] }: PlacedFault): boolean {
  const name = typeof key === 'string' ? suggestion(key, names) : undefined;
  return name === undefined || matchNames.has(name);
}

/** Undefined when a field of the match is missing or cannot be read. */
function readMatch(fields: Readonly<Record<string, unknown>>): RequestMatch | undefined {
  const match: Record<string, unknown> = {};
  for (const key of matchKeys) {
    const { name, schema, ...row } = mappingFields[key];
    const value = fields[name];
    const read =
      value === undefined && 'default' in row ? { success: true, data: row.default } : schema.safeParse(value);
    if (!read.success) return undefined;
    match[key] = read.data;
  }
  // Every key is filled in, which the loop cannot prove to the compiler.
  return requestMatchOf(match as unknown as MatchFields);
}

/** The requests of a mapping that cannot be served beside another record. */
export function blockedByMapping(mapping: Mapping): readonly BlockedMatch[] {
  if (mapping.shadow) return [];
  const { name, prefix, prefixMatch, caseSensitive, host, method, headers, queryParameters, precedence } = mapping;
  const match = { prefix, prefixMatch, caseSensitive, host, method, headers, queryParameters, precedence };
  return [{ ...match, name, isGuard: !isOpen(mapping), source: mapping.source }];
}

/**
 * Leaves out the blocks whose requests a mapping of the same match may take: a good canary goes on without the broken
 * one. An open mapping never takes what the broken one guarded.
 */
export function* blocksBeside(
  mappings: readonly Mapping[],
  blocked: readonly BlockedMatch[],
): Work<readonly BlockedMatch[]> {
  if (blocked.length === 0) return blocked;
  const served = mappings.filter(({ shadow }) => !shadow);
  const keys = yield* keysOf(served);
  const openKeys = yield* keysOf(served.filter(isOpen));
  return blocked.filter((match) => {
    const key = matchKey(match);
    return !keys.has(key) || (match.isGuard && openKeys.has(key));
  });
}

export function* keysOf(matches: readonly RequestMatch[]): Work<ReadonlySet<string>> {
  return new Set(yield* mapInParts(matches, matchKey));
}

/** A redirect asks no auth service either. */
export function isOpen({ bypassAuth, redirect }: Mapping): boolean {
  return bypassAuth || redirect !== undefined;
}
