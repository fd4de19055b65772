import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import Koa, { type Context, type Middleware } from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import {
  createAccessLog,
  createAddresses,
  createRequestContext,
  createUpgrades,
  endedStatus,
  type Logger,
  logRequest,
  requestContext,
  silentLogger,
  upgradeOf,
} from '#http';
import { createSignal } from '../support/waiting.ts';
import { withServer } from './raw-exchange.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const ids = { 'X-Request-Id': 'one', traceparent: `00-${traceId}-b7ad6b7169203331-00` };

type Line = Readonly<Record<string, unknown>>;

/** A logger that keeps its lines, and a promise of the first: the access log writes when the connection is done. */
function keepingLogger() {
  const lines: Line[] = [];
  const { given: firstLine, give } = createSignal();
  const write = (fields: object, message?: string) => {
    lines.push({ ...fields, message });
    give();
  };
  const logger: Logger = { info: write, warn: write, error: write };
  return { logger, lines, firstLine };
}

function handlerOf(...middleware: readonly Middleware[]) {
  const app = new Koa();
  app.silent = true;
  for (const one of [createRequestContext(createAddresses()), ...middleware]) app.use(one);
  return app.callback();
}

const answerX: Middleware = (ctx) => {
  ctx.body = 'x';
};

const head = (target: string, ...lines: readonly string[]) =>
  [`GET ${target} HTTP/1.1`, 'Host: x', ...lines, '', ''].join('\r\n');

describe('createAccessLog', () => {
  it('writes one line: the user, the request, the mapping, the status and the times', async () => {
    const { logger, lines, firstLine } = keepingLogger();
    const handler = handlerOf(createAccessLog(logger), (ctx) => {
      Object.assign(requestContext(ctx), { user: 'demo', mapping: 'hotel', upstreamMs: 12.345 });
      ctx.status = 201;
      ctx.body = 'made';
    });
    await request(handler)
      .post('/v1/hotels/bookings/?token=secret')
      .set({ ...ids, Authorization: 'Basic secret', Cookie: 'session=secret' })
      .expect(201);
    await firstLine;
    const [{ durationMs, ...rest } = {}] = lines;
    assert.deepEqual(rest, {
      ...{ message: 'request', requestId: 'one', traceId, user: 'demo', mapping: 'hotel' },
      ...{ method: 'POST', path: '/v1/hotels/bookings/', status: 201, upstreamMs: 12.3 },
    });
    assert.ok(typeof durationMs === 'number' && durationMs >= 0 && durationMs * 10 === Math.round(durationMs * 10));
    assert.equal(lines.length, 1);
  });

  it('has the path that the client sent, also when the app is mounted and rewrites it', async () => {
    const { logger, lines, firstLine } = keepingLogger();
    const inner = new Koa().use(createAccessLog(logger)).use((ctx) => {
      ctx.path = '/elsewhere';
      ctx.body = 'x';
    });
    await request(new Koa().use(mount('/travel', inner)).callback())
      .get('/travel/v1/x')
      .expect(200);
    await firstLine;
    assert.equal(lines[0]?.['path'], '/travel/v1/x');
  });

  it('has status 500 for an error, and the path of a target that no URL parser reads', async () => {
    const { logger, lines, firstLine } = keepingLogger();
    const handler = handlerOf(createAccessLog(logger), () => {
      throw new Error('broken');
    });
    await withServer({ handler }, async ({ send }) => {
      await send(head('http://[/x', 'Connection: close'));
    });
    await firstLine;
    assert.deepEqual([lines[0]?.['path'], lines[0]?.['status']], ['/x', 500]);
  });

  it('writes a line for each request of one connection', async () => {
    const { logger, lines } = keepingLogger();
    await withServer({ handler: handlerOf(createAccessLog(logger), answerX) }, async ({ send }) => {
      await send(head('/1') + head('/2', 'Connection: close'));
    });
    assert.deepEqual(
      lines.map(({ path }) => path),
      ['/1', '/2'],
    );
  });

  it('writes nothing when the level info is off', async () => {
    const { logger, lines } = keepingLogger();
    const quiet: Logger = { ...logger, isLevelEnabled: (level) => level !== 'info' };
    await withServer({ handler: handlerOf(createAccessLog(quiet), answerX) }, async ({ send }) => {
      await send(head('/', 'Connection: close'));
    });
    assert.deepEqual(lines, []);
  });
});

