/** A rule's conditions on path, host, method, headers and query. Each has a test and explains why it fails. */
import type { IncomingHttpHeaders } from 'node:http';
import {
  compileIgnoringCase,
  compilePattern,
  foldsCase,
  type HostMatch,
  type Mapping,
  type NamedMatch,
  type Pattern,
  type TextMatch,
} from '#config';
import { decodeByte, textFromBytes } from '#foundation';
import { decodeHeader } from '#http';

type RuleField =
  | 'name'
  | 'prefix'
  | 'prefixMatch'
  | 'caseSensitive'
  | 'host'
  | 'method'
  | 'headers'
  | 'queryParameters'
  | 'precedence'
  | 'weight'
  | 'shadow'
  | 'sticky'
  | 'gatewayRoute';

/** Determines which requests a route receives. Every Mapping is a rule. */
export interface Rule extends Pick<Mapping, RuleField> {
  /** Marks a built-in route of the server, which loses to a mapping with the same prefix. @default false */
  readonly internal?: boolean | undefined;
  /** Makes a pattern ignore case and a slash at the end of the path. @default false */
  readonly isLenient?: boolean | undefined;
}

/** The attributes of a request that rules match. `path` is sanitised; `search` is `''` or starts with `?`. */
export interface RequestAttributes {
  readonly method: string;
  readonly path: string;
  readonly search: string;
  /** The public host in lower case, without port and trailing dot. `''` if unknown. */
  readonly host: string;
  /** The request headers, without any identity headers that the client sent. */
  readonly headers: IncomingHttpHeaders;
  /** The client's IP address, as trusted proxies report it. */
  readonly client: string;
  /** The protocol of the connection to this process, whatever proxies report. */
  readonly listener: 'http' | 'https';
}

/** The view of a request that conditions test. Expensive parts are computed lazily and at most once. */
export interface RequestView {
  readonly attributes: RequestAttributes;
  readonly host: string;
  readonly query: Query;
}

/** Leaves out the host and the query when no rule reads them. */
export function createRequestViews(rules: readonly Rule[]): (attributes: RequestAttributes) => RequestView {
  let readsHost = false;
  const names = new Set<string>();
  for (const { host, queryParameters, gatewayRoute } of rules) {
    readsHost ||= host !== undefined || (gatewayRoute?.otherHosts.length ?? 0) > 0;
    for (const { name } of queryParameters) names.add(name);
  }
  const emptyQuery = createQuery('', names);
  return (attributes) => ({
    attributes,
    host: readsHost ? attributes.host : '',
    query: names.size === 0 ? emptyQuery : createQuery(attributes.search, names),
  });
}

export type Part = 'listener' | 'path' | 'host' | 'method' | 'header' | 'query';

export interface Condition {
  readonly part: Part;
  readonly holds: (view: RequestView) => boolean;
  /** Explains why the condition fails: `the method is POST, not GET`. */
  readonly reason: (view: RequestView) => string;
}

/** Returns the cheapest conditions first. Throws TypeError for a pattern that does not compile. */
export function conditionsOf({ host, method, headers, queryParameters, gatewayRoute }: Rule): readonly Condition[] {
  const { scheme: listener, otherHosts = [] } = gatewayRoute ?? {};
  return [
    ...(listener === undefined ? [] : [listenerCondition(listener)]),
    ...(method === undefined ? [] : [methodCondition(method)]),
    ...(host === undefined ? [] : [hostCondition(host)]),
    ...(otherHosts.length === 0 ? [] : [otherHostsCondition(otherHosts)]),
    ...headers.map(headerCondition),
    ...queryParameters.map(queryCondition),
  ];
}

/** The path condition of a rule. For literal prefixes, the table checks the same with its tree. */
export function pathCondition(rule: Rule): Condition {
  const { prefix, prefixMatch } = rule;
  if (prefixMatch === 'regex') {
    const matches = rule.isLenient ? lenientMatches(prefix) : compileOrThrow(prefix).matches;
    return {
      part: 'path',
      holds: ({ attributes }) => matches(attributes.path),
      reason: ({ attributes }) => `the path ${attributes.path} does not match ${prefix}`,
    };
  }
  const folded = foldsCase(rule) ? (text: string) => text.toLowerCase() : (text: string) => text;
  const start = folded(prefix);
  const relation = prefixMatch === 'exact' ? 'is not' : 'is not under';
  return {
    part: 'path',
    holds: ({ attributes }) => startsWith(folded(attributes.path), start, prefixMatch === 'exact'),
    reason: ({ attributes }) => `the path ${attributes.path} ${relation} ${prefix}`,
  };
}

function lenientMatches(pattern: string): Pattern['matches'] {
  const { matches } = compileIgnoringCase(pattern);
  return (path) => matches(path) || matches(path.endsWith('/') ? path.slice(0, -1) : `${path}/`);
}

function startsWith(path: string, prefix: string, isExact: boolean): boolean {
  if (path === prefix) return true;
  return !isExact && (prefix === '/' || path.startsWith(`${prefix}/`));
}

function listenerCondition(expected: RequestAttributes['listener']): Condition {
  return {
    part: 'listener',
    holds: ({ attributes }) => attributes.listener === expected,
    reason: ({ attributes }) => `the connection is ${attributes.listener}, not ${expected}`,
  };
}

