/** What is left of a refused Mapping: its match, whose requests get 503, and its rules of access. */
import { type Fields, isMap } from '#foundation';
import type { ConfigDocument } from '../errors.ts';
import type { Mapping } from '../records/mapping.ts';
import { groupKeys, mappingFields } from '../records/mapping-fields.ts';
import { matchKeys } from '../records/match.ts';
import { readRecord } from '../records/record.ts';
import { type ClusterObject, nameOfObject } from './object.ts';
import { nameIn } from './references.ts';

/** Stands for the service of what is refused while the rest of it is read. */
export const refusedService = 'refused.invalid';

/** The names of the fields that say which requests a Mapping matches. */
const matchNames: readonly string[] = matchKeys.map((key) => mappingFields[key].name);

/** The names of the fields that all Mappings must have in common that share requests. */
const groupNames: readonly string[] = groupKeys.map((key) => mappingFields[key].name);

/**
 * Returns a Mapping with the match of a document, its weight, and its rules of access, which others that share its requests
 * must have too. Undefined for what guards nothing.
 */
export function refusedMapping(document: ConfigDocument, object: ClusterObject): Mapping | 'unknown' | undefined {
  const { value, faults = [] } = document;
  if (!isMap(value) || value['kind'] !== 'Mapping' || value['shadow'] === true) return undefined;
  const isWrong = (names: readonly string[]) => faults.some(({ path: [first] }) => names.includes(String(first)));
  if (isWrong(matchNames)) return 'unknown';
  const parts = readableParts(value, object, isWrong(groupNames));
  const read = (part: Fields | undefined) => {
    const result = readRecord({ ...document, value: part, faults: [] });
    return result.ok && result.record.kind === 'Mapping' ? result.record : undefined;
  };
  // The last part has the match alone. Without it, no other is worth the time.
  const least = read(parts.at(-1));
  if (least === undefined) return 'unknown';
  let most: Mapping | undefined;
  for (const part of parts.slice(0, -1)) most ??= read(part);
  return { ...(most ?? least), service: '', refusal: `${nameOfObject(object)} is refused` };
}

/** Returns the match of a refused Mapping with less and less of the rest, which may be what is wrong. */
function readableParts(value: Fields, object: ClusterObject, isAccessWrong: boolean): readonly Fields[] {
  const only = (names: readonly string[]) =>
    Object.fromEntries(Object.entries(value).filter(([name]) => names.includes(name)));
  const head = { apiVersion: 'gateway/v1', kind: 'Mapping', service: refusedService, ...only(matchNames) };
  // No AuthService has this name, so no other Mapping has the same rules.
  const unknown = { auth_service: nameOfObject(object) };
  const names = [only(['name']), { name: nameIn(object.namespace, object.name) }];
  const weights = [only(['weight']), {}];
  return (isAccessWrong ? [unknown] : [only(groupNames), unknown]).flatMap((access) =>
    weights.flatMap((weight) => names.map((name) => ({ ...head, ...access, ...weight, ...name }))),
  );
}
