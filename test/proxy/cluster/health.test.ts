/** Health checks, and the ejection of outliers for longer each time, but never of all addresses. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import fc from 'fast-check';
import { type Cluster, createClusters } from '#proxy';
import { createOutlierState, isEjected, type OutlierState, recordOutcome } from '../../../src/proxy/cluster/health.ts';
import { ask, createManualTime, healthCheckOf, specOf } from '../../support/clusters.ts';
import { testServers } from '../../support/serve.ts';
import { type ReceivedRequest, startUpstream } from '../../support/upstream.ts';
import { createDeferred } from '../../support/waiting.ts';

const servers = testServers();

const check = healthCheckOf();

const firstMs = check.intervalMs / 2;

/** Uses a manual clock: `next` advances it and waits for the result of the check that is then due. */
function openClusters() {
  const time = createManualTime();
  const logged: (string | undefined)[] = [];
  const causes: unknown[] = [];
  const log = (fields: { readonly err?: { readonly message?: string } }, message?: string) => {
    logged.push(message);
    causes.push(fields.err?.message);
  };
  let onTimer = () => {};
  const clusters = createClusters({
    clock: time.clock,
    logger: { info: log, warn: log, error: log },
    random: () => firstMs / check.intervalMs,
    timer(run, delayMs) {
      if (delayMs === check.intervalMs) onTimer();
      return time.timer(run, delayMs);
    },
  });
  servers.later(clusters.close);
  return {
    clusters,
    time,
    logged,
    causes,
    async next(ms: number) {
      time.advance(ms);
      await new Promise<void>((resolve) => {
        onTimer = resolve;
      });
    },
  };
}

function healthOf(cluster: Cluster): readonly string[] {
  return cluster.snapshot().addresses.map(({ health }) => health);
}

/** Responds with one status after another, and repeats the last one. */
function startService(...statuses: readonly [number, ...number[]]) {
  const left = [...statuses];
  return startUpstream(servers, (res: ServerResponse, { url }: ReceivedRequest) => {
    const status = (left.length > 1 ? left.shift() : left[0]) ?? 200;
    res.writeHead(url === check.path ? status : 200).end('ok');
  });
}

