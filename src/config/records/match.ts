/** The conditions by which a Mapping matches requests, and keys to compare those of two mappings. */
import { isIPv6 } from 'node:net';
import { domainToASCII } from 'node:url';
import * as z from 'zod';
import type { Fault } from '../errors.ts';
import { hostSchema, isHost } from '../fields/addresses.ts';
import { text } from '../fields/field.ts';
import { headerMap, type Named } from '../fields/headers.ts';
import { requestedPrefix } from '../fields/paths.ts';
import { secretPatternFault } from '../fields/pattern.ts';
import { either } from '../fields/values.ts';
import type { GatewayRoute } from '../gateway-api/gateway-route.ts';
import { mayHoldSecret, quote } from '../quote.ts';

/** The conditions of a Mapping, and its precedence over others that match. */
export interface RequestMatch {
  /**
   * A path that starts with `/` and has no trailing slash (except `/` itself), or a pattern if `prefixMatch` is
   * `regex`.
   */
  readonly prefix: string;
  /** `segments` matches the path and everything below it, `exact` only the path itself, `regex` the whole path. */
  readonly prefixMatch: 'segments' | 'exact' | 'regex';
  /** Applies to the prefix. */
  readonly caseSensitive: boolean;
  readonly host: HostMatch | undefined;
  readonly method: TextMatch | undefined;
  /** All of them must match. */
  readonly headers: readonly NamedMatch[];
  /** All of them must match. Only the first value of a parameter counts. */
  readonly queryParameters: readonly NamedMatch[];
  /** Mappings with a higher precedence are tried first, whatever their prefix. */
  readonly precedence: number;
}

/** The conditions of a Mapping, with those of the route of the Gateway API that it may come from. */
export interface RoutedMatch extends RequestMatch {
  readonly gatewayRoute?: Pick<GatewayRoute, 'place' | 'scheme'> | undefined;
}

/** A condition on one part of a request. A `regex` is in RE2 syntax and must match the whole text. */
export type TextMatch =
  | { readonly kind: 'exact'; readonly value: string }
  | { readonly kind: 'regex'; readonly pattern: string }
  | { readonly kind: 'present' };

/** A condition on a request header (with a lower-case name) or query parameter, which must be present. */
export interface NamedMatch {
  readonly name: string;
  readonly match: TextMatch;
}

/**
 * A condition on the lower-case host without port. `*.example.com` is the suffix `.example.com`, `api.*` the prefix
 * `api.`.
 */
export type HostMatch =
  | { readonly kind: 'exact' | 'suffix' | 'prefix'; readonly value: string }
  | { readonly kind: 'regex'; readonly pattern: string };

const pattern = text(secretPatternFault);

/** The expected value, or `true` if the header or parameter only has to be present. */
const textOrTrue = either((value) => (value === true ? isPresent : isEqual));
const isPresent = z.literal(true);
const isEqual = z.string();

export const headerValues = headerMap(textOrTrue);
export const headerPatterns = headerMap(pattern);
export const parameterValues = z.record(z.string(), textOrTrue);
export const parameterPatterns = z.record(z.string(), pattern);
export const hostGlob = text(globFault, hostSchema);

/** The fields of a record from which `requestMatchOf` builds the conditions. */
export interface MatchFields extends Pick<RequestMatch, 'prefix' | 'caseSensitive' | 'precedence'> {
  readonly prefixExact: boolean;
  readonly prefixRegex: boolean;
  readonly host: string | undefined;
  readonly hostRegex: boolean;
  readonly hostname: string | undefined;
  readonly method: string | undefined;
  readonly methodRegex: boolean;
  readonly headers: readonly Named<string | true>[] | undefined;
  readonly regexHeaders: readonly Named<string>[] | undefined;
  readonly queryParameters: Readonly<Record<string, string | true>> | undefined;
  readonly regexQueryParameters: Readonly<Record<string, string>> | undefined;
}

/** The keys of all these fields. */
export const matchKeys = Object.keys({
  prefix: true,
  prefixExact: true,
  prefixRegex: true,
  caseSensitive: true,
  precedence: true,
  host: true,
  hostRegex: true,
  hostname: true,
  method: true,
  methodRegex: true,
  headers: true,
  regexHeaders: true,
  queryParameters: true,
  regexQueryParameters: true,
} satisfies Record<keyof MatchFields, true>) as readonly (keyof MatchFields)[];

export function requestMatchOf(fields: MatchFields): RequestMatch {
  const { prefix, prefixExact, prefixRegex, caseSensitive, precedence } = fields;
  return {
    prefix: prefixRegex ? prefix : requestedPrefix(prefix),
    prefixMatch: prefixRegex ? 'regex' : prefixExact ? 'exact' : 'segments',
    caseSensitive,
    host: hostMatchOf(fields),
    method: methodMatchOf(fields),
    headers: namedMatches(fields.headers, fields.regexHeaders),
    queryParameters: namedMatches(listed(fields.queryParameters), listed(fields.regexQueryParameters)),
    precedence,
  };
}

function hostMatchOf({ host, hostRegex, hostname }: MatchFields): HostMatch | undefined {
  if (host !== undefined)
    return hostRegex ? { kind: 'regex', pattern: host } : { kind: 'exact', value: asciiHost(host) };
  if (hostname === undefined || hostname === '*') return undefined;
  const glob = asciiHost(hostname);
  if (glob.startsWith('*')) return { kind: 'suffix', value: glob.slice(1) };
  return glob.endsWith('*') ? { kind: 'prefix', value: glob.slice(0, -1) } : { kind: 'exact', value: glob };
}

