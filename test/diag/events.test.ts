/** `/gateway/v0/diag/events`, as the gateway's table runs it and as part of a desk. */
import assert from 'node:assert/strict';
import Koa from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { createDiagnosticsEvents } from '#diag';
import { createAddresses, createProblemResponses, createRequestContext, requestContext, silentLogger } from '#http';
import { call, callAsDemo, desksOf } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { eventually } from '../support/waiting.ts';
import { readEvents } from '../support/wire/event-reader.ts';
import { parts } from './diagnostics-parts.ts';

const path = '/gateway/v0/diag/events';
const basic = (name: string, password: string) => ({ Authorization: `Basic ${btoa(`${name}:${password}`)}` });
const demo = basic('demo', 'demo');
const trustedProxies = ['127.0.0.1'];

describe('createDiagnosticsEvents', () => {
  const servers = testServers();

  async function setUp(options: Parameters<typeof createDiagnosticsEvents>[1] = {}) {
    const { endpoint, close } = createDiagnosticsEvents(parts, options);
    servers.later(close);
    const app = new Koa()
      .use(createRequestContext(createAddresses({ trustedProxies })))
      .use(createProblemResponses({ logger: silentLogger }))
      .use(async (ctx, next) => {
        requestContext(ctx).user = ctx.get('x-user') || undefined;
        await next();
      })
      .use(endpoint.run);
    const { origin } = await servers.http(app.callback());
    return { endpoint, close, origin, look: (query = '', headers = {}) => readEvents(origin + path + query, headers) };
  }

  it('is for the gateway to put behind the auth service, and not to count', async () => {
    const { endpoint } = await setUp();
    assert.deepEqual([endpoint.prefix, endpoint.authenticated, endpoint.isLongLived], [path, true, true]);
  });

  it('tells the diagnostics, round after round, to nobody but who asked', async () => {
    const { look } = await setUp({ intervalMs: 5 });
    const { headers, next } = await look();
    const told = ['content-type', 'cache-control', 'x-accel-buffering'].map((name) => headers[name]);
    assert.deepEqual(told, ['text/event-stream', 'no-store, no-transform', 'no']);
    for (const id of ['1', '2', '3']) {
      const event = (await next()) ?? assert.fail('it ended');
      assert.deepEqual([event.id, event.event], [id, 'diagnostics']);
      const { version, routes } = JSON.parse(event.data ?? '');
      assert.deepEqual([version, routes.length], ['1.2.3', 1]);
    }
  });

  it('picks by the same query as the page, and says what is wrong with it', async () => {
    const { origin, look } = await setUp();
    const { next } = await look('?filter=nowhere&offset=3');
    const { filter, offset, routes, routes_total } = JSON.parse((await next())?.data ?? '');
    assert.deepEqual([filter, offset, routes, routes_total], ['nowhere', 3, [], 1]);
    const { body } = await request(origin).get(`${path}?fliter=x&offset=-1`).expect(400);
    assert.deepEqual(
      body.errors.map(({ pointer }: { pointer: string }) => pointer),
      ['#/query/fliter', '#/query/offset'],
    );
  });

  it('names a long unknown argument by its first characters, none of them cut in two', async () => {
    const { origin } = await setUp();
    const { body } = await request(origin)
      .get(`${path}?${'x'.repeat(39)}${encodeURIComponent('😀😀')}=1`)
      .expect(400);
    assert.equal(body.errors[0].pointer, `#/query/${'x'.repeat(39)}${encodeURIComponent('😀…')}`);
  });

  it('is only read, has one path and one representation', async () => {
    const { origin } = await setUp();
    await request(origin).post(path).expect(405).expect('Allow', 'GET, HEAD, OPTIONS');
    await request(origin).get(`${path}/x`).expect(404);
    await request(origin).get(path).set('Accept', 'application/json').expect(406);
  });

  it('lets so many look on, and tells the others when to come back; a HEAD is none of them', async () => {
    const { origin, look } = await setUp({ streamsMax: 1 });
    await request(origin).head(path).expect(200).expect('Content-Type', 'text/event-stream');
    const first = await look();
    await request(origin).get(path).expect(503).expect('Retry-After', '60');
    first.leave();
    const { next } = await eventually(async () => {
      const again = await look();
      assert.equal(again.status, 200);
      return again;
    });
    assert.ok(await next());
  });

  it('keeps some of them from one user, and from one address where no user is known', async () => {
    const { look } = await setUp({ streamsPerClientMax: 2 });
    const from = (address: string, more = {}) => look('', { 'x-forwarded-for': address, ...more });
    const statuses: (number | undefined)[] = [];
    for (const [address, user] of [
      ['10.0.0.1', 'ann'],
      ['10.0.0.2', 'ann'],
      ['10.0.0.3', 'ann'],
      ['10.0.0.1', 'bob'],
      ['10.0.0.1', ''],
      ['10.0.0.1', ''],
      ['10.0.0.1', ''],
      ['10.0.0.2', ''],
      ['10.0.0.2', '10.0.0.1'],
    ] as const)
      statuses.push((await from(address, user && { 'x-user': user })).status);
    assert.deepEqual(statuses, [200, 200, 503, 200, 200, 200, 503, 200, 200]);
  });

  it('says whether all streams are in use, or those of this client', async () => {
    const { origin, look } = await setUp({ streamsMax: 3, streamsPerClientMax: 2 });
    const detail = async () => {
      const { body } = await request(origin).get(path).expect(503).expect('Retry-After', '60');
      return body.detail;
    };
    await look();
    await look();
    assert.match(await detail(), /^This user, or this address if there is no user, has as many event streams/);
    await look('', { 'x-user': 'ann' });
    assert.match(await detail(), /^All event streams are in use/);
  });
});

