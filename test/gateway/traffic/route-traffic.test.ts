/** The traffic counts of one route, in total and over the last minutes. */
import assert from 'node:assert/strict';
import { durationBoundsMs } from '#gateway';
import { createRouteTraffic, type Outcome } from '../../../src/gateway/traffic/route-traffic.ts';

describe('the traffic of a route', () => {
  const ok: Outcome = { status: 200, durationMs: 4, refusedBy: undefined };

  it('counts each request by its outcome', () => {
    const traffic = createRouteTraffic('hotel');
    const outcomes: Outcome[] = [
      ok,
      { ...ok, status: 304 },
      { ...ok, status: 401, refusedBy: 'auth' },
      { ...ok, status: 403, refusedBy: 'address' },
      { ...ok, status: 429, refusedBy: 'limit' },
      { ...ok, status: 503 },
      { ...ok, status: 499 },
      // Not a valid HTTP status, so it counts as a failure of the service.
      { ...ok, status: 999 },
    ];
    for (const outcome of outcomes) traffic.count(outcome, 0);
    const { durations, ...totals } = traffic.totals ?? assert.fail();
    assert.deepEqual(totals, {
      requests: 8,
      errors: 2,
      refusedByAddress: 1,
      refusedByAuth: 1,
      refusedByLimit: 1,
      byClass: { 1: 0, 2: 1, 3: 1, 4: 3, 5: 2 },
      abandoned: 1,
      byGrpcStatus: undefined,
      durationMsSum: 32,
    });
    assert.equal(durations[durationBoundsMs.indexOf(5)], 8);
  });

  it('counts gRPC calls by status, and those with a number that is no status together', () => {
    const traffic = createRouteTraffic('carts');
    for (const grpcStatus of [0, 0, 14, 17, 999]) traffic.count({ ...ok, grpcStatus }, 0);
    const counts = [...(traffic.totals?.byGrpcStatus ?? [])];
    assert.deepEqual([counts.length, counts[0], counts[14], counts[17]], [18, 2, 1, 2]);
  });

  it('counts durations in buckets that include their upper bound', () => {
    const traffic = createRouteTraffic('hotel');
    for (const durationMs of [0, ...durationBoundsMs, 1e9]) traffic.count({ ...ok, durationMs }, 0);
    assert.deepEqual([...(traffic.totals?.durations ?? [])], [2, ...durationBoundsMs.slice(1).map(() => 1), 1]);
  });

  it('drops counts that are older than its slots, and keeps the totals', () => {
    const traffic = createRouteTraffic('hotel');
    const at = (ms: number) => traffic.recent(ms).slots.map(({ requests }) => requests);
    const { slotMs, slots } = traffic.recent(0);
    traffic.count(ok, 0);
    traffic.count(ok, slotMs);
    assert.deepEqual(at(slotMs).slice(-3), [0, 1, 1]);
    assert.deepEqual(at(slotMs * slots.length).slice(0, 2), [1, 0]);
    assert.deepEqual(new Set(at(slotMs * (slots.length + 1))), new Set([0]));
    assert.equal(traffic.recent(slotMs * (slots.length + 1)).p50Ms, undefined);
    traffic.count(ok, slotMs * slots.length);
    assert.deepEqual(at(slotMs * slots.length), [1, ...slots.slice(2).map(() => 0), 1]);
    assert.equal(traffic.totals?.requests, 3);
  });

  it('interpolates the median and the 99th percentile within a bucket', () => {
    const traffic = createRouteTraffic('hotel');
    for (let index = 0; index < 98; index += 1) traffic.count({ ...ok, durationMs: 1.5 }, 0);
    for (let index = 0; index < 2; index += 1) traffic.count({ ...ok, durationMs: 40 }, 0);
    const { p50Ms, p99Ms } = traffic.recent(0);
    assert.equal(p50Ms, 1 + 50 / 98 - 0);
    assert.equal(p99Ms, 25 + 25 / 2);
  });

  it('drops durations that are older than its slots when their slot is reused, and keeps those of other slots', () => {
    const traffic = createRouteTraffic('hotel');
    traffic.count({ ...ok, durationMs: 1e9 }, 0);
    const { slotMs, slots } = traffic.recent(0);
    traffic.count({ ...ok, durationMs: 40 }, slotMs);
    const laterMs = slotMs * slots.length;
    traffic.count({ ...ok, durationMs: 1.5 }, laterMs);
    const { p50Ms, p99Ms } = traffic.recent(laterMs);
    assert.deepEqual([p50Ms, p99Ms], [2, 25 + 25 * 0.98]);
  });

  it('reports the last bound for slower requests', () => {
    const traffic = createRouteTraffic('hotel');
    traffic.count({ ...ok, durationMs: 1e9 }, 0);
    assert.equal(traffic.recent(0).p99Ms, durationBoundsMs.at(-1));
  });
});
