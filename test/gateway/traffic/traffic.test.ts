/** The traffic counts of a gateway, its recent failures, and its unmatched requests. */
import assert from 'node:assert/strict';
import type { Context } from 'koa';
import type { Traffic } from '#gateway';
import { createTraffic } from '../../../src/gateway/traffic/traffic.ts';
import { authRecordOf, type EdgeOptions, mappingOf, remote, startEdge } from '../../support/edge.ts';
import { testServers } from '../../support/serve.ts';
import { startUpstream } from '../../support/upstream.ts';
import { eventually } from '../../support/waiting.ts';

describe('the traffic of a gateway', () => {
  const servers = testServers();

  async function setUp(options: EdgeOptions) {
    const traffic = createTraffic({ clock: () => 1_700_000_000_000 });
    const edge = await startEdge(servers, { traffic, ...options });
    const get = (path = '/v1/hotels', init?: RequestInit) => fetch(edge.origin + path, init);
    return { traffic, edge, get };
  }

  /** Waits until the requests are counted, which can happen after the client has received the response. */
  const counted = (traffic: Traffic, requests: number, name = 'hotel') =>
    eventually(() => {
      const route = name === '' ? traffic.unmatched : (traffic.of(name) ?? assert.fail(`no route ${name}`));
      assert.equal(route.totals?.requests, requests);
      assert.equal(route.inFlight, 0);
      return route.totals ?? assert.fail();
    });

  it('counts every status from the service', async () => {
    let status = 200;
    const upstream = await startUpstream(servers, (res) => res.writeHead(status).end());
    const { traffic, get } = await setUp({ upstream });
    for (status of [200, 404, 500]) await get();
    const { byClass, errors, refusedByAuth } = await counted(traffic, 3);
    assert.deepEqual([byClass, errors, refusedByAuth], [{ 1: 0, 2: 1, 3: 0, 4: 1, 5: 1 }, 1, 0]);
    assert.deepEqual(traffic.failures(), [
      {
        atMs: 1_700_000_000_000,
        requestId: traffic.failures()[0]?.requestId,
        method: 'GET',
        path: '/v1/hotels',
        mapping: 'hotel',
        status: 500,
        problem: undefined,
        reason: undefined,
        upstream: upstream.origin,
      },
    ]);
  });

  it('distinguishes denials by the auth service from missing decisions', async () => {
    const decisions = [
      { outcome: 'deny', status: 401, headers: {} },
      { outcome: 'deny', status: 403, headers: {}, body: Buffer.from('no') },
      { outcome: 'error', reason: 'no decision' },
    ] as const;
    let calls = 0;
    const { traffic, get } = await setUp({
      authService: authRecordOf(),
      authPort: () => decisions[calls++] ?? assert.fail(),
      services: { hotel: async () => assert.fail('the service was called') },
    });
    for (const _ of decisions) await get();
    const { refusedByAuth, errors } = await counted(traffic, 3);
    assert.deepEqual([refusedByAuth, errors], [2, 1]);
    const [failure] = traffic.failures();
    assert.deepEqual([failure?.problem, failure?.reason], ['auth-unavailable', 'no decision']);
  });

  const failing = (status: number) => ({
    services: {
      async hotel(ctx: Context) {
        ctx.status = status;
        ctx.body = '';
      },
    },
  });

  it('does not count a 429 from a service as an exhausted limit', async () => {
    const { traffic, get } = await setUp(failing(429));
    await get();
    assert.equal((await counted(traffic, 1)).refusedByLimit, 0);
  });

  it('records why a service failed, and the path without its query', async () => {
    const { traffic, get } = await setUp({ targets: { hotel: remote(await servers.refusing()) } });
    await get('/v1/hotels?token=secret');
    await counted(traffic, 1);
    assert.deepEqual(traffic.of('hotel')?.upstream, {
      retries: 0,
      unavailable: 1,
      failed: 0,
      timeout: 0,
      overloaded: 0,
    });
    const [failure] = traffic.failures();
    assert.equal(failure?.path, '/v1/hotels');
    assert.equal(failure?.problem, 'upstream-unavailable');
    assert.match(failure?.reason ?? '', /ECONNREFUSED/);
  });

  it('counts an open request as in flight, and as abandoned when its client disconnects', async () => {
    const upstream = await startUpstream(servers, (res) => void res.writeHead(200).write('some'));
    const { traffic, get } = await setUp({ upstream });
    const controller = new AbortController();
    await get('/v1/hotels', { signal: controller.signal });
    assert.equal(traffic.of('hotel')?.inFlight, 1);
    controller.abort();
    const { abandoned, byClass } = await counted(traffic, 1);
    assert.deepEqual([abandoned, byClass[2]], [1, 0]);
  });

  it('retains the last hundred failures, and truncates long paths with an ellipsis', async () => {
    const { traffic, get } = await setUp(failing(500));
    const long = `/v1/hotels/${'x'.repeat(489)}`;
    for (const path of ['/v1/hotels/first', long, `${long}x`, ...Array(98).fill('/v1/hotels/last')]) await get(path);
    await counted(traffic, 101);
    const paths = traffic.failures().map(({ path }) => path);
    assert.deepEqual([paths.length, paths[0], ...paths.slice(-2)], [100, '/v1/hotels/last', `${long}…`, long]);
  });

  it('retains the last twenty unmatched paths with their counts, separately from failures', async () => {
    const { traffic, get } = await setUp(failing(500));
    await get('/v1/hotels');
    for (let index = 0; index < 25; index += 1) await get(index % 2 === 0 ? '/hotels?secret' : `/scan/${index}`);
    await counted(traffic, 25, '');
    const seen = traffic.unmatchedRequests().map(({ method, path, requests }) => `${method} ${path} ${requests}`);
    const scans = Array.from({ length: 12 }, (_, index) => `GET /scan/${23 - 2 * index} 1`);
    assert.deepEqual(seen, ['GET /hotels 13', ...scans]);
    for (let index = 0; index < 20; index += 1) await get(`/again/${index}`);
    await counted(traffic, 45, '');
    const paths = traffic.unmatchedRequests().map(({ path }) => path);
    assert.deepEqual([paths.length, paths[0], paths.at(-1)], [20, '/again/19', '/again/0']);
    assert.deepEqual(
      traffic.failures().map(({ path }) => path),
      ['/v1/hotels'],
    );
  });

  it('does not list a 404 from a service as unmatched', async () => {
    const { traffic, get } = await setUp(failing(404));
    await get();
    await counted(traffic, 1);
    assert.deepEqual(traffic.unmatchedRequests(), []);
  });

  it('retains the counts of a route across gateways, and drops those of removed routes', async () => {
    const services = { hotel: async () => {} };
    const { traffic, edge, get } = await setUp({
      mappings: [mappingOf(), mappingOf({ name: 'old', prefix: '/old' })],
      services,
    });
    await get();
    await counted(traffic, 1);
    await startEdge(servers, { traffic, mappings: [mappingOf()], services });
    await edge.gateway.close();
    assert.equal(traffic.of('hotel')?.totals?.requests, 1);
    assert.equal(traffic.of('old'), undefined);
  });
});
