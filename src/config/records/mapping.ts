/** `Mapping`, the record of a route: built from its fields, with the rules about fields that exclude each other. */
import type { Source } from '#foundation';
import type { Fault } from '../errors.ts';
import { hostSchema } from '../fields/addresses.ts';
import { defaultsOf, type Given, type Rule } from '../fields/field.ts';
import type { HeaderRules, HeaderValue } from '../fields/headers.ts';
import { eitherOf, isEmpty, isGiven, isMissing, isTrue, isUntrue, type JsonSchema } from '../fields/json-schema.ts';
import { pathSchema, prefixFault, withUpperCaseEncoding } from '../fields/paths.ts';
import { patternFault } from '../fields/pattern.ts';
import { flag, methodFault, methodSchema } from '../fields/values.ts';
import type { GatewayRoute } from '../gateway-api/gateway-route.ts';
import { quote } from '../quote.ts';
import { tlsFault, tlsSchema } from '../tls/upstream-tls.ts';
import { recordReader } from './kind.ts';
import { labelExamples } from './labels.ts';
import { callKeys, type MappingFields, mappingFields } from './mapping-fields.ts';
import { hostFault, matchKeys, type RequestMatch, requestMatchOf } from './match.ts';
import { type Redirect, redirectOf } from './rewrite.ts';
import { grpcCheckFault, grpcConditionFault } from './upstream-fields.ts';

/** Fields of the record that a Mapping contains only in converted form or combined with others. */
const combined = [
  ...matchKeys,
  'rewrite',
  'hostRedirect',
  'pathRedirect',
  'prefixRedirect',
  'regexRedirect',
  'redirectResponseCode',
  'addRequestHeaders',
  'removeRequestHeaders',
  'addResponseHeaders',
  'removeResponseHeaders',
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
  /** Why its requests get 503, if its object of a cluster is refused. Always undefined in a record from a file. */
  readonly refusal: string | undefined;
  /** Whether it is from a namespace of a cluster that is not trusted, so that its service must not be this machine. */
  readonly isUntrusted: boolean;
  /** Undefined in a record, which has no route of the Gateway API. */
  readonly gatewayRoute: GatewayRoute | undefined;
  readonly source: Source;
}

type Outcome = Pick<Mapping, 'redirect' | 'refusal' | 'gatewayRoute'>;

/** False for a redirect, for a Mapping that is refused, and for one without a backend. */
export function callsService({ redirect, refusal, gatewayRoute }: Outcome): boolean {
  return redirect === undefined && refusal === undefined && gatewayRoute?.fault === undefined;
}

type MappingRule = Rule<typeof mappingFields>;
type GivenFields = Given<typeof mappingFields>;

const pathRedirects = ['pathRedirect', 'prefixRedirect', 'regexRedirect'] as const;

/** The fields that make a mapping a redirect. */
const redirects = ['hostRedirect', ...pathRedirects] as const;

const pathRedirectNames = pathRedirects.map((key) => mappingFields[key].name);

