/** Places that broken mappings keep: a request for one must not fall through to a broader mapping, which may be open. */
import type { HeldPrefix, Mapping } from './gateway-records.ts';
import { mappingDefaults } from './mapping-defaults.ts';
import { prefixFault, withoutTrailingSlash } from './paths.ts';
import type { Source } from './source.ts';

/** Of a record that cannot be read, as far as it says where it belongs. */
export function heldByValue(value: unknown, source: Source): readonly HeldPrefix[] {
  const { kind, name, prefix, prefix_regex: isRegex, ...rest } = Object(value) as Record<string, unknown>;
  const { shadow, precedence, case_sensitive: caseSensitive } = rest;
  if (kind !== 'Mapping' || isRegex === true || shadow === true) return [];
  if (typeof prefix !== 'string' || prefixFault(prefix) !== undefined) return [];
  const place = {
    name: typeof name === 'string' ? name : '',
    prefix: withoutTrailingSlash(prefix),
    caseSensitive: caseSensitive !== false,
    precedence: Number.isInteger(precedence) ? Number(precedence) : mappingDefaults.precedence,
    source,
  };
  return [heldPlace(place, !conditions.some((field) => rest[field] !== undefined))];
}

/** Of a mapping that is right by itself, and not beside the others. */
export function heldByMapping(mapping: Mapping): readonly HeldPrefix[] {
  const { name, prefix, prefixMatch, caseSensitive, precedence, source } = mapping;
  if (prefixMatch === 'regex' || mapping.shadow) return [];
  const { host, method, headers, queryParameters } = mapping;
  const isPathAlone = !host && !method && headers.length + queryParameters.length === 0;
  return [heldPlace({ name, prefix, caseSensitive, precedence, source }, isPathAlone)];
}

const conditions = [
  'host',
  'hostname',
  'method',
  'headers',
  'regex_headers',
  'query_parameters',
  'regex_query_parameters',
];

/** What asks for more than a path was not for all requests there, which must not be kept from mappings of lower precedence. */
function heldPlace(place: HeldPrefix, isPathAlone: boolean): HeldPrefix {
  return isPathAlone ? place : { ...place, precedence: Math.min(place.precedence, mappingDefaults.precedence) };
}
