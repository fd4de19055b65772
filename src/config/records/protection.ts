/** Compares what protects the requests of Mappings: authentication, limits, bounds, and rules for headers. */
import type { Mapping } from './mapping.ts';

/** The fields that say which requests a mapping matches and where they go. Every other field counts as protection. */
const unprotecting: readonly (keyof Mapping)[] = [
  'kind',
  'name',
  'source',
  'prefix',
  'prefixMatch',
  'caseSensitive',
  'host',
  'method',
  'headers',
  'queryParameters',
  'precedence',
  'weight',
  'shadow',
  'service',
  'rewrite',
  'regexRewrite',
  'hostRewrite',
  'redirect',
  'pathReadings',
  'connectTimeoutMs',
  'idleConnectionMs',
  'connectionLifetimeMs',
  'retryPolicy',
  'loadBalancer',
  'healthCheck',
  'outlierDetection',
];

const names: ReadonlySet<string> = new Set(unprotecting);

/** Returns the same text for mappings with the same protection. */
export function protectionOf(mapping: Omit<Mapping, 'kind' | 'source'>): string {
  return JSON.stringify(Object.entries(mapping).filter(([field]) => !names.has(field)));
}
