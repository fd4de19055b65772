import assert from 'node:assert/strict';
import { once } from 'node:events';
import Koa, { type Middleware } from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import {
  createAccessLog,
  createAddresses,
  createRequestContext,
  type Logger,
  requestContext,
  silentLogger,
} from '#http';
import { withServer } from './raw-exchange.ts';

type Line = Readonly<Record<string, unknown>>;

/** A logger that keeps its lines, and a promise of the first one: the line is written when the connection is done. */
function keepingLogger() {
  const lines: Line[] = [];
  let written = () => {};
  const firstLine = new Promise<void>((resolve) => {
    written = resolve;
  });
  const logger: Logger = {
    ...silentLogger,
    isLevelEnabled: () => true,
    info(fields, message) {
      lines.push({ ...fields, message });
      written();
    },
  };
  return { logger, lines, firstLine };
}

function handlerOf(logger: Logger, ...middleware: readonly Middleware[]) {
  const app = new Koa();
  app.silent = true;
  for (const one of [createRequestContext(createAddresses()), createAccessLog(logger), ...middleware]) app.use(one);
  return app.callback();
}

describe('createAccessLog', () => {
  it('writes one line that tells who asked for what, where it went, how it ended and how long it took', async () => {
    const { logger, lines, firstLine } = keepingLogger();
    const handler = handlerOf(logger, (ctx) => {
      Object.assign(requestContext(ctx), { user: 'demo', mapping: 'hotel', upstreamMs: 12.345 });
      ctx.status = 201;
      ctx.body = 'made';
    });
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    const traceparent = `00-${traceId}-b7ad6b7169203331-00`;
    await request(handler).post('/v1/hotels/bookings/').set({ 'X-Request-Id': 'one', traceparent }).expect(201);
    await firstLine;
    const { durationMs, ...rest } = lines[0] ?? {};
    assert.deepEqual(rest, {
      message: 'request',
      requestId: 'one',
      traceId,
      user: 'demo',
      mapping: 'hotel',
      method: 'POST',
      path: '/v1/hotels/bookings/',
      status: 201,
      upstreamMs: 12.3,
    });
    assert.ok(typeof durationMs === 'number' && durationMs >= 0 && durationMs * 10 === Math.round(durationMs * 10));
    assert.equal(lines.length, 1);
  });

  it('never shows the query or a credential', async () => {
    const { logger, lines, firstLine } = keepingLogger();
    await request(handlerOf(logger))
      .get('/x?token=secret')
      .auth('demo', 'secret')
      .set('Cookie', 'session=secret')
      .expect(404);
    await firstLine;
    assert.ok(!JSON.stringify(lines).includes('secret'));
    assert.equal(lines[0]?.['path'], '/x');
  });

  it('shows the path as the client sent it, whoever mounts us and rewrites it on the way', async () => {
    const { logger, lines, firstLine } = keepingLogger();
    const inner = new Koa();
    inner.use(createAccessLog(logger));
    inner.use((ctx) => {
      ctx.path = '/elsewhere';
      ctx.body = 'x';
    });
    const outer = new Koa();
    outer.use(mount('/travel', inner));
    await request(outer.callback()).get('/travel/v1/x').expect(200);
    await firstLine;
    assert.equal(lines[0]?.['path'], '/travel/v1/x');
  });

  it('says 500 when what follows throws', async () => {
    const { logger, lines, firstLine } = keepingLogger();
    const handler = handlerOf(logger, () => {
      throw new Error('broken');
    });
    await request(handler).get('/x').expect(500);
    await firstLine;
    assert.equal(lines[0]?.['status'], 500);
  });

  it('takes a request target that no URL parser can read', async () => {
    const { logger, lines, firstLine } = keepingLogger();
    const handler = handlerOf(logger, (ctx) => {
      ctx.body = 'x';
    });
    await withServer({ handler }, async ({ send }) => {
      const response = await send('GET http://[/x HTTP/1.1\r\nHost: desk.test\r\nConnection: close\r\n\r\n');
      assert.match(response, /^HTTP\/1\.1 200 /);
    });
    await firstLine;
    assert.equal(lines[0]?.['path'], '/x');
  });

  it('says 499 when the client leaves before the end', async () => {
    const { logger, lines, firstLine } = keepingLogger();
    const handler = handlerOf(logger, async (ctx) => {
      ctx.respond = false;
      ctx.res.write('the first half');
      await once(ctx.res, 'close');
    });
    await withServer({ handler }, async ({ open }) => {
      const socket = open();
      socket.write('GET /x HTTP/1.1\r\nHost: desk.test\r\n\r\n');
      await once(socket, 'data');
      socket.destroy();
      await firstLine;
    });
    assert.equal(lines[0]?.['status'], 499);
    assert.equal(lines.length, 1);
  });

  it('writes a line for each request of one connection', async () => {
    const { logger, lines } = keepingLogger();
    const handler = handlerOf(logger, (ctx) => {
      ctx.body = 'x';
    });
    await withServer({ handler }, async ({ send }) => {
      await send('GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    });
    assert.deepEqual(
      lines.map((line) => line['path']),
      ['/1', '/2'],
    );
  });

  it('writes nothing when info is off', async () => {
    const { logger, lines } = keepingLogger();
    const quiet: Logger = { ...logger, isLevelEnabled: (level) => level !== 'info' };
    const handler = handlerOf(quiet, (ctx) => {
      ctx.body = 'x';
    });
    await withServer({ handler }, async ({ send }) => {
      await send('GET /1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    });
    assert.deepEqual(lines, []);
  });

  it('writes when the logger cannot tell its level', async () => {
    const { logger, firstLine } = keepingLogger();
    const { info, warn, error } = logger;
    await request(handlerOf({ info, warn, error })).get('/x').expect(404);
    await firstLine;
  });
});
