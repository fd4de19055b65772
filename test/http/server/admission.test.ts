/** Limits on client connections, and TLS clients that are slow to send their handshake or their request. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { silentLogger } from '#foundation';
import { createConnectionLimit, createUpgrades, type HttpServerOptions, upgradeOf } from '#http';
import { testServers } from '../../support/serve.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { closeOf, eventually } from '../../support/waiting.ts';
import { type Certificate, makeCertificate } from '../../support/wire/certificate.ts';
import { startHttp } from '../../support/wire/http-server.ts';
import { bodyOf, sendRaw } from '../../support/wire/raw-client.ts';

const servers = testServers();

const closed = async (socket: Socket) => void (socket.closed || (await closeOf(socket)));

const limitOf = (max: number) => createConnectionLimit({ max, logger: silentLogger });

/** Starts a server that never responds to `/held`. */
async function startHolding(options: Partial<HttpServerOptions>) {
  let held = 0;
  const handler: HttpServerOptions['handler'] = ({ url }, response) => {
    if (url === '/held') held += 1;
    else response.end();
  };
  const { port } = await startHttp(servers, { ...options, handler });
  return {
    port,
    async hold(count: number): Promise<readonly Socket[]> {
      const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1').on('error', () => {}));
      for (const socket of sockets) socket.write('GET /held HTTP/1.1\r\nHost: a\r\n\r\n');
      await eventually(() => assert.equal(held, count));
      return sockets;
    },
  };
}

