/** Compares what protects the requests of Mappings: authentication, limits, bounds, and rules for headers. */
import { type Mapping, mappingDefaults } from './mapping.ts';
import { type MappingFields, mappingFields } from './mapping-fields.ts';

/** The fields that say which requests a mapping gets, besides its prefix. */
export const matchingFields: readonly (keyof Mapping)[] = [
  'prefixMatch',
  'caseSensitive',
  'host',
  'method',
  'headers',
  'queryParameters',
  'precedence',
  'weight',
  'shadow',
  'sticky',
  'gatewayRoute',
];

/** The fields that say which requests a mapping matches and where they go. Every other field counts as protection. */
const unprotecting: readonly (keyof Mapping)[] = [
  'kind',
  'name',
  'source',
  'prefix',
  ...matchingFields,
  'service',
  'rewrite',
  'regexRewrite',
  'hostRewrite',
  'cookiePath',
  'rewriteLinks',
  'preserveHeaderCase',
  'redirect',
  'pathReadings',
  'connectTimeoutMs',
  'idleConnectionMs',
  'connectionLifetimeMs',
  'http2',
  'grpc',
  'retryPolicy',
  'loadBalancer',
  'healthCheck',
  'outlierDetection',
  'compress',
  'compressWithCookies',
];

const names: ReadonlySet<string> = new Set(unprotecting);

/** Returns the same text for mappings with the same protection. */
export function protectionOf(mapping: Omit<Mapping, 'kind' | 'source'>): string {
  return JSON.stringify(Object.entries(mapping).filter(([field]) => !names.has(field)));
}

/** Names the fields that protect the requests of a mapping, and that another one does not have or sets differently. */
export function fieldsEvaded(mapping: Mapping, other: Mapping): readonly string[] {
  const textOf = (from: object, key: string) => JSON.stringify(Reflect.get(from, key));
  return Object.keys(mapping)
    .filter((key) => !names.has(key) && key !== 'bypassAuth')
    .filter((key) => textOf(mapping, key) !== textOf(mappingDefaults, key))
    .filter((key) => textOf(mapping, key) !== textOf(other, key))
    .map((key) => (key in mappingFields ? mappingFields[key as keyof MappingFields].name : headerNames[key]) ?? key);
}

/** The fields that a Mapping contains in combined form. */
const headerNames: Readonly<Record<string, string>> = {
  requestHeaders: 'request headers',
  responseHeaders: 'response headers',
};
