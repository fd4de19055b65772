/** `/gateway/v0/diag/events`: the streams with fake data, the endpoint on its own, and the events of a server. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { mock } from 'node:test';
import Koa from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { createDiagnosticsEvents, readDiagnostics } from '#diag';
import { silentLogger } from '#foundation';
import { createAddresses, createProblemResponses, createRequestContext, requestContext } from '#http';
import { createEventStreams, type EventStreamsOptions } from '../../src/diag/events.ts';
import { call, callAsDemo, desksOf } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { eventually } from '../support/waiting.ts';
import { type EventReader, readEvents } from '../support/wire/event-reader.ts';
import { parts } from './diagnostics-parts.ts';

const path = '/gateway/v0/diag/events';
const basic = (name: string) => ({ Authorization: `Basic ${btoa(`${name}:${name}`)}` });

async function nextOf({ next }: Pick<EventReader, 'next'>) {
  return (await next()) ?? assert.fail('the stream ended');
}

describe('createEventStreams', () => {
  const servers = testServers();
  afterEach(() => mock.restoreAll());

  /** The path of a stream is its filter. Each reading returns a running number and the filter. */
  async function setUp(options: Partial<EventStreamsOptions> = {}) {
    const filters: string[] = [];
    const state = { generation: 1, streams: 0 };
    const streams = createEventStreams({
      async read({ filter }) {
        filters.push(filter);
        return `${filters.length} ${filter}`;
      },
      generation: () => state.generation,
      intervalMs: 5,
      ...options,
    });
    servers.later(streams.close);
    const served = await servers.http(async (req, res) => {
      const filter = (req.url ?? '').slice(1);
      if ((await streams.open({ filter, offset: 0 }, res, filter)) !== 'open') return void res.writeHead(503).end();
      state.streams += 1;
      res.once('close', () => {
        state.streams -= 1;
      });
    });
    const open = (filter = '') => readEvents(`${served.origin}/${filter}`);
    const allGone = () => eventually(() => assert.equal(state.streams, 0));
    return { ...served, filters, state, streams, open, allGone };
  }

  it('sends an event immediately and one in each round, with increasing ids', async () => {
    const { open } = await setUp();
    const stream = await open('x');
    for (const id of ['1', '2', '3'])
      assert.deepEqual(await nextOf(stream), { id, event: 'diagnostics', retry: '5', data: `${id} x` });
  });

  it('reads once per round for all streams with the same filter', async () => {
    const { open } = await setUp();
    const streams = [await open('a'), await open('a'), await open('b')] as const;
    const seen = streams.map(() => new Map<string, string>());
    const areShared = () => [...(seen[0]?.keys() ?? [])].some((id) => seen[1]?.has(id));
    while (!areShared()) {
      for (const [index, stream] of streams.entries()) {
        const { id = '', data = '' } = await nextOf(stream);
        seen[index]?.set(id, data);
      }
    }
    assert.ok([...(seen[2]?.entries() ?? [])].every(([id, data]) => data.endsWith(' b') && !seen[0]?.has(id)));
  });

  it('does not read and has no timer without subscribers', async () => {
    const [set, clear] = [mock.method(globalThis, 'setTimeout'), mock.method(globalThis, 'clearTimeout')];
    const { open, filters, allGone } = await setUp({ intervalMs: 3_600_000 });
    const timers = () => set.mock.calls.filter(({ arguments: [, delayMs] }) => delayMs === 3_600_000);
    const stream = await open();
    await nextOf(stream);
    stream.disconnect();
    await allGone();
    assert.ok(clear.mock.calls.some(({ arguments: [timer] }) => timer === timers()[0]?.result));
    await open();
    assert.deepEqual([timers().length, filters.length], [2, 2]);
  });

  it('pauses after each reading for three times as long as it took', async () => {
    const log: string[] = [];
    let nowMs = 0;
    const { open } = await setUp({
      clock: () => nowMs,
      async read({ filter }) {
        log.push(filter);
        setImmediate(() => log.push('pause'));
        nowMs += 7;
        return '';
      },
    });
    const streams = [await open('a'), await open('b'), await open('c')];
    const set = mock.method(globalThis, 'setTimeout');
    // Before this point, a stream may have been opened in the same turn as a round.
    log.splice(0);
    for (let round = 0; round < 3; round += 1) for (const stream of streams) await nextOf(stream);
    const isReading = (entry: string | undefined) => entry !== undefined && entry !== 'pause';
    assert.ok(log.some(isReading));
    assert.ok(log.every((entry, index) => !isReading(entry) || !isReading(log[index - 1])));
    assert.ok(set.mock.calls.filter(({ arguments: [, delayMs] }) => delayMs === 21).length > 3);
  });

  it('ends a stream after its maximum duration, after a complete event', async () => {
    const { open, allGone } = await setUp({ lifeMs: 20 });
    const { next } = await open();
    let events = 0;
    while ((await next()) !== undefined) events += 1;
    assert.ok(events > 1);
    await allGone();
  });

  it('ends streams after the first event of a new configuration', async () => {
    const { open, state } = await setUp({ read: async () => `generation ${state.generation}` });
    const { next } = await open();
    await next();
    state.generation = 2;
    const sent: (string | undefined)[] = [];
    for (let event = await next(); event !== undefined; event = await next()) sent.push(event.data);
    assert.deepEqual(sent.slice(sent.indexOf('generation 2')), ['generation 2']);
  });

  it('ends all streams immediately when closed, and then opens no more', async () => {
    const { open, streams } = await setUp({ intervalMs: 60_000 });
    const { next } = await open();
    await next();
    streams.close();
    assert.equal(await next(), undefined);
    assert.equal((await open()).status, 503);
  });

  it('skips rounds for a slow reader, and disconnects it after the maximum duration', async () => {
    const filters: string[] = [];
    const { port, state, open, allGone } = await setUp({
      async read({ filter }) {
        filters.push(filter);
        return filter === 'slow' ? 'x'.repeat(8 * 1024 * 1024) : '';
      },
      lifeMs: 150,
    });
    const socket = connect(port, '127.0.0.1');
    servers.later(() => socket.destroy());
    socket.write('GET /slow HTTP/1.1\r\nHost: x\r\n\r\n');
    socket.pause();
    await eventually(() => assert.equal(state.streams, 1));
    const { next } = await open('quick');
    for (let count = 0; count < 10; count += 1) await next();
    assert.equal(filters.filter((filter) => filter === 'slow').length, 1);
    await allGone();
  });

  it('disconnects only the stream whose reading fails', async () => {
    let isBroken = false;
    const { open } = await setUp({
      async read({ filter }) {
        if (isBroken && filter === 'bad') throw new Error('broken');
        return filter;
      },
    });
    const [bad, good] = [await open('bad'), await open('good')];
    isBroken = true;
    await assert.rejects(async () => {
      while ((await bad.next()) !== undefined);
    });
    for (let count = 0; count < 5; count += 1) assert.equal((await nextOf(good)).data, 'good');
  });
});

