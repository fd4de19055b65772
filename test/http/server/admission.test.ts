/** Limits on client connections, and TLS clients that are slow to send their handshake or their request. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { createConnectionLimit, createUpgrades, type HttpServerOptions, silentLogger, upgradeOf } from '#http';
import { testServers } from '../../support/serve.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { closeOf, eventually } from '../../support/waiting.ts';
import { type Certificate, makeCertificate } from '../../support/wire/certificate.ts';
import { startHttp } from '../../support/wire/http-server.ts';
import { bodyOf, sendRaw } from '../../support/wire/raw-client.ts';

const servers = testServers();

const closed = async (socket: Socket) => void (socket.closed || (await closeOf(socket)));

const limitOf = (max: number) => createConnectionLimit({ max, logger: silentLogger });

describe('connections', () => {
  it('beyond the limit receive a 503, until others have closed', async () => {
    const connectionLimit = limitOf(5);
    const { port } = await startHttp(servers, { connectionLimit });
    const silent = Array.from({ length: 5 }, () => connect(port, '127.0.0.1'));
    await eventually(() => assert.equal(connectionLimit.counts().open, 5));
    const response = await sendRaw(port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    assert.match(response, /^HTTP\/1\.1 503 Service Unavailable\r\n[\s\S]*\r\nRetry-After: 1\r\n/);
    assert.deepEqual(JSON.parse(bodyOf(response)), { code: 503, message: '503: Service Unavailable' });
    assert.equal(connectionLimit.counts().refused, 1);
    for (const socket of silent) socket.destroy();
    await eventually(() => assert.equal(connectionLimit.counts().open, 0));
    assert.equal(await statusAt(port), 200);
  });

  it('are closed near the limit if they are idle, the longest idle first', async () => {
    const connectionLimit = limitOf(10);
    const { port } = await startHttp(servers, { connectionLimit });
    const idle: Socket[] = [];
    for (let at = 0; at < 9; at += 1) {
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
      await once(socket, 'data');
      idle.push(socket);
    }
    const [first, second, ...others] = idle as [Socket, Socket, ...Socket[]];
    // After this request, the first connection is the one that was used last.
    first.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await once(first, 'data');
    assert.equal(await statusAt(port), 200);
    await closed(second);
    assert.equal(connectionLimit.counts().idleClosed, 1);
    assert.ok([first, ...others].every((socket) => !socket.destroyed));
    for (const socket of idle) socket.destroy();
  });

  it('are not idle after an upgrade', async () => {
    const connectionLimit = limitOf(1);
    const handler: HttpServerOptions['handler'] = (request, response) =>
      void (upgradeOf(request)?.accept('echo') ?? response.end());
    const upgrades = createUpgrades(() => true);
    const { port } = await startHttp(servers, { connectionLimit, upgrades, handler });
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await once(socket, 'data');
    socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n');
    await once(socket, 'data');
    assert.equal(await statusAt(port), 503);
    assert.equal(socket.destroyed, false);
    await upgrades.close(0);
  });

  it('are rejected beyond the limit of upgraded connections', async () => {
    const upgrades = createUpgrades(() => true, 1);
    const handler: HttpServerOptions['handler'] = (request) => void upgradeOf(request)?.accept('echo');
    const { port } = await startHttp(servers, { upgrades, handler });
    const text = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n';
    const first = connect(port, '127.0.0.1').on('error', () => {});
    first.write(text);
    assert.match(String(await once(first, 'data')), /^HTTP\/1\.1 101/);
    assert.match(await sendRaw(port, text), /^HTTP\/1\.1 503/);
    await upgrades.close(0);
  });
});

async function statusAt(port: number): Promise<number | undefined> {
  const agent = new Agent({ keepAlive: false });
  const [response] = (await once(get({ port, host: '127.0.0.1', agent }), 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode;
}

describe('a TLS client', () => {
  const writeFiles = temporaryFiles();
  let tls: Certificate | undefined;

  before(async function () {
    tls = await makeCertificate(await writeFiles(), 'IP:127.0.0.1');
    if (tls === undefined) this.skip();
  });

  /** Data from clients that never complete the handshake. */
  const beginnings = [
    ['nothing', ''],
    ['half a ClientHello', '\u0016\u0003'],
    ['a PROXY protocol line', 'PROXY TCP4 127.0.0.1'],
  ] as const;
  for (const [what, text] of beginnings) {
    it(`is disconnected in time if it sends ${what} instead of a handshake`, async () => {
      const { port } = await startHttp(servers, { tls, headerTimeoutMs: 60, requestTimeoutMs: 120 });
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      socket.write(text);
      await closed(socket);
    });
  }

  // The header time-out also limits the handshake, so it must be long enough for a busy machine.
  const late = { headerTimeoutMs: 500, requestTimeoutMs: 500 };

  const requests = [
    ['nothing', ''],
    ['half a line', 'GET / HT'],
    ['half a head', 'GET / HTTP/1.1\r\nHost: a\r\n'],
    ['half a body', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf'],
  ] as const;
  for (const [what, text] of requests) {
    it(`is disconnected in time if it sends ${what} after its handshake`, async () => {
      const handler: HttpServerOptions['handler'] = (request, response) =>
        void request.resume().once('end', () => response.end());
      const { port } = await startHttp(servers, { tls, ...late, handler });
      const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }).on('error', () => {});
      await once(socket, 'secureConnect');
      socket.resume().write(text);
      await closed(socket);
    });
  }

  it('is disconnected in time if it sends byte by byte', async () => {
    const { port } = await startHttp(servers, { tls, ...late });
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }).on('error', () => {});
    await once(socket, 'secureConnect');
    const start = [...'GET /'];
    const drip = setInterval(() => socket.write(start.shift() ?? 'x'), 20);
    await closed(socket.resume());
    clearInterval(drip);
  });

  it('can connect while a thousand others have stalled in the handshake', async () => {
    const connectionLimit = limitOf(2_000);
    const { port } = await startHttp(servers, { tls, connectionLimit, headerTimeoutMs: 60_000 });
    const gone = connect(port, '127.0.0.1');
    await eventually(() => assert.equal(connectionLimit.counts().open, 1));
    gone.destroy();
    await eventually(() => assert.equal(connectionLimit.counts().open, 0));
    const silent = Array.from({ length: 1000 }, () => connect(port, '127.0.0.1').on('error', () => {}));
    // Waits because clients connect before the server accepts them. No handshake times out during the test.
    await eventually(() => assert.equal(connectionLimit.counts().open, 1000));
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    // The oldest handshake was closed to make room.
    await Promise.race(silent.map(closed));
    for (const one of [socket, ...silent]) one.destroy();
  });
});
