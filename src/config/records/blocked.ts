/** Blocks the requests of a broken Mapping, so that they do not fall through to another mapping that may be open. */
import { type PlacedFault, type Source, suggestion } from '../errors.ts';
import { mapInParts, type Work } from '../work.ts';
import type { Mapping } from './mapping.ts';
import { mappingFields } from './mapping-fields.ts';
import { type MatchFields, matchKey, matchKeys, type RequestMatch, requestMatchOf } from './match.ts';

/** The requests that a broken Mapping would match. It has the same place in the matching order as the Mapping. */
export interface BlockedMatch extends RequestMatch {
  readonly name: string;
  /** False when the Mapping requires no credentials. */
  readonly isGuard: boolean;
  readonly source: Source;
}

/** The consequences of a Mapping that is broken. */
export interface Containment {
  readonly blocked: readonly BlockedMatch[];
  /** False when the requests that it guarded are unknown, so that the rest cannot be served safely. */
  readonly isContained: boolean;
}

/**
 * Finds the requests to block for a Mapping with these faults. They are unknown if a fault may affect its conditions.
 */
export function containMapping(
  fields: Readonly<Record<string, unknown>>,
  faults: readonly PlacedFault[],
  source: Source,
): Containment {
  if (fields['shadow'] === true) return { blocked: [], isContained: true };
  const isGuard = fields['bypass_auth'] !== true || fields['auth_service'] !== undefined;
  const match = faults.some(affectsMatch) ? undefined : readMatch(fields);
  if (match === undefined) return { blocked: [], isContained: !isGuard };
  const name = typeof fields['name'] === 'string' ? fields['name'] : '';
  return { blocked: [{ ...match, name, isGuard, source }], isContained: true };
}

const matchNames = new Set(matchKeys.map((key) => mappingFields[key].name));
const names = ['apiVersion', 'kind', ...Object.values(mappingFields).map(({ name }) => name)];

/** Treats a mistyped key as the most similar field. A key that resembles no field may affect the match. */
function affectsMatch({ path: [key] }: PlacedFault): boolean {
  const name = typeof key === 'string' ? suggestion(key, names) : undefined;
  return name === undefined || matchNames.has(name);
}

/** Returns undefined when a field of the match is missing or invalid. */
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
  // The loop fills in every key, but the compiler cannot verify that.
  return requestMatchOf(match as unknown as MatchFields);
}

/** Returns the requests to block for a valid mapping that is in conflict with another record. */
export function blockedByMapping(mapping: Mapping): readonly BlockedMatch[] {
  if (mapping.shadow) return [];
  const { name, prefix, prefixMatch, caseSensitive, host, method, headers, queryParameters, precedence } = mapping;
  const match = { prefix, prefixMatch, caseSensitive, host, method, headers, queryParameters, precedence };
  return [{ ...match, name, isGuard: !isOpen(mapping), source: mapping.source }];
}

/**
 * Removes the blocks whose requests a valid mapping with the same match may serve: a good canary continues without the
 * broken one. An open mapping never serves requests that the broken one guarded.
 */
export function* unservedBlocks(
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

/** Reports whether the mapping requires no authentication, like every redirect. */
export function isOpen({ bypassAuth, redirect }: Mapping): boolean {
  return bypassAuth || redirect !== undefined;
}
