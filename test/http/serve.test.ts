import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { Agent, get, type IncomingMessage, type RequestListener } from 'node:http';
import { connect } from 'node:net';
import { type HttpServer, type HttpServerOptions, serveHttp } from '#http';
import { httpLimits } from '../support/wire/http-limits.ts';
import { bodyOf, everything } from './raw-exchange.ts';

/** Longer than mocha waits: a test that ends has not waited for it. */
const neverMs = 60_000;

async function serving(options: Partial<HttpServerOptions>, use: (server: HttpServer) => Promise<void>) {
  const server = await serveHttp({ ...httpLimits, handler: (_request, response) => response.end('x'), ...options });
  try {
    await use(server);
  } finally {
    await server.close(0);
  }
}

describe('serveHttp', () => {
  it('listens on a port of its own choice when told 0', async () => {
    await serving({}, async ({ port }) => {
      const socket = connect(port, '127.0.0.1');
      socket.write('GET / HTTP/1.1\r\nHost: desk.test\r\nConnection: close\r\n\r\n');
      assert.match(await everything(socket), /^HTTP\/1\.1 200 OK\r\n/);
    });
  });

  it('says which port is taken and how to get another', async () => {
    await serving({}, async ({ port }) => {
      await assert.rejects(
        () => serveHttp({ ...httpLimits, port, portSetting: 'AUTH_PORT', handler: () => {} }),
        (error: Error) => error.message.includes(`127.0.0.1:${port}`) && error.message.includes('AUTH_PORT'),
      );
    });
  });

  it('says which address cannot be listened on', async () => {
    await assert.rejects(
      () => serveHttp({ ...httpLimits, host: '192.0.2.1', handler: () => {} }),
      (error: Error) => error.message.includes('192.0.2.1') && error.message.includes('HOST'),
    );
  });

  it('answers 431 with the error body when the headers are larger than allowed', async () => {
    await serving({ headerBytesMax: 1024 }, async ({ port }) => {
      const socket = connect(port, '127.0.0.1');
      socket.write(`GET / HTTP/1.1\r\nHost: desk.test\r\nX-Long: ${'x'.repeat(2000)}\r\n\r\n`);
      const response = await everything(socket);
      assert.match(response, /^HTTP\/1\.1 431 /);
      assert.equal((JSON.parse(bodyOf(response)) as { code: number }).code, 431);
    });
  });

  it('answers 408 with the error body when the headers do not come in time', async () => {
    await serving({ headerTimeoutMs: 20 }, async ({ port }) => {
      const socket = connect(port, '127.0.0.1');
      socket.write('GET / HTTP/1.1\r\nHost: desk.test\r\n');
      assert.match(await everything(socket), /^HTTP\/1\.1 408 /);
    });
  });
});

describe('close', () => {
  /** Starts a request that the handler holds until `finish`; `agent` keeps the connection. */
  async function holding(agent: Agent) {
    let finish = () => {};
    const handler: RequestListener = (_request, response) => {
      response.flushHeaders();
      finish = () => response.end('whole');
    };
    const server = await serveHttp({ ...httpLimits, handler });
    const [response] = (await once(get({ port: server.port, host: '127.0.0.1', agent }), 'response')) as [
      IncomingMessage,
    ];
    return { server, response, finish: () => finish() };
  }

  it('lets a running request finish, and then waits for nobody who keeps the connection', async () => {
    const agent = new Agent({ keepAlive: true });
    const { server, response, finish } = await holding(agent);
    const closed = server.close(neverMs);
    finish();
    assert.equal(Buffer.concat(await response.toArray()).toString(), 'whole');
    await closed;
    agent.destroy();
  });

  it('cuts off at the deadline what still runs', async () => {
    const { server, response } = await holding(new Agent());
    await Promise.all([server.close(10), assert.rejects(() => response.toArray(), { code: 'ECONNRESET' })]);
  });

  it('accepts no connection any more', async () => {
    const server = await serveHttp({ ...httpLimits, handler: () => {} });
    await server.close(neverMs);
    const socket = connect(server.port, '127.0.0.1');
    const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException];
    assert.equal(error.code, 'ECONNREFUSED');
  });

  it('answers one more request on a connection that still runs, and says that it is the last', async () => {
    const started = new EventEmitter();
    const handler: RequestListener = (request, response) => {
      started.emit(request.url ?? '', () => response.end('x'));
    };
    const server = await serveHttp({ ...httpLimits, handler });
    const socket = connect(server.port, '127.0.0.1');
    const answers = everything(socket);
    socket.write('GET /1 HTTP/1.1\r\nHost: a\r\n\r\n');
    const [finishFirst] = (await once(started, '/1')) as [() => void];
    const closed = server.close(neverMs);
    socket.write('GET /2 HTTP/1.1\r\nHost: a\r\n\r\n');
    const [finishSecond] = (await once(started, '/2')) as [() => void];
    finishFirst();
    finishSecond();
    await closed;
    const connections = (await answers).match(/(?<=^Connection: ).*/gm);
    assert.deepEqual(connections, ['keep-alive', 'close']);
  });
});