/** Which fields exclude or require each other. */
const mappingRules: readonly MappingRule[] = [
  {
    at: 'prefix',
    reads: ['prefixRegex'],
    faultOf: ({ prefix = '', prefixRegex }) => (prefixRegex ? pathPatternFault(prefix) : prefixFault(prefix)),
    schema: eitherOf(
      [isTrue('prefix_regex'), { properties: { prefix: pathSchema } }],
      'prefix must be a path such as /v1, unless prefix_regex is true',
    ),
  },
  {
    at: 'prefixExact',
    reads: ['prefix', 'prefixRegex'],
    faultOf: exactFault,
    schema: eitherOf(
      [isUntrue('prefix_exact'), isUntrue('prefix_regex')],
      'prefix_exact cannot be combined with prefix_regex',
    ),
  },
  {
    at: 'caseSensitive',
    reads: ['prefixRegex'],
    faultOf: ({ caseSensitive, prefixRegex }) =>
      prefixRegex && caseSensitive === false
        ? conflictsWith('prefix_regex', 'Put (?i) at the start of the regex.')
        : undefined,
  },
  {
    at: 'host',
    reads: ['hostRegex', 'hostname'],
    present: { of: ['host', 'hostname'], max: 1 },
    faultOf({ host, hostRegex, hostname }) {
      if (host === undefined) return undefined;
      if (hostname !== undefined) return conflictsWith('hostname', 'Keep one of the two.');
      return hostRegex ? patternFault(host) : hostFault(host);
    },
    schema: eitherOf(
      [isTrue('host_regex'), { properties: { host: hostSchema } }],
      'host must be a name without scheme, port and path, unless host_regex is true',
    ),
  },
  {
    at: 'hostRegex',
    reads: ['host'],
    faultOf: ({ host, hostRegex }) => (hostRegex && host === undefined ? noEffectWithout('host') : undefined),
    schema: eitherOf([isUntrue('host_regex'), isGiven('host')], 'host_regex needs host'),
  },
  {
    at: 'method',
    reads: ['methodRegex'],
    faultOf({ method, methodRegex }) {
      if (method === undefined) return undefined;
      return methodRegex ? patternFault(method) : methodFault(method);
    },
    schema: eitherOf(
      [isTrue('method_regex'), { properties: { method: methodSchema } }],
      'method must be one method in upper case, unless method_regex is true',
    ),
  },
  {
    at: 'methodRegex',
    reads: ['method'],
    faultOf: ({ method, methodRegex }) => (methodRegex && method === undefined ? noEffectWithout('method') : undefined),
    schema: eitherOf([isUntrue('method_regex'), isGiven('method')], 'method_regex needs method'),
  },
  {
    at: 'rewrite',
    reads: ['regexRewrite', 'prefixRegex'],
    present: { of: ['rewrite', 'regexRewrite'], max: 1 },
    faultOf({ rewrite, regexRewrite, prefixRegex }) {
      if (rewrite === undefined) return undefined;
      if (regexRewrite !== undefined) return conflictsWith('regex_rewrite', 'Keep one of the two.');
      return prefixRegex && rewrite !== ''
        ? conflictsWith('prefix_regex', 'Set regex_rewrite: a regex has no prefix.')
        : undefined;
    },
  },
  {
    at: 'retryPolicy',
    reads: ['timeoutMs'],
    faultOf({ retryPolicy, timeoutMs: whole = 0 }) {
      const each = retryPolicy?.perTryTimeoutMs ?? 0;
      return whole > 0 && each > whole
        ? {
            message: `allows each attempt ${each} ms, but timeout_ms allows all of them ${whole} ms`,
            remedy: 'Make per_try_timeout shorter: timeout_ms covers all attempts together.',
          }
        : undefined;
    },
  },
  {
    at: 'http2',
    reads: ['allowUpgrade'],
    schema: eitherOf([isUntrue('http2'), isEmpty('allow_upgrade')], 'http2 cannot be combined with allow_upgrade'),
    faultOf: ({ http2, allowUpgrade = [] }) =>
      http2 && allowUpgrade.length > 0
        ? conflictsWith('allow_upgrade', 'Give requests for an upgrade a mapping without http2.')
        : undefined,
  },
  {
    at: 'preserveHeaderCase',
    reads: ['http2'],
    schema: eitherOf(
      [isUntrue('preserve_header_case'), isUntrue('http2')],
      'preserve_header_case cannot be combined with http2',
    ),
    faultOf: ({ preserveHeaderCase, http2 }) =>
      preserveHeaderCase && http2
        ? conflictsWith('http2', 'Keep one of the two: HTTP/2 has only names in lower case.')
        : undefined,
  },
  {
    at: 'authService',
    reads: ['bypassAuth'],
    schema: eitherOf(
      [isUntrue('bypass_auth'), isMissing('auth_service')],
      'auth_service cannot be combined with bypass_auth',
    ),
    faultOf: ({ authService, bypassAuth }) =>
      bypassAuth && authService !== undefined ? conflictsWith('bypass_auth: true', 'Keep one of the two.') : undefined,
  },
  {
    at: 'keepRequestHeaders',
    reads: ['shadow'],
    faultOf: ({ keepRequestHeaders = [], shadow }) =>
      shadow && keepRequestHeaders.length > 0
        ? {
            message: 'has no effect on a shadow, which gets copies of requests to another mapping',
            remedy: 'Set it in the mapping whose requests it copies.',
          }
        : undefined,
  },
  {
    at: 'retryPolicy',
    reads: ['grpc'],
    faultOf: ({ retryPolicy, grpc }) =>
      retryPolicy === undefined || grpc ? undefined : grpcConditionFault(retryPolicy),
  },
  {
    at: 'healthCheck',
    reads: ['grpc'],
    faultOf: ({ healthCheck, grpc }) => (healthCheck === undefined || grpc ? undefined : grpcCheckFault(healthCheck)),
  },
  {
    at: 'allowUpgrade',
    reads: ['grpc'],
    schema: eitherOf([isUntrue('grpc'), isEmpty('allow_upgrade')], 'allow_upgrade cannot be combined with grpc'),
    faultOf: ({ allowUpgrade = [], grpc }) =>
      grpc && allowUpgrade.length > 0
        ? conflictsWith('grpc: true', 'Use two mappings: a connection of HTTP/2 does not switch its protocol.')
        : undefined,
  },
  {
    at: 'preserveHeaderCase',
    reads: ['grpc'],
    schema: eitherOf(
      [isUntrue('preserve_header_case'), isUntrue('grpc')],
      'preserve_header_case cannot be combined with grpc',
    ),
    faultOf: ({ preserveHeaderCase, grpc }) =>
      preserveHeaderCase && grpc
        ? conflictsWith('grpc: true', 'Remove it: HTTP/2 has names of headers only in lower case.')
        : undefined,
  },
  { at: 'prefixRedirect', reads: pathRedirects, faultOf: secondPathFault('prefixRedirect', ['pathRedirect']) },
  {
    at: 'regexRedirect',
    reads: pathRedirects,
    faultOf: secondPathFault('regexRedirect', ['pathRedirect', 'prefixRedirect']),
    present: { of: pathRedirects, max: 1 },
  },
  {
    at: 'prefixRedirect',
    reads: ['prefixRegex'],
    schema: eitherOf(
      [isUntrue('prefix_regex'), isMissing('prefix_redirect')],
      'a regex has no prefix: set regex_redirect',
    ),
    faultOf: ({ prefixRedirect, prefixRegex }) =>
      prefixRegex && prefixRedirect !== undefined
        ? conflictsWith('prefix_regex', 'Set regex_redirect: a regex has no prefix.')
        : undefined,
  },
  {
    at: 'redirectResponseCode',
    reads: redirects,
    schema: eitherOf(
      [isTrue('host_redirect'), ...pathRedirectNames.map(isGiven), isMissing('redirect_response_code')],
      'redirect_response_code has no effect without a redirect',
    ),
    faultOf: (given) =>
      given.redirectResponseCode !== undefined && redirectName(given) === undefined
        ? { message: 'has no effect without a redirect', remedy: 'Set host_redirect or path_redirect, or remove it.' }
        : undefined,
  },
  {
    at: 'tls',
    reads: ['service'],
    faultOf: ({ tls, service }) => tlsFault(tls, service),
    schema: tlsSchema('service'),
  },
  ...callKeys.map(
    (key): MappingRule => ({
      at: key,
      reads: redirects,
      faultOf: (given) => callFault(key, given),
      schema: callSchema(key),
    }),
  ),
];

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
    rewrite: fields.rewrite ?? (fields.prefixRegex || fields.grpc ? '' : '/'),
    redirect: redirectOf(fields),
    requestHeaders: headerRulesOf(fields.addRequestHeaders, fields.removeRequestHeaders),
    responseHeaders: headerRulesOf(fields.addResponseHeaders, fields.removeResponseHeaders),
    refusal: undefined,
    isUntrusted: false,
    gatewayRoute: undefined,
    source,
  };
}

