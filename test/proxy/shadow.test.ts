/** Shadows: the copies that the second service receives, without any effect on the client. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { mock } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import Koa, { type Context } from 'koa';
import type { Mapping } from '#config';
import { createAddresses, createRequestContext } from '#http';
import { createClusters, createIdentity, createRequestHead, createShadow, type ShadowOptions } from '#proxy';
import { breakersOf, specOf } from '../support/clusters.ts';
import { mappingOf } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { closeOf, createDeferred, eventually } from '../support/waiting.ts';

const servers = testServers();

interface Setup extends Partial<Pick<ShadowOptions, 'timeoutMs'>> {
  readonly mapping?: Partial<Mapping>;
  readonly path?: string;
  /** Handles the original request. */
  readonly respond?: (ctx: Context) => Promise<void> | void;
}

/** Starts a service that echoes request bodies and copies each request to a shadow at `origin`. */
async function startShadowed(origin: string, { mapping, path = '', respond = echo, ...rest }: Setup = {}) {
  const clusters = createClusters();
  servers.later(clusters.close);
  const record = mappingOf({ name: 'copies', shadow: true, ...mapping });
  const { cluster } = clusters.acquire(specOf([origin], { circuitBreakers: record.circuitBreakers }));
  const logged: (string | undefined)[] = [];
  const log = (_fields: object, message?: string) => void logged.push(message);
  const logger = { info: log, warn: log, error: log, debug: log };
  const identity = createIdentity(['x-travel-user']);
  const headOf = createRequestHead({ mapping: record, path, identity });
  const copy = createShadow({ mapping: record, cluster, headOf, logger, timeoutMs: 60_000, ...rest });
  const app = new Koa();
  app.silent = true;
  app.use(createRequestContext(createAddresses())).use(async (ctx) => {
    copy(ctx);
    await respond(ctx);
  });
  /** Resolves when exactly these messages have been logged. */
  const hasLogged = (...messages: string[]) => eventually(() => assert.deepEqual(logged, messages));
  return { ...(await servers.http(app.callback())), cluster, hasLogged };
}

async function echo(ctx: Context): Promise<void> {
  ctx.body = (await text(ctx.req)) || 'empty';
}

async function startReceiver() {
  const arrived = createDeferred();
  const upstream = await startUpstream(servers, (res) => {
    res.end('dropped');
    arrived.resolve();
  });
  return { ...upstream, arrived: arrived.promise };
}

const notCopied = 'a request was not copied';
const copyFailed = 'a copy of a request failed';