describe('logRequest', () => {
  async function during(run: (ctx: Context) => void): Promise<void> {
    const handler = handlerOf((ctx) => {
      run(ctx);
      ctx.status = 204;
    });
    await request(handler).get('/').set(ids).expect(204);
  }

  it('begins each line with the ids of the request and its trace', async () => {
    const { logger, lines } = keepingLogger();
    await during((ctx) => logRequest(logger, 'warn', ctx, { reason: 'late' }, 'no answer'));
    assert.deepEqual(lines, [{ requestId: 'one', traceId, reason: 'late', message: 'no answer' }]);
  });

  it('does not open a trace when the level is off', async () => {
    const logger: Logger = { ...silentLogger, warn: () => assert.fail('written') };
    await during((ctx) => {
      logRequest(logger, 'warn', ctx, {}, 'no answer');
      assert.equal(requestContext(ctx).trace, undefined);
    });
  });
});

describe('endedStatus', () => {
  /** More than the buffers of two sockets. */
  const large = Buffer.alloc(32 * 1024 * 1024);

  /** A handler, and the status with which its first response ended. */
  function watched(answer: RequestListener) {
    let resolve = (_status: number) => {};
    const status = new Promise<number>((settle) => {
      resolve = settle;
    });
    const handler: RequestListener = (req, res) => {
      res.once('close', () => resolve(endedStatus(res)));
      answer(req, res);
    };
    return { handler, status };
  }

  for (const [what, answer] of Object.entries<RequestListener>({
    'a complete response': (_req, res) => res.end(large),
    'half of a response': (_req, res) => res.write(large),
    'a response that fits into the buffers and has not ended': (_req, res) => res.write('x'),
  }))
    it(`is 499 when the client disconnects before it has read ${what}`, async () => {
      const { handler, status } = watched(answer);
      await withServer({ handler }, async ({ open }) => {
        const socket = open();
        socket.write(head('/'));
        await once(socket, 'data');
        socket.destroy();
        assert.equal(await status, 499);
      });
    });

  for (const line of ['Connection: keep-alive', 'Connection: close'])
    it(`is the status of a response that was read, with ${line}`, async () => {
      const { handler, status } = watched((_req, res) => res.writeHead(404).end(large));
      await withServer({ handler }, async ({ open }) => {
        const socket = open();
        socket.resume().write(head('/', line));
        assert.equal(await status, 404);
        socket.destroy();
      });
    });

  it('is 499 for each pipelined response when the client disconnects, and each closes once', async () => {
    const count = 3;
    const [all, over] = [createSignal(), createSignal()];
    const statuses: number[] = [];
    let started = 0;
    const handler: RequestListener = (_req, res) => {
      started += 1;
      if (started === count) all.give();
      res.on('close', () => {
        if (statuses.push(endedStatus(res)) === count) setImmediate(over.give);
      });
    };
    await withServer({ handler }, async ({ open }) => {
      const socket = open();
      socket.write(head('/').repeat(count));
      await all.given;
      socket.destroy();
      await over.given;
    });
    assert.deepEqual(statuses, Array(count).fill(499));
  });

  it('is 101 for a switched connection, which always ends by being cut off', async () => {
    const { handler, status } = watched((req) => upgradeOf(req)?.accept('echo').resume());
    await withServer({ handler }, async ({ server, open }) => {
      server.on('upgrade', createUpgrades(() => true).listener(handler));
      const socket = open();
      socket.write(head('/', 'Connection: Upgrade', 'Upgrade: echo'));
      await once(socket, 'data');
      socket.resetAndDestroy();
      assert.equal(await status, 101);
    });
  });
});