describe('a health check', () => {
  it('is a GET of its path, with the configured Host', async () => {
    const { origin, only } = await startService(204);
    const { clusters, next } = openClusters();
    const { cluster } = clusters.acquire(
      specOf([origin], { healthCheck: healthCheckOf({ hostname: 'hotel.example' }) }),
    );
    assert.deepEqual(healthOf(cluster), ['unknown']);
    await next(firstMs);
    const { method, url, headers } = only();
    assert.deepEqual([method, url, headers.host], ['GET', '/health', 'hotel.example']);
    assert.deepEqual(healthOf(cluster), ['healthy']);
  });

  it('changes the health at the first success, and later after the configured number of equal results', async () => {
    const { origin } = await startService(200, 500, 200, 500, 500, 200, 200);
    const { clusters, next, logged } = openClusters();
    const { cluster } = clusters.acquire(specOf([origin], { healthCheck: check }));
    const seen: (string | undefined)[] = [];
    for (let time = 0; time < 7; time += 1) {
      await next(time === 0 ? firstMs : check.intervalMs);
      seen.push(healthOf(cluster)[0]);
    }
    assert.deepEqual(seen, ['healthy', 'healthy', 'healthy', 'healthy', 'unhealthy', 'unhealthy', 'healthy']);
    assert.deepEqual(logged, [
      'address passes its health check',
      'address fails its health check',
      'address passes its health check',
    ]);
  });

  it('fails immediately with a 503, unless that is an expected status', async () => {
    for (const [expectedStatuses, expected] of [
      [check.expectedStatuses, 'unhealthy'],
      [[{ min: 500, max: 599 }], 'healthy'],
    ] as const) {
      const { origin } = await startService(503);
      const { clusters, next } = openClusters();
      const { cluster } = clusters.acquire(specOf([origin], { healthCheck: healthCheckOf({ expectedStatuses }) }));
      await next(firstMs);
      assert.deepEqual(healthOf(cluster), [expected]);
    }
  });

  it('fails after a time-out or a refused connection, and logs which', async () => {
    const arrived = createDeferred();
    const silent = await servers.tcp((socket) => void socket.once('data', arrived.resolve));
    const refusing = await servers.refusing();
    const healthCheck = healthCheckOf({ unhealthyThreshold: 1 });
    const { clusters, next, time, causes } = openClusters();
    const { cluster } = clusters.acquire(specOf([silent.origin], { healthCheck }));
    const { cluster: other } = clusters.acquire(specOf([refusing.origin], { healthCheck, service: 'car' }));
    await next(firstMs);
    assert.deepEqual(healthOf(other), ['unhealthy']);
    await arrived.promise;
    time.advance(check.timeoutMs);
    assert.deepEqual(healthOf(cluster), ['unhealthy']);
    assert.deepEqual(causes, [`connect ECONNREFUSED ${new URL(refusing.origin).host}`, 'no response within 300 ms']);
  });

  it('takes an unhealthy address out of rotation, unless it is the only one', async () => {
    const sick = await startService(503);
    const well = await startService(200);
    let origins = [sick.origin, well.origin];
    const { clusters, next } = openClusters();
    const { cluster } = clusters.acquire(specOf(() => origins, { healthCheck: check }));
    await next(firstMs);
    while (healthOf(cluster).includes('unknown')) await next(0);
    const responses = [await ask(cluster), await ask(cluster), await ask(cluster)];
    assert.deepEqual(new Set(responses.map(({ origin }) => origin)), new Set([well.origin]));
    origins = [sick.origin];
    assert.equal((await ask(cluster)).origin, sick.origin);
  });

  it('ends the ejection of its address when it passes', async () => {
    const [failing, other] = [await startService(200), await startService(200)];
    const { clusters, next, logged } = openClusters();
    const outlierDetection = { consecutive5xx: 1, baseEjectionTimeMs: 60_000, maxEjectionPercent: 50 };
    const origins = [failing.origin, other.origin];
    const { cluster } = clusters.acquire(specOf(origins, { healthCheck: check, outlierDetection }));
    await next(firstMs);
    while (healthOf(cluster).includes('unknown')) await next(0);
    cluster.attempt([other.origin]).reportOutcome({ kind: 'responded', status: 500 });
    assert.deepEqual(healthOf(cluster), ['ejected', 'healthy']);
    await next(check.intervalMs);
    while (healthOf(cluster).includes('ejected')) await next(0);
    assert.equal(logged.at(-1), 'ejection ended: the address passes its health check');
  });

  it('follows the addresses of its service even without traffic', async () => {
    const [first, second] = [await startService(200), await startService(200)];
    let origins = [first.origin];
    const { clusters, next } = openClusters();
    clusters.acquire(specOf(() => origins, { healthCheck: check }));
    await next(firstMs);
    origins = [second.origin];
    await next(check.intervalMs);
    assert.deepEqual([first.reached.length, second.reached.length], [1, 1]);
  });

  it('stops with the last release of its cluster', async () => {
    const arrived = createDeferred();
    let isClosed: Promise<unknown> | undefined;
    const { origin } = await servers.tcp((socket) => {
      isClosed = once(socket, 'close');
      socket.once('data', arrived.resolve);
    });
    const { clusters, time } = openClusters();
    const held = [1, 2].map(() => clusters.acquire(specOf([origin], { healthCheck: check })));
    time.advance(firstMs);
    await arrived.promise;
    held[0]?.release();
    assert.notEqual(time.pending(), 0);
    held[1]?.release();
    await isClosed;
    assert.equal(time.pending(), 0);
  });
});

