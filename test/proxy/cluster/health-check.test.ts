/** Health checks: when an address becomes healthy or unhealthy, and when the checks stop. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { type Cluster, createClusters } from '#proxy';
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