function methodMatchOf({ method, methodRegex }: MatchFields): TextMatch | undefined {
  if (method === undefined) return undefined;
  return methodRegex ? { kind: 'regex', pattern: method } : { kind: 'exact', value: method };
}

const noMatches: readonly NamedMatch[] = Object.freeze([]);

/** Returns the same empty list for all mappings without such conditions. */
function namedMatches(
  exact: readonly Named<string | true>[] = [],
  regex: readonly Named<string>[] = [],
): readonly NamedMatch[] {
  if (exact.length + regex.length === 0) return noMatches;
  return [
    ...exact.map(
      ({ name, value }): NamedMatch => ({
        name,
        match: value === true ? { kind: 'present' } : { kind: 'exact', value },
      }),
    ),
    ...regex.map(({ name, value }): NamedMatch => ({ name, match: { kind: 'regex', pattern: value } })),
  ];
}

function listed<T>(map: Readonly<Record<string, T>> | undefined): Named<T>[] | undefined {
  return map && Object.entries(map).map(([name, value]) => ({ name, value }));
}

/** Returns the fault of a `host` that is not a regular expression. */
export function hostFault(host: string): Fault | undefined {
  if (isHostName(host)) return undefined;
  if (host.includes('*') && globFault(host) === undefined) {
    return { message: `${quote(host)} contains a "*"`, remedy: `Write hostname: ${quote(host)}` };
  }
  return notAHost(host);
}

/** Returns the fault of a `hostname`. */
function globFault(hostname: string): Fault | undefined {
  const fixed = hostname.replace(/^\*|\*$/, '');
  if (fixed === '' ? hostname === '*' : isHostName(fixed.replace(/^[.-]|[.-]$/g, ''))) return undefined;
  if (!fixed.includes('*')) return notAHost(hostname);
  return {
    message: `${quote(hostname)} may contain a "*" at one end only`,
    remedy: 'Write "*.example.com", "api.*" or "*", or use host with host_regex: true.',
  };
}

function isHostName(host: string): boolean {
  const literal = /^\[(.*)\]$/.exec(host)?.[1];
  return literal === undefined ? !host.includes(':') && isHost(asciiHost(host)) : isIPv6(literal);
}

/** Converts to lower case and to the form that clients send: `bücher.example` is `xn--bcher-kva.example` (RFC 5891). */
function asciiHost(host: string): string {
  const labels = host.split('.').map((label) => (/[^\0-\x7f]/.test(label) ? domainToASCII(label) || label : label));
  return labels.join('.').toLowerCase();
}

function notAHost(host: string): Fault {
  const bare = host.replace(/^\w+:\/\//, '').replace(/[:/].*$/, '');
  return {
    message: `${quote(host)} is not a host name`,
    remedy:
      isHostName(bare) && !mayHoldSecret(host)
        ? `Write it without scheme, port and path: ${quote(bare)}.`
        : 'Write the name that clients use, for example "api.example.com".',
  };
}

/** Reports whether the prefix is matched case-insensitively. Always false for patterns, which use `(?i)` instead. */
export function foldsCase({
  caseSensitive,
  prefixMatch,
}: Pick<RequestMatch, 'caseSensitive' | 'prefixMatch'>): boolean {
  return !caseSensitive && prefixMatch !== 'regex';
}

/** Returns equal texts exactly for mappings that share requests by weight, or copy them. */
export function groupOf(match: RoutedMatch): string {
  const { gatewayRoute } = match;
  return gatewayRoute === undefined ? matchKey(match) : `${gatewayRoute.place}\n${matchKey(match)}`;
}

/** Returns equal keys exactly for mappings with the same conditions, in whatever order they list them. */
export function matchKey(match: RoutedMatch): string {
  const { prefix, prefixMatch, host, method, headers, queryParameters, precedence, gatewayRoute } = match;
  const listener = gatewayRoute?.scheme === undefined ? [] : [gatewayRoute.scheme];
  const folds = foldsCase(match);
  const path = folds ? prefix.toLowerCase() : prefix;
  // The two forms cannot collide: a path starts with a slash, and the JSON list with a bracket.
  const conditions =
    prefixMatch !== 'regex' && isPathAlone(match)
      ? path
      : JSON.stringify([
          path,
          hostKey(host),
          textKey(method),
          namedKey(headers),
          namedKey(queryParameters),
          ...listener,
        ]);
  return `${prefixMatch} ${folds} ${precedence} ${conditions}`;
}

/** Reports whether the path is the only condition. */
export function isPathAlone({ host, method, headers, queryParameters, gatewayRoute }: RoutedMatch): boolean {
  const isAnyListener = gatewayRoute?.scheme === undefined;
  return host === undefined && method === undefined && headers.length + queryParameters.length === 0 && isAnyListener;
}

function hostKey(host: HostMatch | undefined): readonly string[] {
  if (host === undefined) return [];
  return host.kind === 'regex' ? [host.kind, host.pattern] : [host.kind, host.value];
}

function textKey(match: TextMatch | undefined): readonly string[] {
  if (match === undefined) return [];
  if (match.kind === 'present') return [match.kind];
  return match.kind === 'regex' ? [match.kind, match.pattern] : [match.kind, match.value];
}

function namedKey(matches: readonly NamedMatch[]): readonly string[] {
  return matches.map(({ name, match }) => JSON.stringify([name, ...textKey(match)])).sort();
}