const rule = { consecutive5xx: 3, baseEjectionTimeMs: 1000, maxEjectionPercent: 50 };

function statesOf(count: number): [OutlierState, ...OutlierState[]] {
  return Array.from({ length: count }, createOutlierState) as [OutlierState, ...OutlierState[]];
}

/** Records `times` failures and returns whether they ejected the address. */
function fail(state: OutlierState, all: readonly OutlierState[], nowMs: number, times = rule.consecutive5xx): boolean {
  const judged = Array.from({ length: times }, () => recordOutcome(rule, state, all, true, nowMs));
  return judged.includes(true);
}

interface Model {
  row: number;
  times: number;
  until: number;
}

function judgeModel(model: readonly Model[], index: number, hasFailed: boolean, nowMs: number): void {
  const one = model[index] as Model;
  if (one.until > nowMs) return;
  one.row = hasFailed ? one.row + 1 : 0;
  if (one.row < 3 || model.filter(({ until }) => until > nowMs).length >= 2) return;
  for (let passedMs = one.until + 1000; one.times > 0 && passedMs <= nowMs; passedMs += 1000) one.times -= 1;
  one.times += 1;
  one.row = 0;
  one.until = nowMs + 1000 * one.times;
}

describe('outlier ejection', () => {
  it('lasts longer each time, up to five minutes', () => {
    const all = statesOf(2);
    const [state] = all;
    const lasts: number[] = [];
    let nowMs = 0;
    for (let time = 0; time < 302; time += 1) {
      assert.equal(fail(state, all, nowMs), true);
      lasts.push(state.ejectedUntilMs - nowMs);
      nowMs = state.ejectedUntilMs;
    }
    assert.deepEqual(lasts.slice(0, 3), [1000, 2000, 3000]);
    assert.deepEqual(lasts.slice(-3), [300_000, 300_000, 300_000]);
  });

  it('never affects the only address, and is off with a threshold or percentage of 0', () => {
    const [alone] = statesOf(1);
    assert.equal(fail(alone, [alone], 0, 10), false);
    for (const off of [{ consecutive5xx: 0 }, { maxEjectionPercent: 0 }]) {
      const all = statesOf(3);
      for (let time = 0; time < 10; time += 1)
        assert.equal(recordOutcome({ ...rule, ...off }, all[0], all, true, 0), false);
    }
  });

  it('affects one of two addresses, and at most the configured percentage of more', () => {
    for (const [count, percent, most] of [
      [2, 10, 1],
      [2, 100, 1],
      [3, 50, 1],
      [4, 50, 2],
      [10, 35, 3],
      [10, 100, 9],
    ] as const) {
      const all = statesOf(count);
      for (const state of all)
        for (let time = 0; time < 3; time += 1)
          recordOutcome({ ...rule, maxEjectionPercent: percent }, state, all, true, 0);
      assert.equal(all.filter((state) => isEjected(state, 0)).length, most, `${count} addresses, ${percent} %`);
    }
  });

  it('agrees with a simple model', () => {
    const step = fc.record({
      index: fc.nat(3),
      hasFailed: fc.boolean(),
      waitMs: fc.constantFrom(0, 0, 0, 400, 1000, 5000),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const all = statesOf(4);
        const model = all.map(() => ({ row: 0, times: 0, until: Number.NEGATIVE_INFINITY }));
        let nowMs = 0;
        for (const { index, hasFailed, waitMs } of steps) {
          nowMs += waitMs;
          recordOutcome(rule, all[index] as OutlierState, all, hasFailed, nowMs);
          judgeModel(model, index, hasFailed, nowMs);
        }
        assert.deepEqual(
          all.map((state) => isEjected(state, nowMs)),
          model.map(({ until }) => until > nowMs),
        );
        assert.deepEqual(
          all.map(({ ejectedUntilMs }) => ejectedUntilMs),
          model.map(({ until }) => until),
        );
      }),
    );
  });
});