describe('a shadow', () => {
  it('receives the same request as the service, with -shadow appended to the host', async () => {
    const receiver = await startReceiver();
    const front = await startShadowed(receiver.origin, { path: '/base' });
    const response = await fetch(`${front.origin}/v1/hotels/bookings?page=2`, {
      headers: { 'X-Travel-User': 'alice', 'X-Forwarded-Host': 'evil', Accept: 'text/plain' },
    });
    assert.equal(await response.text(), 'empty');
    await receiver.arrived;
    const { method, url, headers } = receiver.only();
    assert.deepEqual([method, url], ['GET', '/base/bookings?page=2']);
    assert.equal(headers.host, `127.0.0.1-shadow:${front.port}`);
    assert.equal(headers.accept, 'text/plain');
    assert.equal(headers['x-forwarded-prefix'], '/v1/hotels');
    assert.equal(headers['x-request-id'], response.headers.get('x-request-id'));
    assert.equal(headers['x-forwarded-host'], `127.0.0.1:${front.port}`);
  });

  it('receives its own host with -shadow if its mapping asks for the host of the service', async () => {
    const receiver = await startReceiver();
    const front = await startShadowed(receiver.origin, { mapping: { hostRewrite: '{service}' } });
    await fetch(`${front.origin}/v1/hotels`);
    await receiver.arrived;
    assert.equal(receiver.only().headers.host, `127.0.0.1-shadow:${receiver.port}`);
  });

  it('receives the path, the host and the headers that its mapping sets', async () => {
    const receiver = await startReceiver();
    const requestHeaders = { add: [{ name: 'x-copy', value: 'yes', append: true }], remove: ['user-agent'] };
    const mapping = { hostRewrite: 'hotel.example', rewrite: '/new', requestHeaders };
    const front = await startShadowed(receiver.origin, { mapping });
    await fetch(`${front.origin}/v1/hotels/bookings`);
    await receiver.arrived;
    assert.equal(receiver.only().url, '/new/bookings');
    const { host, 'x-copy': added, 'user-agent': removed } = receiver.only().headers;
    assert.deepEqual([host, added, removed], ['hotel.example-shadow', 'yes', undefined]);
  });

  it('receives a WebDAV destination with a host as a path', async () => {
    const receiver = await startReceiver();
    const front = await startShadowed(receiver.origin);
    await fetch(`${front.origin}/v1/hotels/a`, {
      method: 'COPY',
      headers: { Destination: `${front.origin}/v1/hotels/b` },
    });
    await receiver.arrived;
    assert.equal(receiver.only().headers.destination, '/b');
  });

  const body = 'x'.repeat(1000);
  const framed = (sent: string) => [sent, new Blob([sent.slice(0, 400), sent.slice(400)]).stream()];
  const post = (origin: string, sent: RequestInit['body']) =>
    fetch(`${origin}/v1/hotels`, { method: 'POST', body: sent, duplex: 'half' } as RequestInit);

  it('receives the same body, sent with a length or in chunks', async () => {
    for (const sent of framed(body)) {
      const receiver = await startReceiver();
      const front = await startShadowed(receiver.origin);
      assert.equal(await (await post(front.origin, sent)).text(), body);
      await receiver.arrived;
      assert.equal(receiver.only().body, body);
    }
  });

  it('receives no request whose body the service never reads', async () => {
    const { origin } = await startReceiver();
    const front = await startShadowed(origin, { respond: (ctx) => void Object.assign(ctx, { body: 'early' }) });
    const response = await post(front.origin, 'hello');
    assert.equal(await response.text(), 'early');
    await front.hasLogged(notCopied);
  });

  it('receives no request whose body is too large, sent with a length or in chunks', async () => {
    const receiver = await startReceiver();
    const front = await startShadowed(receiver.origin);
    const large = 'x'.repeat(64 * 1024 + 1);
    for (const sent of framed(large)) assert.equal(await (await post(front.origin, sent)).text(), large);
    await front.hasLogged(notCopied, notCopied);
    assert.equal(front.cluster.snapshot().activeRequests, 0);
    assert.equal(receiver.reached.length, 0);
  });

  it('receives no request whose body is cut off', async () => {
    const receiver = await startReceiver();
    const begun = createDeferred();
    const respond = async (ctx: Context) => {
      ctx.req.once('data', begun.resolve);
      await once(ctx.req, 'close');
    };
    const front = await startShadowed(receiver.origin, { respond });
    const broken = request(`${front.origin}/v1/hotels`, { method: 'POST', headers: { 'Content-Length': 10 } });
    broken.on('error', () => {}).write('half');
    await begun.promise;
    broken.destroy();
    await front.hasLogged(notCopied);
    assert.equal(front.cluster.snapshot().activeRequests, 0);
  });

  it('releases its slot if the client leaves after an early response, without sending the rest of the body', async () => {
    const respond = (ctx: Context) => {
      ctx.body = 'early';
    };
    const front = await startShadowed((await startReceiver()).origin, { respond });
    const impatient = request(`${front.origin}/v1/hotels`, { method: 'POST', headers: { 'Content-Length': 10 } });
    impatient.on('error', () => {}).write('half');
    await once(impatient, 'response');
    impatient.destroy();
    await front.hasLogged(notCopied);
    assert.equal(front.cluster.snapshot().activeRequests, 0);
  });

  it('receives no more copies than its circuit breakers allow, while every client gets its response', async () => {
    const arrived = createDeferred();
    const held: (() => void)[] = [];
    const receiver = await startUpstream(servers, (res) => {
      held.push(() => void res.end());
      if (held.length === 2) arrived.resolve();
    });
    const mapping = { circuitBreakers: breakersOf({ maxRequests: 2 }) };
    const front = await startShadowed(receiver.origin, { mapping });
    const responses = await Promise.all(Array.from({ length: 5 }, () => fetch(`${front.origin}/v1/hotels`)));
    for (const response of responses) assert.equal(await response.text(), 'empty');
    await arrived.promise;
    await front.hasLogged(notCopied, notCopied, notCopied);
    for (const release of held) release();
  });

  it('leaves half of its slots to other mappings while bodies arrive slowly', async () => {
    const receiver = await startReceiver();
    const mapping = { circuitBreakers: breakersOf({ maxRequests: 4 }) };
    const front = await startShadowed(receiver.origin, { mapping, respond: ({ req }) => closeOf(req.resume()) });
    const slow = Array.from({ length: 4 }, () => {
      const sent = request(`${front.origin}/v1/hotels`, { method: 'POST', headers: { 'Content-Length': 10 } });
      sent.on('error', () => {}).write('half');
      return sent;
    });
    await front.hasLogged(notCopied, notCopied);
    assert.equal(front.cluster.snapshot().activeRequests, 2);
    for (const one of slow) one.destroy();
    await eventually(() => assert.equal(front.cluster.snapshot().activeRequests, 0));
  });

  it('may fail: this is logged, but the client does not notice', async () => {
    const refusing = await servers.refusing();
    const front = await startShadowed(refusing.origin);
    const response = await fetch(`${front.origin}/v1/hotels`);
    assert.deepEqual([response.status, await response.text()], [200, 'empty']);
    await front.hasLogged(copyFailed);
  });

  it('is not sent again when the service closes the connection that it reuses', async () => {
    const sockets: Socket[] = [];
    const closing = await servers.tcp((socket) => {
      socket.on('data', () => {
        if (sockets.includes(socket)) socket.destroy();
        else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
        sockets.push(socket);
      });
    });
    const front = await startShadowed(closing.origin);
    await fetch(`${front.origin}/v1/hotels`);
    await eventually(() => assert.deepEqual([sockets.length, front.cluster.snapshot().activeRequests], [1, 0]));
    await fetch(`${front.origin}/v1/hotels`);
    await front.hasLogged(copyFailed);
    assert.equal(sockets.length, 2);
  });

  it('is aborted after its time-out and releases its slot', async () => {
    const arrived = createDeferred();
    const closed = createDeferred();
    const silent = await servers.tcp((socket) => {
      socket.once('data', arrived.resolve).once('close', closed.resolve);
    });
    const front = await startShadowed(silent.origin, { timeoutMs: 1000 });
    await fetch(`${front.origin}/v1/hotels`);
    await Promise.all([arrived.promise, closed.promise, front.hasLogged(copyFailed)]);
    assert.equal(front.cluster.snapshot().activeRequests, 0);
  });

  it('without a time-out is aborted after a minute, even if its response never ends', async () => {
    const [arrived, closed] = [createDeferred(), createDeferred()];
    const endless = await servers.http((_req, res) => {
      res.on('close', closed.resolve).writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n');
      arrived.resolve();
    });
    const front = await startShadowed(endless.origin, { timeoutMs: 0 });
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      await fetch(`${front.origin}/v1/hotels`);
      await arrived.promise;
      await nextTurn();
      mock.timers.tick(60_000);
      await closed.promise;
    } finally {
      mock.timers.reset();
    }
    assert.equal(front.cluster.snapshot().activeRequests, 0);
  });
});
