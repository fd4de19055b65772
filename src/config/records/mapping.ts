/** `Mapping`, the record of a route, built from the fields of its document. */
import type { Source } from '../errors.ts';
import { defaultsOf } from '../fields/field.ts';
import type { HeaderRules, HeaderValue } from '../fields/headers.ts';
import { recordReader } from './kind.ts';
import { labelExamples } from './labels.ts';
import { type MappingFields, mappingFields } from './mapping-fields.ts';
import { mappingRules } from './mapping-rules.ts';
import { matchKeys, type RequestMatch, requestMatchOf } from './match.ts';
import { type Redirect, redirectOf } from './rewrite.ts';

/** Fields of the record that a Mapping contains only in converted form or combined with others. */
const combined = [
  ...matchKeys,
  ...(['rewrite', 'hostRedirect', 'pathRedirect', 'prefixRedirect', 'regexRedirect'] as const),
  ...(['redirectResponseCode', 'addRequestHeaders', 'removeRequestHeaders'] as const),
  ...(['addResponseHeaders', 'removeResponseHeaders'] as const),
] satisfies readonly (keyof MappingFields)[];

type PlainFields = Omit<MappingFields, (typeof combined)[number]>;

const plainKeys = Object.keys(mappingFields).filter((key) => !combined.some((one) => one === key));

/** Routes matching requests to `service`. mapping-fields.ts describes the fields. */
export interface Mapping extends RequestMatch, PlainFields {
  readonly kind: 'Mapping';
  /** Replaces the matched prefix. `''` leaves the path unchanged. */
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
  toRecord: toMapping,
});

/** Converts the combined fields and copies the others. */
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

/**
 * Copies the fields in a loop over known keys, which is several times as fast as a rest pattern that omits the others.
 */
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

/** The values of the optional fields in a Mapping that sets none of them. */
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