/** Copies the fields by their known keys, for each of thousands of mappings. */
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

/** The flags and anchors before the actual start of a pattern. */
const beginning = /^(?:\(\?[a-zA-Z]+\)|\^|\\A)*/;

/**
 * A pattern that is empty or must start with something other than a slash: a letter, `\d`, `[a-z]+` or `(one|other)`.
 */
const withoutSlash = /^\$?$|^(?:\w|\\[.dws]|\[(?:\w(?:-\w)?)+\]|\((?:\?:)?\w+(?:\|\w+)*\))(?![*?{]|.*\(\?\w*\))[^|]*$/;

/** The literal text that every match starts with, in a pattern without alternatives. */
const literal = /^[^\\.()[\]|?*+{}$]*(?!(?:\(\?\w*\))*[?*{])(?=[^|]*$)/;

/** Rejects a pattern that cannot match any path: the routes it was meant to protect would be open. */
function pathPatternFault(pattern: string): Fault | undefined {
  const [before = ''] = beginning.exec(pattern) ?? [];
  const rest = pattern.slice(before.length);
  const fault = patternFault(pattern);
  if (fault !== undefined) return fault;
  if (withoutSlash.test(rest)) return matchesNoPath(pattern, 'a path starts with "/"', `${before}/${rest}`);
  const [start = ''] = pattern.includes('(?i') ? [] : (literal.exec(rest) ?? []);
  const inUpperCase = withUpperCaseEncoding(start);
  return inUpperCase === start
    ? undefined
    : matchesNoPath(
        pattern,
        'percent-encoding is always in upper case',
        before + inUpperCase + rest.slice(start.length),
      );
}

function matchesNoPath(pattern: string, why: string, remedy: string): Fault {
  return { message: `${quote(pattern)} matches no path: ${why}`, remedy: `Write it as ${quote(remedy)}.` };
}

function exactFault({ prefix = '', prefixExact, prefixRegex }: GivenFields): Fault | undefined {
  if (!prefixExact) return undefined;
  if (prefixRegex) return conflictsWith('prefix_regex', 'Keep one of the two: a regex matches the whole path anyway.');
  return prefix.length > 1 && prefix.endsWith('/')
    ? { message: 'needs a prefix without a slash at the end', remedy: `Write prefix: ${quote(prefix.slice(0, -1))}` }
    : undefined;
}

function secondPathFault(
  key: (typeof pathRedirects)[number],
  others: readonly (typeof pathRedirects)[number][],
): MappingRule['faultOf'] {
  return (given) => {
    const other = others.find((earlier) => given[earlier] !== undefined);
    return given[key] === undefined || other === undefined
      ? undefined
      : conflictsWith(mappingFields[other].name, 'Keep one of the two: a redirect has only one target path.');
  };
}

/** What JSON Schema can say about `callFault`. Only a flag can be false instead of missing. */
function callSchema(key: (typeof callKeys)[number]): JsonSchema {
  const { name, type } = mappingFields[key];
  const isUnset = type === flag.type ? isUntrue(name) : isMissing(name);
  return {
    dependencies: Object.fromEntries(pathRedirectNames.map((redirect) => [redirect, isUnset])),
    anyOf: [isUntrue('host_redirect'), isUnset],
    errorMessage: `${name} has no effect with a redirect, which calls no service`,
  };
}

function callFault(key: (typeof callKeys)[number], given: GivenFields): Fault | undefined {
  const redirect = isSet(given[key]) ? redirectName(given) : undefined;
  if (redirect === undefined) return undefined;
  const message = `has no effect with ${redirect}, because a redirect calls no service`;
  return { message, remedy: `Remove ${mappingFields[key].name} or ${redirect}.` };
}

/** Returns the name of the field that makes the mapping a redirect, if there is one. */
function redirectName(given: GivenFields): string | undefined {
  const key = redirects.find((one) => isSet(given[one]));
  return key && mappingFields[key].name;
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== false;
}

function conflictsWith(other: string, remedy: string): Fault {
  return { message: `cannot be combined with ${other}`, remedy };
}

function noEffectWithout(other: string): Fault {
  return { message: `has no effect without ${other}`, remedy: `Add ${other}, or remove this field.` };
}
