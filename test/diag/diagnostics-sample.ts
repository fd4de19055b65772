/** Sample diagnostics: with a value in every field, and empty ones. */
import type { Diagnostics } from '#diag';

type RouteRow = Diagnostics['routes'][number];
type TrafficRow = RouteRow['traffic'];

export const restingTraffic: TrafficRow = {
  requests: 0,
  in_flight: 0,
  errors: 0,
  refused_by_auth: 0,
  refused_by_limit: 0,
  abandoned: 0,
  upstream: undefined,
  recent: undefined,
};

export const busyTraffic: TrafficRow = {
  requests: 9_101,
  in_flight: 9_102,
  errors: 9_103,
  refused_by_auth: 9_104,
  refused_by_limit: 9_105,
  abandoned: 9_106,
  upstream: { retries: 9_107, unavailable: 9_108, failed: 9_109, timeout: 9_110, overloaded: 9_111 },
  recent: {
    slot_seconds: 5,
    requests: [0, 10, 20, 3],
    errors: [0, 0, 5, 0],
    requests_per_second: 9_112,
    error_share: 0.15,
    refused_by_auth: 9_113,
    refused_by_limit: 9_114,
    p50_ms: 914,
    p99_ms: 915,
  },
};

export const busyRoute: RouteRow = {
  name: 'hotel',
  prefix: '/v1/hotels',
  conditions: ['POST', 'host api.*'],
  rewrite: '/rewritten',
  service: 'http://hotel',
  target: 'http://10.0.0.1:9001',
  authenticated: true,
  labels: ['x-test', 'user + city'],
  timeout_ms: 3_001,
  source: 'config/services/hotel.yaml:9',
  internal: false,
  cluster: 'http://hotel #2',
  health: 'degraded',
  traffic: busyTraffic,
};

export const ownRoute: RouteRow = {
  ...busyRoute,
  name: 'diagnostics',
  prefix: '/gateway/v0/diag',
  conditions: [],
  rewrite: '',
  service: '',
  target: 'in this process',
  labels: [],
  timeout_ms: undefined,
  source: undefined,
  internal: true,
  cluster: undefined,
  health: 'unknown',
  traffic: restingTraffic,
};

export const sample: Diagnostics = {
  version: '1.2.3',
  uptime_seconds: 90_061,
  at: '2026-01-02T03:04:05.678Z',
  configuration: { generation: 917, hash: '0123456789ab', applied_at: '2026-01-01T02:03:04.000Z' },
  refused: [
    { part: 'records', since: '2026-01-02T01:02:03.000Z', consequence: 'records and limits stay as they were' },
  ],
  errors: [
    {
      source: 'config/services/hotel.yaml:4',
      record: 'Mapping hotel',
      message: 'unknown key "prefx"',
      remedy: 'Write "prefix".',
    },
  ],
  errors_total: 1,
  notices: [{ source: 'config/old.yaml:2', record: undefined, message: 'grpc is not supported', remedy: 'Remove it.' }],
  notices_total: 1,
  filter: '',
  offset: 0,
  rows_max: 1_000,
  routes: [busyRoute, ownRoute],
  routes_total: 2,
  routes_matching: 2,
  unmatched: { ...restingTraffic, requests: 9_201 },
  unmatched_requests: [{ at: '2026-01-02T03:04:02.000Z', method: 'GET', path: '/v1/hotel/1', requests: 9_202 }],
  clusters: [
    {
      name: 'http://hotel #2',
      service: 'http://hotel',
      addresses: [
        { origin: 'http://10.0.0.1:9001', health: 'healthy', active_requests: 9_301 },
        { origin: 'http://10.0.0.2:9002', health: 'ejected', active_requests: 9_302 },
      ],
      used: true,
      circuit: 'open',
      active_requests: 9_303,
      active_upgrades: 9_305,
      overflows: 9_304,
      mappings: ['hotel', 'hotel-canary'],
      mappings_total: 9_307,
    },
  ],
  clusters_total: 1,
  services: [{ role: 'AuthService auth', service: 'auth-module', target: 'in this process' }],
  services_total: 1,
  versions: [
    {
      name: 'first',
      prefix: '/v1',
      deprecation: '2026-06-30T00:00:00.000Z',
      sunset: '2027-06-30T00:00:00.000Z',
      successor: '/v2/',
      source: 'config/services/versions.yaml:1',
    },
  ],
  limits: [
    {
      domain: 'gateway',
      descriptor: 'user › city=Paris',
      limit: '10 per minute',
      source: 'config/ratelimit/x.yaml:3',
      hits: 9_401,
      over: 9_402,
      fullness: 0.62,
    },
  ],
  limits_total: 1,
  failures: [
    {
      at: '2026-01-02T03:04:01.000Z',
      request_id: 'request-1',
      method: 'PUT',
      path: '/v1/hotels/1',
      mapping: 'hotel-that-failed',
      status: 504,
      problem: 'upstream-timeout',
      reason: 'no answer within 3000 ms',
      upstream: 'http://10.0.0.2:9002',
    },
  ],
  auth: { allowed: 9_501, denied: 9_502, error: 9_503, last_error_at: undefined },
  ratelimit: { ok: 9_601, over: 9_602, error: 9_603, last_error_at: undefined },
};

export const emptyDiagnostics: Diagnostics = {
  ...sample,
  refused: [],
  errors: [],
  errors_total: 0,
  notices: [],
  notices_total: 0,
  routes: [],
  routes_total: 0,
  routes_matching: 0,
  unmatched: restingTraffic,
  unmatched_requests: [],
  clusters: [],
  clusters_total: 0,
  services: [],
  services_total: 0,
  limits: [],
  limits_total: 0,
  failures: [],
  auth: undefined,
  ratelimit: undefined,
};