describe('connections', () => {
  it('beyond the limit receive a 503, until others have closed', async () => {
    const limit = limitOf(5);
    const { port, hold } = await startHolding({ connectionShare: limit.share() });
    const busy = await hold(5);
    const response = await sendRaw(port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    assert.match(response, /^HTTP\/1\.1 503 Service Unavailable\r\n[\s\S]*\r\nRetry-After: 1\r\n/);
    assert.deepEqual(JSON.parse(bodyOf(response)), { code: 503, message: '503: Service Unavailable' });
    assert.equal(limit.counts().refused, 1);
    for (const socket of busy) socket.destroy();
    await eventually(() => assert.equal(limit.counts().open, 0));
    assert.equal(await statusAt(port), 200);
  });

  it('receive a 503 beyond the limit even if many are rejected at the same time', async () => {
    const limit = createConnectionLimit({ max: 1, rejectionsMax: 1, logger: silentLogger });
    const { port, hold } = await startHolding({ connectionShare: limit.share() });
    const busy = await hold(1);
    const rejected = Array.from({ length: 3 }, () => connect(port, '127.0.0.1').on('error', () => {}));
    for (const socket of rejected) assert.match(String(await once(socket, 'data')), /^HTTP\/1\.1 503 /);
    for (const socket of [...busy, ...rejected]) socket.destroy();
  });

  it('are closed near the limit if they are idle, the longest idle first', async () => {
    const limit = limitOf(10);
    const { port } = await startHttp(servers, { connectionShare: limit.share() });
    const idle = await openIdle(port, 9);
    const [first, second, ...others] = idle as [Socket, Socket, ...Socket[]];
    // After this request, the first connection is the one that was used last.
    first.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await once(first, 'data');
    assert.equal(await statusAt(port), 200);
    await closed(second);
    assert.equal(limit.counts().idleClosed, 1);
    assert.ok([first, ...others].every((socket) => !socket.destroyed));
    for (const socket of idle) socket.destroy();
  });

  /** What clients send that never complete the head of a request. */
  for (const [what, text] of [
    ['nothing', ''],
    ['half a head', 'GET / HTTP/1.1\r\nHost: a\r\n'],
  ] as const) {
    it(`are closed at the limit if they have sent ${what}, the oldest first, before any that are idle`, async () => {
      const limit = limitOf(10);
      const { port } = await startHttp(servers, { connectionShare: limit.share() });
      const idle = await openIdle(port, 8);
      const silent = await openSilent(port, limit, 2, text);
      const [oldest, other] = silent as [Socket, Socket];
      const response = once(oldest, 'data');
      assert.equal(await statusAt(port), 200);
      assert.match(String((await response)[0]), /^HTTP\/1\.1 503 /);
      await closed(oldest);
      const more = await openSilent(port, limit, 3, text);
      await closed(other);
      assert.deepEqual(
        idle.map((socket) => socket.destroyed),
        idle.map(() => false),
      );
      for (const socket of [...idle, ...more]) socket.destroy();
    });
  }

  it('run no request that arrives after they were closed to make room', async () => {
    const limit = limitOf(1);
    const paths: (string | undefined)[] = [];
    const handler: HttpServerOptions['handler'] = ({ url }, response) => {
      paths.push(url);
      response.end();
    };
    const { port } = await startHttp(servers, { connectionShare: limit.share(), handler });
    const [silent] = (await openSilent(port, limit, 1, 'GET /late HTTP/1.1\r\nHost: a\r\n')) as [Socket];
    const told = once(silent, 'data');
    assert.equal(await statusAt(port), 200);
    await told;
    silent.write('\r\n');
    await closed(silent);
    assert.deepEqual(paths, ['/']);
  });

  it('of one listener cannot use what is reserved for another, whose clients close them', async () => {
    const limit = limitOf(10);
    const one = await startHolding({ connectionShare: limit.share(5) });
    const other = await startHttp(servers, { connectionShare: limit.share(2) });
    const busy = await one.hold(8);
    assert.equal(await statusAt(one.port), 503);
    const kept = await openIdle(other.port, 2);
    assert.equal(await statusAt(one.port), 503);
    assert.equal(kept.filter(({ destroyed }) => destroyed).length, 0);
    busy[0]?.destroy();
    await eventually(() => assert.equal(limit.counts().open, 9));
    const silent = await openSilent(one.port, limit, 1);
    assert.equal(await statusAt(other.port), 200);
    await Promise.all(silent.map(closed));
    for (const socket of [...busy, ...kept]) socket.destroy();
  });

  it('are not idle after an upgrade', async () => {
    const connectionShare = limitOf(1).share();
    const handler: HttpServerOptions['handler'] = (request, response) =>
      void (upgradeOf(request)?.accept('echo') ?? response.end());
    const upgrades = createUpgrades(() => true);
    const { port } = await startHttp(servers, { connectionShare, upgrades, handler });
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

/** Opens connections with one request each, one after the other. */
async function openIdle(port: number, count: number): Promise<readonly Socket[]> {
  const sockets: Socket[] = [];
  for (let at = 0; at < count; at += 1) {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await once(socket, 'data');
    sockets.push(socket);
  }
  return sockets;
}

/** Opens connections without a complete request, one after the other. */
async function openSilent(
  port: number,
  limit: ReturnType<typeof limitOf>,
  count: number,
  text = '',
): Promise<readonly Socket[]> {
  const sockets: Socket[] = [];
  for (let at = 0; at < count; at += 1) {
    const { open, idleClosed } = limit.counts();
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    socket.resume().write(text);
    sockets.push(socket);
    await eventually(() => assert.ok(limit.counts().open > open || limit.counts().idleClosed > idleClosed));
  }
  return sockets;
}

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

  it('that has had a response keeps its connection at the limit while others have not sent a request', async () => {
    const limit = limitOf(10);
    const { port } = await startHttp(servers, { tls, connectionShare: limit.share() });
    const open = async () => {
      const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }).on('error', () => {});
      await once(socket, 'secureConnect');
      return socket;
    };
    const [idle, silent] = [await open(), await open()];
    idle.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await once(idle, 'data');
    const handshakes = await openSilent(port, limit, 8);
    const [first] = handshakes as [Socket];
    const another = await open();
    await closed(silent.resume());
    const last = await open();
    await closed(first);
    assert.deepEqual([idle.destroyed, another.destroyed, limit.counts().open], [false, false, 10]);
    for (const socket of [idle, another, last, ...handshakes]) socket.destroy();
    await eventually(() => assert.equal(limit.counts().open, 0));
  });

  it('can connect while a thousand others have stalled in the handshake', async () => {
    const limit = limitOf(2_000);
    const { port } = await startHttp(servers, { tls, connectionShare: limit.share(), headerTimeoutMs: 60_000 });
    const gone = connect(port, '127.0.0.1');
    await eventually(() => assert.equal(limit.counts().open, 1));
    gone.destroy();
    await eventually(() => assert.equal(limit.counts().open, 0));
    const silent = Array.from({ length: 1000 }, () => connect(port, '127.0.0.1').on('error', () => {}));
    // Waits because clients connect before the server accepts them. No handshake times out during the test.
    await eventually(() => assert.equal(limit.counts().open, 1000));
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    // The oldest handshake was closed to make room.
    await Promise.race(silent.map(closed));
    for (const one of [socket, ...silent]) one.destroy();
  });
});