function methodCondition(match: TextMatch): Condition {
  const { test, words } = textTest(match);
  return {
    part: 'method',
    holds: ({ attributes }) => test(attributes.method),
    reason: ({ attributes }) => `the method is ${attributes.method}, ${words}`,
  };
}

function hostCondition(match: HostMatch): Condition {
  const { test, words } = hostTest(match);
  return {
    part: 'host',
    holds: ({ host }) => test(host),
    reason: ({ host }) => `the host is ${host || 'unknown'}, ${words}`,
  };
}

function otherHostsCondition(hosts: readonly string[]): Condition {
  const exact = new Set(hosts);
  const suffixes = hosts.filter((host) => host.startsWith('*')).map((host) => host.slice(1));
  return {
    part: 'host',
    holds: ({ host }) => !exact.has(host) && !suffixes.some((suffix) => host.endsWith(suffix)),
    reason: ({ host }) => `the host ${host} belongs to another listener of the Gateway`,
  };
}

function hostTest(match: HostMatch): TextTest {
  if (match.kind === 'regex') return textTest(match);
  const { kind, value } = match;
  // As in Envoy's virtual hosts, a star matches at least one character.
  if (kind === 'suffix')
    return { test: (host) => host.length > value.length && host.endsWith(value), words: `not *${value}` };
  if (kind === 'prefix')
    return { test: (host) => host.length > value.length && host.startsWith(value), words: `not ${value}*` };
  return { test: (host) => host === value, words: `not ${value}` };
}

function headerCondition({ name, match }: NamedMatch): Condition {
  return namedCondition('header', name, match, ({ attributes }) => headerText(attributes.headers[name]));
}

function queryCondition({ name, match }: NamedMatch): Condition {
  return namedCondition('query', name, match, ({ query }) => query.first(name));
}

/** The reason reveals neither the request's value, which may be a credential, nor the rule's, which may be a secret. */
function namedCondition(
  part: Part,
  name: string,
  match: TextMatch,
  read: (view: RequestView) => string | undefined,
): Condition {
  const { test } = textTest(match);
  const subject = `the ${part === 'query' ? 'query parameter' : part} ${name}`;
  const holds = (value: string | undefined) => value !== undefined && test(value);
  return {
    part,
    holds: (view) => holds(read(view)),
    reason: (view) => `${subject} ${read(view) === undefined ? 'is missing' : 'has a different value'}`,
  };
}

interface TextTest {
  readonly test: (text: string) => boolean;
  /** Comes after the actual value in a reason: `not GET`. */
  readonly words: string;
}

function textTest(match: TextMatch): TextTest {
  if (match.kind === 'present') return { test: () => true, words: 'which is enough' };
  if (match.kind === 'exact') return { test: (text) => text === match.value, words: `not ${match.value}` };
  const { matches } = compileOrThrow(match.pattern);
  return { test: matches, words: `which does not match ${match.pattern}` };
}

/** Joins the list that Node returns for `set-cookie`. Ignores inherited properties such as `constructor`. */
function headerText(value: unknown): string | undefined {
  if (typeof value === 'string') return decodeHeader(value);
  return Array.isArray(value) ? decodeHeader(value.join(', ')) : undefined;
}

export interface Query {
  /** Returns the first value of a parameter, or undefined when the query does not contain it. */
  readonly first: (name: string) => string | undefined;
}

/**
 * Parses the query as a form, like most services do (WHATWG URL, application/x-www-form-urlencoded): `+` is a space,
 * and names and values are percent-decoded as UTF-8, so that `?%61dmin=1` cannot slip past a rule for `admin`. Parsing
 * happens on the first read and retains only the parameters in `names`.
 */
export function createQuery(search: string, names: ReadonlySet<string>): Query {
  let values: ReadonlyMap<string, string> | undefined;
  return {
    first(name) {
      values ??= firstValues(search, names);
      return values.get(name);
    },
  };
}

function firstValues(search: string, names: ReadonlySet<string>): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  let start = 1;
  while (start < search.length && values.size < names.size) {
    const ampersand = search.indexOf('&', start);
    const end = ampersand === -1 ? search.length : ampersand;
    const pair = search.slice(start, end);
    const equals = pair.indexOf('=');
    const name = decode(equals === -1 ? pair : pair.slice(0, equals));
    if (names.has(name) && !values.has(name)) values.set(name, equals === -1 ? '' : decode(pair.slice(equals + 1)));
    start = end + 1;
  }
  return values;
}

/**
 * Leaves a broken escape as it is, and replaces invalid UTF-8 with U+FFFD. `decodeURIComponent`, which URLSearchParams
 * also uses, throws for both: 16 KiB of such escapes would take a tenth of a second. Node decodes unescaped bytes as
 * Latin-1.
 */
function decode(text: string): string {
  const bytes = /[%+]/.test(text) ? text.replaceAll('+', ' ').replace(/%[\da-f]{2}/gi, decodeByte) : text;
  return textFromBytes(bytes);
}

/** Throws TypeError for a bad pattern of a rule that was created in code. Patterns in records are validated at load. */
export function compileOrThrow(text: string): Pattern {
  const result = compilePattern(text);
  if (!result.ok) throw new TypeError(`${result.fault.message}. ${result.fault.remedy}`);
  return result.pattern;
}