describe('createDiagnosticsEvents', () => {
  const servers = testServers();

  async function setUp(options: Partial<Parameters<typeof createDiagnosticsEvents>[1]> = {}) {
    const { endpoint, close } = createDiagnosticsEvents((filter) => readDiagnostics(parts, filter), {
      generation: () => 1,
      ...options,
    });
    servers.later(close);
    const app = new Koa()
      .use(createRequestContext(createAddresses({ trustedProxies: ['127.0.0.1'] })))
      .use(createProblemResponses({ logger: silentLogger }))
      .use(async (ctx, next) => {
        requestContext(ctx).user = ctx.get('x-user') || undefined;
        await next();
      })
      .use(endpoint.run);
    const { origin } = await servers.http(app.callback());
    return { origin, open: (query = '', headers = {}) => readEvents(origin + path + query, headers) };
  }

  it('sends the diagnostics with headers against caching and buffering', async () => {
    const stream = await (await setUp()).open();
    const sent = ['content-type', 'cache-control', 'x-accel-buffering'].map((name) => stream.headers[name]);
    assert.deepEqual(sent, ['text/event-stream', 'no-store, no-transform', 'no']);
    const { version, routes } = JSON.parse((await nextOf(stream)).data ?? '');
    assert.deepEqual([version, routes.length], ['1.2.3', 1]);
  });

  it('accepts the query of the page, and rejects others', async () => {
    const { origin, open } = await setUp();
    const { data = '' } = await nextOf(await open('?filter=nowhere&offset=3'));
    const { filter, offset, routes, routes_total } = JSON.parse(data);
    assert.deepEqual([filter, offset, routes, routes_total], ['nowhere', 3, [], 1]);
    await request(origin).get(`${path}?offset=-1`).set('Accept', 'application/json').expect(400);
  });

  it('is read-only, and has one path and one representation', async () => {
    const { origin } = await setUp();
    await request(origin).post(path).expect(405).expect('Allow', 'GET, HEAD, OPTIONS');
    await request(origin).get(`${path}/x`).expect(404);
    await request(origin).get(path).set('Accept', 'application/json').expect(406);
  });

  it('rejects streams beyond the maximum until one is closed; HEAD opens none', async () => {
    const { origin, open } = await setUp({ streamsMax: 1 });
    await request(origin).head(path).expect(200).expect('Content-Type', 'text/event-stream');
    const first = await open();
    const { body } = await request(origin).get(path).expect(503).expect('Retry-After', '60');
    assert.match(body.detail, /^All event streams are in use/);
    first.disconnect();
    await eventually(async () => assert.equal((await open()).status, 200));
  });

  it('limits the streams of a user, or of an address when the user is unknown', async () => {
    const { origin, open } = await setUp({ streamsPerClientMax: 2 });
    const check = async (address: string, user: string, expected: number) => {
      const { status } = await open('', { 'x-forwarded-for': address, ...(user && { 'x-user': user }) });
      assert.equal(status, expected, `${address} ${user}`);
    };
    await check('10.0.0.1', 'ann', 200);
    await check('10.0.0.2', 'ann', 200);
    await check('10.0.0.3', 'ann', 503);
    await check('10.0.0.1', 'bob', 200);
    await check('10.0.0.1', '', 200);
    await check('10.0.0.1', '', 200);
    await check('10.0.0.1', '', 503);
    await check('10.0.0.2', '', 200);
    await check('10.0.0.2', '10.0.0.1', 200);
    const { body } = await request(origin).get(path).set('X-User', 'ann').expect(503).expect('Retry-After', '60');
    assert.match(
      body.detail,
      /^This user, or this address if there is no user, has reached the maximum number of event streams/,
    );
  });
});

