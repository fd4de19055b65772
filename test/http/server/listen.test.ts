/** Listening: errors and keep-alive. Closing: which requests and connections get time to finish. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { Agent, get, type IncomingMessage, type RequestListener } from 'node:http';
import { connect } from 'node:net';
import { serveHttp } from '#http';
import { testServers } from '../../support/serve.ts';
import { eventually } from '../../support/waiting.ts';
import { httpLimits, startHttp } from '../../support/wire/http-server.ts';
import { peerOf, speak } from '../../support/wire/peer.ts';

/** Longer than mocha's time-out, so a test that passes did not wait for it. */
const neverMs = 60_000;

const servers = testServers();

describe('serveHttp', () => {
  it('names the port that is in use and its setting', async () => {
    const { port } = await startHttp(servers);
    await assert.rejects(
      () => serveHttp({ ...httpLimits, port, portSetting: 'AUTH_PORT', handler: () => {} }),
      (error: Error) => error.message.includes(`127.0.0.1:${port}`) && error.message.includes('AUTH_PORT'),
    );
  });

  it('names the address that it cannot listen on', async () => {
    await assert.rejects(
      () => serveHttp({ ...httpLimits, host: '192.0.2.1', handler: () => {} }),
      (error: Error) => error.message.includes('192.0.2.1') && error.message.includes('HOST'),
    );
  });

  it('enables TCP keep-alive, because a client that vanished does not close its connection', async function () {
    if (!existsSync(connectionTable)) return this.skip();
    const { port } = await startHttp(servers);
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    const { localPort = 0 } = socket;
    await eventually(() => assert.equal(timerOf(port, localPort), keepAliveTimer));
    socket.destroy();
  });
});

/** Linux lists the timers of TCP connections here, with a type and the time left. */
const connectionTable = '/proc/net/tcp';
const keepAliveTimer = '02';

function timerOf(port: number, peerPort: number): string | undefined {
  const [from, to] = [port, peerPort].map((one) => `0100007F:${one.toString(16).toUpperCase().padStart(4, '0')}`);
  return new RegExp(`${from} ${to} \\w+ \\S+ (\\w+):`).exec(readFileSync(connectionTable, 'utf8'))?.[1];
}

describe('the close function of serveHttp', () => {
  /**
   * Starts a request that stays open until `finish` is called. `agent` decides whether the connection is kept alive.
   */
  async function startRequest(agent: Agent) {
    let finish = () => {};
    const handler: RequestListener = (_request, response) => {
      response.flushHeaders();
      finish = () => response.end('whole');
    };
    const logged: object[] = [];
    const logger = { warn: (fields: object) => void logged.push(fields) };
    const server = await serveHttp({ ...httpLimits, handler, logger });
    const [response] = (await once(get({ port: server.port, host: '127.0.0.1', agent }), 'response')) as [
      IncomingMessage,
    ];
    return { server, response, logged, finish: () => finish() };
  }

  it('lets a running request finish, and does not wait for a connection that is kept alive', async () => {
    const agent = new Agent({ keepAlive: true });
    const { server, response, logged, finish } = await startRequest(agent);
    const closed = server.close(neverMs);
    finish();
    assert.equal(Buffer.concat(await response.toArray()).toString(), 'whole');
    await closed;
    assert.deepEqual(logged, []);
    agent.destroy();
  });

  it('aborts a running request at the deadline, and logs that', async () => {
    const { server, response, logged } = await startRequest(new Agent());
    await Promise.all([server.close(10), assert.rejects(() => response.toArray(), { code: 'ECONNRESET' })]);
    assert.deepEqual(logged, [{ requests: 1, afterMs: 10 }]);
  });

  it('responds to one more request on a busy connection, with Connection: close', async () => {
    const started = new EventEmitter();
    const handler: RequestListener = (request, response) => {
      started.emit(request.url ?? '', () => response.end('x'));
    };
    const server = await serveHttp({ ...httpLimits, handler });
    const { socket, closed: responses } = speak(server.port, 'GET /1 HTTP/1.1\r\nHost: a\r\n\r\n');
    const [finishFirst] = (await once(started, '/1')) as [() => void];
    const closed = server.close(neverMs);
    socket.write('GET /2 HTTP/1.1\r\nHost: a\r\n\r\n');
    const [finishSecond] = (await once(started, '/2')) as [() => void];
    finishFirst();
    finishSecond();
    await closed;
    const connections = (await responses).match(/(?<=^Connection: ).*/gm);
    assert.deepEqual(connections, ['keep-alive', 'close']);
  });

  it('responds to a request that arrives on an idle connection while the process is busy', async () => {
    const server = await serveHttp({ ...httpLimits, handler: (_request, response) => response.end('x') });
    const socket = connect(server.port, '127.0.0.1');
    socket.write('GET /1 HTTP/1.1\r\nHost: a\r\n\r\n');
    await once(socket, 'data');
    const response = peerOf(socket).closed;
    const closed = server.close(neverMs);
    socket.write('GET /2 HTTP/1.1\r\nHost: a\r\n\r\n');
    // Blocks the event loop for longer than the grace period of idle connections.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
    await closed;
    assert.match(await response, /^Connection: close\r\n[\s\S]*\r\n\r\nx$/m);
  });
});
