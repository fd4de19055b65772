/** The traffic and the health of a route in the diagnostics, and failed requests. */
import assert from 'node:assert/strict';
import type { FailedRequest } from '#gateway';
import { readDiagnostics } from '../../../src/diag/snapshot/snapshot.ts';
import { createTraffic } from '../../../src/gateway/traffic/traffic.ts';
import { hotelRoute, parts } from '../diagnostics-parts.ts';

describe('the traffic in the diagnostics', () => {
  function setUp(startedAtMs = 0) {
    let nowMs = startedAtMs;
    const traffic = createTraffic({ stopwatch: () => nowMs });
    const counted = traffic.acquire('hotel').value;
    const gateway = () => ({ ...parts.gateway(), routes: [hotelRoute] });
    return {
      traffic,
      send(count: number, status = 200, refusedBy?: 'auth' | 'limit', durationMs = 4) {
        for (let sent = 0; sent < count; sent += 1) counted.count({ status, durationMs, refusedBy }, nowMs);
      },
      at(ms: number) {
        nowMs = ms;
      },
      route() {
        const [row] = readDiagnostics({ ...parts, gateway, traffic, uptimeMs: () => nowMs }).routes;
        return row ?? assert.fail('no route');
      },
    };
  }

  it('is counted since the start, and in slots for the last five minutes', () => {
    const { send, at, route } = setUp();
    send(6, 200);
    send(1, 403, 'auth');
    send(1, 429, 'limit');
    send(1, 503);
    send(1, 499);
    at(62_500);
    send(10);
    const { recent, ...total } = route().traffic;
    assert.deepEqual(total, {
      requests: 20,
      in_flight: 0,
      errors: 1,
      refused_by_auth: 1,
      refused_by_limit: 1,
      abandoned: 1,
      upstream: undefined,
    });
    const { requests = [], errors = [], ...figures } = recent ?? {};
    assert.deepEqual([requests.length, requests.at(-1), requests.at(-13), errors.at(-13)], [60, 10, 10, 1]);
    assert.deepEqual(figures, {
      slot_seconds: 5,
      // The average of eleven full slots and half of the last one.
      requests_per_second: 0.174,
      error_share: 0.05,
      refused_by_auth: 1,
      refused_by_limit: 1,
      p50_ms: 4,
      p99_ms: 4.98,
    });
  });

  it('has rates that are measured from the start of a new process, and none without requests', () => {
    const { send, at, route } = setUp();
    assert.equal(route().traffic.recent, undefined);
    send(10);
    at(4_000);
    assert.equal(route().traffic.recent?.requests_per_second, 2.5);
    at(400_000);
    assert.deepEqual([route().traffic.requests, route().traffic.recent, route().health], [10, undefined, 'unknown']);
  });

  it('makes a route degraded above 10 % errors, and failing above 30 %', () => {
    const check = (errors: number, of: number, expected: string) => {
      const { send, route } = setUp();
      send(errors, 500);
      send(of - errors, 404);
      assert.equal(route().health, expected, `${errors} of ${of}`);
    };
    check(0, 1, 'ok');
    check(1, 10, 'ok');
    check(2, 10, 'degraded');
    check(3, 10, 'degraded');
    check(31, 100, 'failing');
    check(1, 1, 'failing');
  });

  it('shows failed requests without the credentials in their texts', () => {
    const failure: FailedRequest = {
      atMs: Date.UTC(2026, 0, 2),
      requestId: 'r1',
      method: 'GET',
      path: '/to/http://ann:pw-1@host/',
      mapping: 'hotel',
      status: 503,
      problem: 'upstream-unavailable',
      reason: 'connect to postgres://ann:pw-2@db:5432 failed',
      upstream: 'http://10.0.0.1:9001',
    };
    const failures = () => [failure, { ...failure, problem: undefined, reason: undefined }];
    const { failures: rows } = readDiagnostics({ ...parts, traffic: { ...parts.traffic, failures } });
    const row = {
      at: '2026-01-02T00:00:00.000Z',
      request_id: 'r1',
      method: 'GET',
      path: '/to/http://…@host/',
      mapping: 'hotel',
      status: 503,
      problem: 'upstream-unavailable',
      reason: 'connect to postgres://…@db:5432 failed',
      upstream: 'http://10.0.0.1:9001',
    };
    assert.deepEqual(rows, [row, { ...row, problem: undefined, reason: undefined }]);
  });
});
