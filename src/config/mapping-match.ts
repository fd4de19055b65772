/** Which requests a Mapping takes: path, host, method, headers and query. */
import * as z from 'zod';
import { either } from './choices.ts';
import { text, wholeNumber } from './fields.ts';
import type { Mapping } from './gateway-records.ts';
import { headerMap, type Named } from './header-fields.ts';
import { globFault } from './host-match.ts';
import { mappingDefaults } from './mapping-defaults.ts';
import type { NamedMatch, TextMatch } from './mapping-parts.ts';
import { patternFault } from './pattern.ts';

const pattern = text(patternFault);

/** The value, or `true` where it is enough that it is there. */
const textOrTrue = either<string | true>((value) => (value === true ? z.literal(true) : z.string()));

/** What is right of one field may still be wrong beside another: mapping-rules.ts. */
export const matchFields = {
  prefix: z.string(),
  prefix_exact: z.boolean().default(false),
  prefix_regex: z.boolean().default(false),
  case_sensitive: z.boolean().default(true),
  host: z.string().optional(),
  host_regex: z.boolean().default(false),
  hostname: text(globFault).optional(),
  method: z.string().optional(),
  method_regex: z.boolean().default(false),
  headers: headerMap(textOrTrue).optional(),
  regex_headers: headerMap(pattern).optional(),
  query_parameters: z.record(z.string(), textOrTrue).optional(),
  regex_query_parameters: z.record(z.string(), pattern).optional(),
  precedence: wholeNumber(-1_000_000, 1_000_000).default(0),
} as const;

type MatchFields = z.infer<z.ZodObject<typeof matchFields>>;

export function prefixMatchOf({ prefix_exact: isExact, prefix_regex: isRegex }: MatchFields): Mapping['prefixMatch'] {
  if (isRegex) return 'regex';
  return isExact ? 'exact' : 'segments';
}

export function methodOf({ method, method_regex: isRegex }: MatchFields): TextMatch | undefined {
  if (method === undefined) return undefined;
  return isRegex ? { kind: 'regex', pattern: method } : { kind: 'exact', value: method };
}

export function headersOf({ headers = none, regex_headers: regexHeaders = none }: MatchFields): readonly NamedMatch[] {
  if (headers.length + regexHeaders.length === 0) return mappingDefaults.headers;
  return [...exact(headers), ...regex(regexHeaders)];
}

export function queryParametersOf(fields: MatchFields): readonly NamedMatch[] {
  const { query_parameters: parameters, regex_query_parameters: regexParameters } = fields;
  if (parameters === undefined && regexParameters === undefined) return mappingDefaults.queryParameters;
  return [...exact(listed(parameters)), ...regex(listed(regexParameters))];
}

const none: readonly never[] = [];

function exact(list: readonly Named<string | true>[]): NamedMatch[] {
  return list.map(({ name, value }) => ({
    name,
    match: value === true ? { kind: 'present' } : { kind: 'exact', value },
  }));
}

function regex(list: readonly Named<string>[]): NamedMatch[] {
  return list.map(({ name, value }) => ({ name, match: { kind: 'regex', pattern: value } }));
}

function listed<T>(map: Readonly<Record<string, T>> | undefined): Named<T>[] {
  return map === undefined ? [] : Object.entries(map).map(([name, value]) => ({ name, value }));
}
