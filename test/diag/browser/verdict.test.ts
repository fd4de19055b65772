/** The verdict of the diagnostics, with the worst faults first. */
import assert from 'node:assert/strict';
import { verdictOf } from '../../../src/diag/browser/verdict.js';
import { busyRoute, emptyDiagnostics, ownRoute, sample } from '../diagnostics-sample.ts';

const routesOf = (...health: (typeof busyRoute.health)[]) => ({
  routes: health.map((one, index) => ({ ...busyRoute, name: `route-${index}`, health: one })),
  routes_total: health.length,
});

describe('verdictOf', () => {
  const check = (more: object, expected: [state: string, text: string]) => {
    const { state, text } = verdictOf({ ...emptyDiagnostics, ...more });
    assert.deepEqual([state, text], expected);
  };

  it('is ok when all routes are ok or unused', () => {
    check({}, ['ok', 'All is well']);
    check(routesOf('ok', 'unknown'), ['ok', 'All is well']);
    check({ routes: [ownRoute], routes_total: 1 }, ['ok', 'All is well']);
  });

  it('also counts errors that are not listed', () => {
    check({ errors_total: 1_200 }, ['error', '1,200 configuration errors']);
  });

  it('names a cluster that cannot be read, which is an error until it has been read once', () => {
    const { kubernetes } = sample;
    check({ kubernetes }, ['warning', 'the Kubernetes cluster cannot be read']);
    check({ kubernetes: { ...kubernetes, unread: [] } }, ['ok', 'All is well']);
    check({ kubernetes: { ...kubernetes, read: false } }, ['error', 'the Kubernetes cluster has not been read']);
  });

  it('names at most three failing routes', () => {
    check(routesOf('failing', 'ok'), ['error', '1 route failing: route-0']);
    check(routesOf('failing', 'failing', 'failing', 'failing'), [
      'error',
      '4 routes failing: route-0, route-1, route-2 …',
    ]);
    check(routesOf('degraded'), ['warning', '1 route degraded: route-0']);
  });

  it('names open circuits and unusable addresses', () => {
    const [cluster] = sample.clusters;
    assert.ok(cluster);
    check({ clusters: [cluster] }, [
      'error',
      '1 circuit open: http://hotel #2; 1 address unhealthy: http://10.0.0.2:9002',
    ]);
    check({ clusters: [{ ...cluster, circuit: 'closed' }] }, ['warning', '1 address unhealthy: http://10.0.0.2:9002']);
  });

  it('reports failed calls to auth and rate-limit services for five minutes', () => {
    const checkLast = (last_error_at: string, expected: [state: string, text: string]) =>
      check({ auth: { ...sample.auth, last_error_at }, ratelimit: { ...sample.ratelimit, last_error_at } }, expected);
    checkLast('2026-01-02T02:59:06.000Z', [
      'warning',
      'failed auth calls in the last five minutes; failed rate-limit calls in the last five minutes',
    ]);
    checkLast('2026-01-02T02:59:05.000Z', ['ok', 'All is well']);
  });

  it('reports that fewer threads serve than are configured, and for five minutes that one has ended', () => {
    const ended = (at: string) => [{ number: 1, at, reason: 'out of memory' }];
    const { at } = sample;
    check({ threads: { configured: 4, serving: 3, ended: ended(at), ended_total: 1 } }, [
      'error',
      '3 of 4 threads serve; a thread ended in the last five minutes',
    ]);
    const threads = { configured: 4, serving: 4, ended_total: 1 };
    check({ threads: { ...threads, ended: ended(at) } }, ['warning', 'a thread ended in the last five minutes']);
    check({ threads: { ...threads, ended: ended('2026-01-02T02:59:05.000Z') } }, ['ok', 'All is well']);
  });

  it('does not report failures until the clock catches up after it has been set back', () => {
    const last_error_at = '2026-01-02T09:00:00.000Z';
    check({ auth: { ...sample.auth, last_error_at } }, ['ok', 'All is well']);
  });

  it('says how many routes it covers when not all are listed', () => {
    check({ ...routesOf('ok'), routes_total: 9_000 }, ['ok', 'All is well, of the 1 route listed here']);
  });
});
