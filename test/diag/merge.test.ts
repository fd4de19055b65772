/** The diagnostics of several threads become those of their process. */
import assert from 'node:assert/strict';
import { type Diagnostics, mergeDiagnostics, readDiagnostics } from '#diag';
import { trafficBounds } from '#gateway';
import { parts } from './diagnostics-parts.ts';
import { sample } from './diagnostics-sample.ts';

const one = readDiagnostics(parts);
const [route] = one.routes;
assert.ok(route !== undefined);

const recent: NonNullable<typeof route.traffic.recent> = {
  slot_seconds: 5,
  requests: [0, 10],
  errors: [0, 1],
  requests_per_second: 0.5,
  error_share: 0.1,
  refused_by_address: 0,
  refused_by_auth: 1,
  refused_by_limit: 0,
  p50_ms: 3,
  p99_ms: 9,
};
const traffic: typeof route.traffic = {
  ...route.traffic,
  requests: 10,
  errors: 1,
  in_flight: 2,
  recent,
};
const failing: typeof traffic = {
  ...traffic,
  recent: { ...recent, errors: [0, 10], error_share: 1, p50_ms: undefined, p99_ms: 20 },
};
const cluster: Diagnostics['clusters'][number] = {
  name: 'orders',
  service: 'orders',
  addresses: [{ origin: 'http://a', health: 'healthy', active_requests: 1 }],
  used: true,
  circuit: 'closed',
  active_requests: 1,
  active_upgrades: 0,
  overflows: 2,
  mappings: [],
  mappings_total: 0,
};

function thread(change: Partial<Diagnostics>): Diagnostics {
  return { ...one, ...change };
}

const merge = (threads: Parameters<typeof mergeDiagnostics>[0]) => mergeDiagnostics(threads, trafficBounds);

describe('mergeDiagnostics', () => {
  it('returns those of a single thread as they are', () => {
    assert.deepEqual(merge([one]), one);
  });

  it('sums the connections and the requests over HTTP/2', () => {
    const connections = { open: 3, max: 10, http2: 2, http2_requests: 7 };
    const other = thread({ connections: { open: 1, max: 10, http2: 1, http2_requests: 5 } });
    const merged = merge([thread({ connections }), other]);
    assert.deepEqual(merged.connections, { open: 4, max: 20, http2: 3, http2_requests: 12 });
  });

  it('sums the tokens of a provider, and shows the state of the thread with the oldest keys', () => {
    const [provider] = sample.token_providers;
    assert.ok(provider !== undefined);
    const merged = merge([
      thread({ token_providers: [{ ...provider, last_error: undefined, valid: 1 }] }),
      thread({
        token_providers: [
          {
            ...provider,
            keys: undefined,
            keys_read_at: undefined,
            valid: 2,
            last_rejection: 'old',
            last_rejection_at: '2025',
          },
        ],
      }),
    ]);
    const [found] = merged.token_providers;
    assert.deepEqual(
      [found?.keys, found?.last_error, found?.valid, found?.last_rejection],
      [undefined, provider.last_error, 3, provider.last_rejection],
    );
  });

  it('sums the traffic of a route, and judges its health by the sum', () => {
    const routes = (used: typeof traffic, health: typeof route.health) => [{ ...route, traffic: used, health }];
    const merged = merge([
      thread({ routes: routes(traffic, 'degraded') }),
      thread({ routes: routes(failing, 'failing') }),
    ]).routes[0];
    assert.equal(merged?.health, 'failing');
    assert.deepEqual([merged.traffic.requests, merged.traffic.errors, merged.traffic.in_flight], [20, 2, 4]);
    assert.deepEqual(merged.traffic.recent, {
      slot_seconds: 5,
      requests: [0, 20],
      errors: [0, 11],
      requests_per_second: 1,
      error_share: 0.55,
      refused_by_address: 0,
      refused_by_auth: 2,
      refused_by_limit: 0,
      p50_ms: 3,
      p99_ms: 20,
    });
  });

  it('keeps routes with the same name apart, as those of one rule of the Gateway API may have it', () => {
    const rows = ['/a', '/b'].map((prefix) => ({ ...route, prefix, traffic }));
    const merged = merge([thread({ routes: rows }), thread({ routes: rows })]).routes;
    assert.deepEqual(
      merged.map(({ prefix, traffic: { requests } }) => [prefix, requests]),
      [
        ['/a', 20],
        ['/b', 20],
      ],
    );
  });

  it('shows a route as failing if one thread has no usable address for it', () => {
    const rows = (['unknown', 'failing'] as const).map((health) => thread({ routes: [{ ...route, health }] }));
    const [first, second] = rows;
    assert.ok(first !== undefined && second !== undefined);
    assert.equal(merge([first, second]).routes[0]?.health, 'failing');
  });

  it('takes the worst state of a cluster and of its addresses, which one thread may not know yet', () => {
    const merged = merge([
      thread({ clusters: [cluster] }),
      thread({
        clusters: [
          {
            ...cluster,
            circuit: 'open',
            addresses: [
              { origin: 'http://a', health: 'unhealthy', active_requests: 2 },
              { origin: 'http://b', health: 'unknown', active_requests: 0 },
            ],
          },
          { ...cluster, name: 'other' },
        ],
      }),
    ]);
    assert.deepEqual(merged.clusters, [
      {
        ...cluster,
        circuit: 'open',
        active_requests: 2,
        overflows: 4,
        addresses: [
          { origin: 'http://a', health: 'unhealthy', active_requests: 3 },
          { origin: 'http://b', health: 'unknown', active_requests: 0 },
        ],
      },
      { ...cluster, name: 'other' },
    ]);
  });

  it('sums the hits of limits and the decisions, with the latest time', () => {
    const [limit] = one.limits;
    assert.ok(limit !== undefined && one.auth !== undefined);
    const merged = merge([
      thread({
        limits: [{ ...limit, hits: 1, over: 1, fullness: undefined }],
        auth: { ...one.auth, last_error_at: '2026-01-02T00:00:00.000Z' },
      }),
      thread({
        limits: [{ ...limit, hits: 2, over: 0, fullness: 0.5 }],
        auth: { ...one.auth, last_error_at: undefined },
      }),
    ]);
    assert.deepEqual(merged.limits, [{ ...limit, hits: 3, over: 1, fullness: 0.5 }]);
    assert.deepEqual(merged.auth, { allowed: 6, denied: 4, error: 2, last_error_at: '2026-01-02T00:00:00.000Z' });
  });

  it('shows the latest failures and unrouted requests of all threads', () => {
    const unmatched = (at: string, path: string, requests: number) => ({ at, method: 'GET', path, requests });
    const failure = (at: string) => ({
      at,
      request_id: at,
      method: 'GET',
      path: '/',
      mapping: undefined,
      status: 500,
      problem: undefined,
      reason: undefined,
      upstream: undefined,
    });
    const merged = merge([
      thread({
        failures: ['3', '1'].map(failure),
        unmatched_requests: [unmatched('4', '/a', 1), unmatched('2', '/b', 1)],
      }),
      thread({
        failures: Array.from({ length: 100 }, () => failure('2')),
        unmatched_requests: [unmatched('5', '/b', 2)],
      }),
    ]);
    assert.deepEqual([merged.failures.length, merged.failures[0]?.at, merged.failures[1]?.at], [100, '3', '2']);
    assert.deepEqual(merged.unmatched_requests, [unmatched('5', '/b', 3), unmatched('4', '/a', 1)]);
  });
});