describe('the events of a desk', () => {
  const servers = testServers();
  const openDesk = desksOf(servers);

  async function listen(options: Parameters<typeof openDesk>[0] = {}) {
    const desk = await openDesk(options);
    const url = (await desk.listen()).gateway?.url ?? '';
    return { desk, look: (query = '', user = demo) => readEvents(url + path + query, user), url };
  }

  it('are behind the auth service', async () => {
    await call(await openDesk(), path).expect(401);
  });

  it('tell how figures move, whatever time-outs there are for others', async () => {
    const others = ['headerTimeoutMs', 'requestTimeoutMs', 'keepAliveTimeoutMs', 'upstreamIdleTimeoutMs'];
    const { look, url } = await listen(Object.fromEntries(others.map((name) => [name, 500])));
    const { next } = await look('?filter=check_alive');
    const requests = async () => JSON.parse((await next())?.data ?? '').routes[0].traffic.requests;
    assert.equal(await requests(), 0);
    for (let sent = 0; sent < 3; sent += 1) await fetch(`${url}/gateway/v0/check_alive`);
    assert.equal(await requests(), 3);
  });

  it('are in no figure themselves', async () => {
    const { desk, look } = await listen();
    const { next, leave } = await look();
    const own = async () => {
      const { body } = await callAsDemo(desk, '/gateway/v0/diag/?filter=diagnostics-events');
      const [{ name, traffic }] = body.routes;
      return [name, traffic.requests, traffic.in_flight];
    };
    await next();
    assert.deepEqual(await own(), ['diagnostics-events', 0, 0]);
    leave();
    assert.deepEqual(await own(), ['diagnostics-events', 0, 0]);
  });

  it('are four at once for a user, and another when one is left', async () => {
    const { look } = await listen();
    const [first] = [await look(), await look(), await look(), await look()];
    const refused = await look();
    assert.deepEqual([refused.status, refused.headers['retry-after']], [503, '60']);
    assert.equal((await look('', basic('guest', 'guest'))).status, 200);
    first.leave();
    await eventually(async () => assert.equal((await look()).status, 200));
  });

  it('end when the desk closes, which does not wait for those who look on', async () => {
    const { desk, look } = await listen({ shutdownTimeoutMs: 3_600_000 });
    const { next } = await look();
    await next();
    await Promise.all([desk.close(), next().then((event) => assert.equal(event, undefined))]);
  });

  it('come through a host app under a path of its own', async () => {
    const desk = await openDesk();
    const { origin } = await servers.http(new Koa().use(mount('/travel', desk.middleware)).callback());
    const { next } = await readEvents(`${origin}/travel${path}`, demo);
    assert.equal((await next())?.event, 'diagnostics');
    await desk.close();
    assert.equal(await next(), undefined);
  });
});
