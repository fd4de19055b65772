/** `Mapping`: from the fields of its record to what the gateway reads, and the paths that a broken one blocks. */
import type { Source } from '../errors.ts';
import { defaultsOf } from '../fields/field.ts';
import type { HeaderRules, HeaderValue } from '../fields/headers.ts';
import { prefixFault, withoutTrailingSlash } from '../fields/paths.ts';
import { recordReader } from './kind.ts';
import { labelExamples } from './labels.ts';
import { type MappingFields, mappingFields } from './mapping-fields.ts';
import { mappingRules } from './mapping-rules.ts';
import { isPathAlone, type RequestMatch, requestMatchOf } from './match.ts';
import { type Redirect, redirectOf } from './rewrite.ts';

/** Fields that become something else, alone or together. */
const combined = [
  ...(['prefix', 'prefixExact', 'prefixRegex', 'caseSensitive', 'host', 'hostRegex', 'hostname'] as const),
  ...(['method', 'methodRegex', 'headers', 'regexHeaders', 'queryParameters', 'regexQueryParameters'] as const),
  ...(['precedence', 'rewrite', 'hostRedirect', 'pathRedirect', 'prefixRedirect', 'regexRedirect'] as const),
  ...(['redirectResponseCode', 'addRequestHeaders', 'removeRequestHeaders'] as const),
  ...(['addResponseHeaders', 'removeResponseHeaders'] as const),
] satisfies readonly (keyof MappingFields)[];

type PlainFields = Omit<MappingFields, (typeof combined)[number]>;

const plainKeys = Object.keys(mappingFields).filter((key) => !combined.some((one) => one === key));

/** The requests that match go to `service`. mapping-fields.ts describes the fields. */
export interface Mapping extends RequestMatch, PlainFields {
  readonly kind: 'Mapping';
  /** Replaces the matched prefix; `''` leaves the path alone. */
  readonly rewrite: string;
  readonly redirect: Redirect | undefined;
  readonly requestHeaders: HeaderRules;
  readonly responseHeaders: HeaderRules;
  readonly source: Source;
}

export const readMapping = recordReader({
  fields: mappingFields,
  rules: mappingRules,
  innerExamples: labelExamples,
  become: toMapping,
});

/** Names what becomes of the fields that are combined, and passes on the others. */
function toMapping(fields: MappingFields, source: Source): Mapping {
  return {
    kind: 'Mapping',
    ...plainFields(fields),
    ...requestMatchOf(fields),
    rewrite: fields.rewrite ?? (fields.prefixRegex ? '' : '/'),
    redirect: redirectOf(fields),
    requestHeaders: headerRulesOf(fields.addRequestHeaders, fields.removeRequestHeaders),
    responseHeaders: headerRulesOf(fields.addResponseHeaders, fields.removeResponseHeaders),
    source,
  };
}

/** By a loop over known keys, which is several times as fast as leaving the others out with a rest pattern. */
function plainFields(fields: MappingFields): PlainFields {
  const plain: Record<string, unknown> = {};
  for (const key of plainKeys) plain[key] = Reflect.get(fields, key);
  return plain as unknown as PlainFields;
}

const noRules: HeaderRules = Object.freeze({ add: Object.freeze([]), remove: Object.freeze([]) });

function headerRulesOf(add: readonly HeaderValue[] = [], remove: readonly string[] = []): HeaderRules {
  return add.length + remove.length === 0 ? noRules : { add, remove };
}

type Required = 'kind' | 'name' | 'prefix' | 'service' | 'source';

/** A Mapping without its required fields: the values of a record that gives no others. */
export const mappingDefaults: Omit<Mapping, Required> = defaultMapping();

function defaultMapping(): Omit<Mapping, Required> {
  const fields = { ...defaultsOf(mappingFields), prefix: '/' };
  const {
    kind: _kind,
    name: _name,
    prefix: _prefix,
    service: _service,
    source: _source,
    ...defaults
  } = toMapping(fields, { file: '', line: 1 });
  return defaults;
}

/** A path of a broken Mapping, with everything below it: its requests must not fall through to a broader mapping, which may be open. */
export interface BlockedMatch extends Pick<Mapping, 'caseSensitive' | 'precedence'> {
  readonly name: string;
  readonly prefix: string;
  readonly source: Source;
}

/** The path of a record that cannot be read, as far as it is given. */
export function blockedByValue(value: unknown, source: Source): readonly BlockedMatch[] {
  const fields = Object(value) as Readonly<Record<string, unknown>>;
  const { kind, name, prefix, precedence } = fields;
  if (kind !== 'Mapping' || fields['prefix_regex'] === true || fields['shadow'] === true) return [];
  if (typeof prefix !== 'string' || prefixFault(prefix) !== undefined) return [];
  const match = {
    name: typeof name === 'string' ? name : '',
    prefix: withoutTrailingSlash(prefix),
    caseSensitive: fields['case_sensitive'] !== false,
    precedence: Number.isInteger(precedence) ? Number(precedence) : mappingDefaults.precedence,
    source,
  };
  return [blocked(match, !conditions.some((key) => fields[mappingFields[key].name] !== undefined))];
}

const conditions = [
  'host',
  'hostname',
  'method',
  'headers',
  'regexHeaders',
  'queryParameters',
  'regexQueryParameters',
] as const;

/** The path of a mapping that clashes with another record. */
export function blockedByMapping(mapping: Mapping): readonly BlockedMatch[] {
  const { name, prefix, prefixMatch, caseSensitive, precedence, source } = mapping;
  if (prefixMatch === 'regex' || mapping.shadow) return [];
  return [blocked({ name, prefix, caseSensitive, precedence, source }, isPathAlone(mapping))];
}

/** A mapping with more conditions was not for all requests of its path, so these must still reach mappings of lower precedence. */
function blocked(match: BlockedMatch, isForWholePath: boolean): BlockedMatch {
  return isForWholePath ? match : { ...match, precedence: Math.min(match.precedence, mappingDefaults.precedence) };
}