describe('the events of a server', () => {
  const servers = testServers();
  const openDesk = desksOf(servers);

  async function listen(options: Parameters<typeof openDesk>[0] = {}) {
    const desk = await openDesk(options);
    const url = (await desk.listen()).gateway.url;
    return { desk, open: (query = '', user = 'demo') => readEvents(url + path + query, basic(user)), url };
  }

  it('show how figures change, on a stream that is exempt from request time-outs', async () => {
    const timeouts = ['headerTimeoutMs', 'requestTimeoutMs', 'keepAliveTimeoutMs', 'upstreamIdleTimeoutMs'];
    const { open, url } = await listen(Object.fromEntries(timeouts.map((name) => [name, 500])));
    const stream = await open('?filter=check_alive');
    const requests = async () => JSON.parse((await nextOf(stream)).data ?? '').routes[0].traffic.requests;
    assert.equal(await requests(), 0);
    for (let sent = 0; sent < 3; sent += 1) await fetch(`${url}/gateway/v0/check_alive`);
    assert.equal(await requests(), 3);
  });

  it('need credentials, are limited to four streams per user, and are not counted as traffic', async () => {
    const { desk, open } = await listen({ adminUsers: ['guest'] });
    await call(desk, path).expect(401);
    const [first] = [await open(), await open(), await open(), await open()];
    assert.deepEqual([(await open()).status, (await open('', 'guest')).status], [503, 200]);
    const check = async () => {
      const { body } = await callAsDemo(desk, '/gateway/v0/diag/?filter=diagnostics-events');
      const [{ name, traffic }] = body.routes;
      assert.deepEqual([name, traffic.requests, traffic.in_flight], ['diagnostics-events', 0, 0]);
    };
    await check();
    first.disconnect();
    await check();
  });

  it('end when the server closes, which does not wait for subscribers', async () => {
    const { desk, open } = await listen({ shutdownTimeoutMs: 3_600_000 });
    const { next } = await open();
    await next();
    await Promise.all([desk.close(), next().then((event) => assert.equal(event, undefined))]);
  });

  it('work in an app that mounts the server under a path', async () => {
    const desk = await openDesk();
    const { origin } = await servers.http(new Koa().use(mount('/travel', desk.middleware)).callback());
    const { next } = await readEvents(`${origin}/travel${path}`, basic('demo'));
    assert.equal((await next())?.event, 'diagnostics');
  });
});
