/** What a Mapping says where its record says nothing. */
import type { Mapping } from './gateway-records.ts';

type Required = 'kind' | 'name' | 'prefix' | 'service' | 'source';

/** The numbers of the circuit breakers are Envoy's, so that a team that comes from there meets no new bound. */
export const mappingDefaults = {
  prefixMatch: 'segments',
  caseSensitive: true,
  host: undefined,
  method: undefined,
  headers: [],
  queryParameters: [],
  precedence: 0,
  weight: undefined,
  shadow: false,
  rewrite: '/',
  regexRewrite: undefined,
  hostRewrite: undefined,
  redirect: undefined,
  timeoutMs: undefined,
  connectTimeoutMs: undefined,
  idleTimeoutMs: undefined,
  retryPolicy: undefined,
  circuitBreakers: { maxConnections: 1024, maxPendingRequests: 1024, maxRequests: 1024, maxRetries: 3 },
  healthCheck: undefined,
  outlierDetection: { consecutive5xx: 5, baseEjectionTimeMs: 30_000, maxEjectionPercent: 50 },
  loadBalancer: 'round_robin',
  cors: undefined,
  requestHeaders: { add: [], remove: [] },
  responseHeaders: { add: [], remove: [] },
  allowUpgrade: [],
  labels: {},
  bypassAuth: false,
  authService: undefined,
} as const satisfies Omit<Mapping, Required>;
