/** The ids in the log lines of a request, and the status that the log reports for a response. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { connect } from 'node:net';
import Koa, { type Context } from 'koa';
import request from 'supertest';
import {
  createAddresses,
  createRequestContext,
  createUpgrades,
  finalStatus,
  type Logger,
  requestContext,
  silentLogger,
  upgradeOf,
} from '#http';
import { logRequest } from '../../../src/http/log/log.ts';
import { type LogLine, recordingLogger } from '../../support/edge.ts';
import { testServers } from '../../support/serve.ts';
import { createDeferred } from '../../support/waiting.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const ids = { 'X-Request-Id': 'one', traceparent: `00-${traceId}-b7ad6b7169203331-00` };

const head = (target: string, ...lines: readonly string[]) =>
  [`GET ${target} HTTP/1.1`, 'Host: x', ...lines, '', ''].join('\r\n');

describe('logRequest', () => {
  async function during(run: (ctx: Context) => void): Promise<void> {
    const app = new Koa().use(createRequestContext(createAddresses())).use((ctx) => {
      run(ctx);
      ctx.status = 204;
    });
    await request(app.callback()).get('/').set(ids).expect(204);
  }

  it('begins each line with the ids of the request and its trace', async () => {
    const lines: LogLine[] = [];
    await during((ctx) => logRequest(recordingLogger(lines), 'warn', ctx, { reason: 'late' }, 'no answer'));
    const fields = { requestId: 'one', traceId, reason: 'late' };
    assert.deepEqual(lines, [{ level: 'warn', fields, message: 'no answer' }]);
  });

  it('does not create a trace when the level is off', async () => {
    const logger: Logger = { ...silentLogger, warn: () => assert.fail('written') };
    await during((ctx) => {
      logRequest(logger, 'warn', ctx, {}, 'no answer');
      assert.equal(requestContext(ctx).trace, undefined);
    });
  });
});

describe('finalStatus', () => {
  const servers = testServers();

  /** Does not fit into the buffers of the two sockets. */
  const large = Buffer.alloc(32 * 1024 * 1024);

  /** Wraps a handler and resolves `status` with the final status of its first response. */
  function watch(handle: RequestListener) {
    let resolve = (_status: number) => {};
    const status = new Promise<number>((settle) => {
      resolve = settle;
    });
    const handler: RequestListener = (req, res) => {
      res.once('close', () => resolve(finalStatus(res)));
      handle(req, res);
    };
    return { handler, status };
  }

  for (const [what, handle] of Object.entries<RequestListener>({
    'a complete response': (_req, res) => res.end(large),
    'half of a response': (_req, res) => res.write(large),
    'an unfinished response that fits into the buffers': (_req, res) => res.write('x'),
  }))
    it(`returns 499 when the client disconnects before it has read ${what}`, async () => {
      const { handler, status } = watch(handle);
      const { port } = await servers.http(handler);
      const socket = connect(port, '127.0.0.1');
      socket.write(head('/'));
      await once(socket, 'data');
      socket.destroy();
      assert.equal(await status, 499);
    });

  for (const line of ['Connection: keep-alive', 'Connection: close'])
    it(`returns the status of a response that the client has read, with ${line}`, async () => {
      const { handler, status } = watch((_req, res) => res.writeHead(404).end(large));
      const { port } = await servers.http(handler);
      const socket = connect(port, '127.0.0.1');
      socket.resume().write(head('/', line));
      assert.equal(await status, 404);
      socket.destroy();
    });

  it('returns 499 for each pipelined response when the client disconnects, and each closes once', async () => {
    const count = 3;
    const [allStarted, allClosed] = [createDeferred(), createDeferred()];
    const statuses: number[] = [];
    let started = 0;
    const handler: RequestListener = (_req, res) => {
      started += 1;
      if (started === count) allStarted.resolve();
      res.on('close', () => {
        if (statuses.push(finalStatus(res)) === count) setImmediate(allClosed.resolve);
      });
    };
    const { port } = await servers.http(handler);
    const socket = connect(port, '127.0.0.1');
    socket.write(head('/').repeat(count));
    await allStarted.promise;
    socket.destroy();
    await allClosed.promise;
    assert.deepEqual(statuses, Array(count).fill(499));
  });

  it('returns 101 for an upgraded connection, even if it is reset', async () => {
    const { handler, status } = watch((req) => upgradeOf(req)?.accept('echo').resume());
    const server = createServer(handler);
    const { port } = await servers.listen(server);
    server.on('upgrade', createUpgrades(() => true).listener(handler));
    const socket = connect(port, '127.0.0.1');
    socket.write(head('/', 'Connection: Upgrade', 'Upgrade: echo'));
    await once(socket, 'data');
    socket.resetAndDestroy();
    assert.equal(await status, 101);
  });
});
