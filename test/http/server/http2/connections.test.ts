/** Connections of HTTP/2 beside those of HTTP/1.1: which protocol a client gets, the limit, and the shutdown. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { RequestListener, ServerResponse } from 'node:http';
import { constants } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { silentLogger } from '#foundation';
import { createConnectionLimit, type HttpServerOptions } from '#http';
import { testServers } from '../../../support/serve.ts';
import { temporaryFiles } from '../../../support/temporary-files.ts';
import { eventually } from '../../../support/waiting.ts';
import { type Certificate, makeCertificate } from '../../../support/wire/certificate.ts';
import { startHttp } from '../../../support/wire/http-server.ts';
import { type Http2Client, openHttp2, sendUntilGoAway } from '../../../support/wire/http2-client.ts';
import {
  flag,
  formatFrame,
  formatGet,
  formatSettings,
  frameType,
  preface,
} from '../../../support/wire/http2-frames.ts';
import { peerOf, speak } from '../../../support/wire/peer.ts';
import { sendRaw, statusOf } from '../../../support/wire/raw-client.ts';

const servers = testServers();

const protocol: RequestListener = ({ httpVersion }, res) => void res.end(`over ${httpVersion}`);
const start = (options: Partial<HttpServerOptions> = {}) =>
  startHttp(servers, { http2: true, handler: protocol, ...options });
const get = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
const greeting = Buffer.concat([Buffer.from(preface), formatSettings()]);

function openAt(port: number): Http2Client {
  const client = openHttp2(`http://127.0.0.1:${port}`);
  servers.later(() => client.session.destroy());
  return client;
}

/** Sends one byte after another. Each is read alone, because the next one waits for the event loop. */
async function trickle(port: number, bytes: Uint8Array): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').setNoDelay();
  await once(socket, 'connect');
  for (const byte of bytes) {
    socket.write(Uint8Array.of(byte));
    await new Promise(setImmediate);
  }
  return socket;
}

describe('a port without TLS', () => {
  it('serves HTTP/2 to a client that begins with it, and HTTP/1.1 to the others', async () => {
    const { port } = await start();
    assert.equal((await openAt(port).send()).body, 'over 2.0');
    assert.match(await sendRaw(port, get), /over 1\.1$/);
  });

  it('serves both if the bytes come one at a time', async () => {
    const { port } = await start();
    const http2 = peerOf(await trickle(port, Buffer.concat([greeting, formatGet(1)])));
    await http2.until('over 2.0');
    http2.socket.destroy();
    for (const method of ['GET', 'PUT', 'PROPFIND']) {
      const { closed } = peerOf(await trickle(port, Buffer.from(get.replace('GET', method))));
      assert.match(await closed, /over 1\.1$/);
    }
  });

  it('serves methods that begin like the preface, and pipelined requests, over HTTP/1.1', async () => {
    const { port } = await start();
    for (const method of ['PUT', 'POST', 'PATCH', 'PROPFIND'])
      assert.match(await sendRaw(port, get.replace('GET', method)), /over 1\.1$/);
    const first = get.replace('Connection: close\r\n', '');
    assert.equal((await sendRaw(port, first + first + get)).match(/over 1\.1/g)?.length, 3);
  });

  it('responds to what is neither as before', async () => {
    const [{ port }, without] = [await start(), await startHttp(servers, { handler: protocol })];
    for (const bytes of ['PRIX / HTTP/1.1\r\nHost: a\r\n\r\n', 'P\r\n\r\n', '\x16\x03\x01\x02\x00\r\n\r\n']) {
      const [one, other] = [await sendRaw(port, bytes), await sendRaw(without.port, bytes)];
      assert.deepEqual([statusOf(one), one.length], [statusOf(other), other.length], bytes);
    }
  });

  it('closes a connection whose preface is wrong', async () => {
    const { port } = await start();
    await sendRaw(port, 'PRI / HTTP/1.1\r\nHost: a\r\n\r\n');
  });

  it('responds 400 to HTTP/2 if it is off, as to anything that is not HTTP/1.1', async () => {
    const { port } = await start({ http2: false });
    assert.equal(statusOf(await sendRaw(port, preface)), 400);
  });

  it('responds 408 to a client that sends no more than the begin of the preface', async () => {
    const { port } = await start({ headerTimeoutMs: 20 });
    assert.equal(statusOf(await sendRaw(port, 'PR')), 408);
  });
});

describe('a port with TLS', () => {
  const writeFiles = temporaryFiles();
  let tls: Certificate;

  before(async function () {
    const made = await makeCertificate(await writeFiles(), 'IP:127.0.0.1');
    if (made === undefined) return this.skip();
    tls = made;
  });

  /** The protocol that the server chooses, and what it responds. */
  async function choiceFor(port: number, ALPNProtocols?: string[]): Promise<string | false | null> {
    const socket = connectTls({ port, host: '127.0.0.1', ca: tls.cert, ...(ALPNProtocols && { ALPNProtocols }) });
    await once(socket, 'secureConnect');
    const { alpnProtocol } = socket;
    if (alpnProtocol === 'h2') socket.write(Buffer.concat([greeting, formatGet(1)]));
    else socket.write(get);
    await peerOf(socket).until(alpnProtocol === 'h2' ? 'over 2.0' : 'over 1.1');
    socket.destroy();
    return alpnProtocol;
  }

  it('serves HTTP/2 to a client that offers it, whatever else it offers, and HTTP/1.1 to the others', async () => {
    const { port } = await start({ tls });
    assert.equal(await choiceFor(port, ['h2']), 'h2');
    assert.equal(await choiceFor(port, ['http/1.1', 'h2']), 'h2');
    assert.equal(await choiceFor(port, ['http/1.1']), 'http/1.1');
    assert.equal(await choiceFor(port), false);
  });

  it('serves HTTP/1.1 to all if HTTP/2 is off', async () => {
    const { port } = await start({ tls, http2: false });
    assert.equal(await choiceFor(port, ['h2', 'http/1.1']), 'http/1.1');
    assert.equal(await choiceFor(port), false);
  });
});

describe('the limit on connections', () => {
  /** Never responds to `/held`. */
  async function startHolding(max: number) {
    let held = 0;
    const handler: RequestListener = ({ url }, res) => {
      if (url === '/held') held += 1;
      else res.end('x');
    };
    const limit = createConnectionLimit({ max, logger: silentLogger });
    const { port } = await start({ handler, connectionShare: limit.share() });
    return { port, limit, held: () => held };
  }

  it('closes HTTP/2 connections without a request, and then the one that is idle longest', async () => {
    const { port, limit } = await startHolding(3);
    const [busy, idle] = [openAt(port), openAt(port)];
    busy.start({ ':path': '/held' });
    assert.equal((await idle.send()).status, 200);
    const silent = openAt(port);
    await once(silent.session, 'remoteSettings');
    const second = openAt(port);
    assert.equal((await second.send()).status, 200);
    await silent.closed;
    const third = openAt(port);
    assert.equal((await third.send()).status, 200);
    await idle.closed;
    assert.equal(busy.session.destroyed, false);
    assert.equal(limit.counts().open, 3);
  });

  it('refuses a connection beyond connections with requests', async () => {
    const { port, limit, held } = await startHolding(2);
    const busy = [openAt(port), openAt(port)];
    for (const { start: begin } of busy) begin({ ':path': '/held' });
    await eventually(() => assert.equal(held(), 2));
    const refused = openAt(port);
    assert.equal((await refused.send()).status, 0);
    await refused.closed;
    assert.equal(limit.counts().refused, 1);
  });
});

/** Longer than mocha's time-out, so a test that passes did not wait for it. */
const neverMs = 60_000;

describe('the shutdown', () => {
  async function startSlow() {
    const begun: ServerResponse[] = [];
    const server = await start({ handler: (_req, res) => void begun.push(res) });
    return { server, begun };
  }

  it('sends GOAWAY, lets a response finish, and then closes the connection', async () => {
    const { server, begun } = await startSlow();
    const { start: begin, session, closed } = openAt(server.port);
    const { response } = begin();
    await eventually(() => assert.equal(begun.length, 1));
    const goAway = once(session, 'goaway');
    const ended = server.close(neverMs);
    assert.equal((await goAway)[0], constants.NGHTTP2_NO_ERROR);
    begun[0]?.end('whole');
    assert.equal((await response).body, 'whole');
    await Promise.all([ended, closed]);
  });

  it('closes connections without a request', async () => {
    const server = await start();
    const idle = openAt(server.port);
    assert.equal((await idle.send()).status, 200);
    const silent = speak(server.port, greeting.toString('latin1'));
    await silent.until('\0');
    await Promise.all([server.close(neverMs), idle.closed, silent.closed]);
  });

  it('refuses a request that was on its way, so that its client can send it again elsewhere', async () => {
    const { server, begun } = await startSlow();
    const peer = speak(server.port, Buffer.concat([greeting, formatGet(1)]).toString('latin1'));
    await eventually(() => assert.equal(begun.length, 1));
    const ended = server.close(neverMs);
    peer.socket.write(formatGet(3));
    const lastServed = Buffer.from([0, 0, 0, 1]);
    const refusal = formatFrame(frameType.goAway, 0, 0, Buffer.concat([lastServed, Buffer.alloc(4)]));
    await peer.until(refusal.toString('latin1'));
    begun[0]?.end('whole');
    await ended;
    assert.match(await peer.closed, /whole/);
    assert.equal(begun.length, 1);
  });

  it('loses no request of clients that send again what GOAWAY says was not processed', async () => {
    const served = new Set<string | undefined>();
    const handler: RequestListener = (req, res) => {
      served.add(req.url);
      setImmediate(() => res.end('x'));
    };
    const server = await start({ handler });
    const clients = Array.from({ length: 8 }, () => openAt(server.port));
    const running = clients.map((client, index) => sendUntilGoAway(client, (sent) => `/${index}/${sent}`));
    await eventually(() => assert.ok(served.size > 200), 0);
    const [, ...outcomes] = await Promise.all([server.close(neverMs), ...running]);
    for (const { path, status, isRefused } of outcomes.flat())
      assert.ok(status === 200 || (isRefused && !served.has(path)), path);
  });

  it('cuts off what runs at the deadline, and says how many', async () => {
    const logged: object[] = [];
    const logger = { warn: (fields: object) => void logged.push(fields) };
    let begun = 0;
    const handler = () => {
      begun += 1;
    };
    const server = await start({ logger, handler });
    const client = openAt(server.port);
    const responses = [client.start().response, client.start().response];
    await eventually(() => assert.equal(begun, 2));
    await server.close(10);
    for (const { status } of await Promise.all(responses)) assert.equal(status, 0);
    assert.deepEqual(logged, [{ requests: 2, afterMs: 10 }]);
  });

  it('closes a connection whose client does not end its side', async () => {
    const server = await start();
    const socket = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true });
    servers.later(() => socket.destroy());
    socket.write(Buffer.concat([greeting, formatFrame(frameType.settings, flag.ack, 0)]));
    await once(socket, 'data');
    socket.resume();
    await server.close(neverMs);
  });
});

describe('a client that leaves as grpc-go does, with a GOAWAY that names a request of its own', () => {
  const reason = Buffer.concat([Buffer.from([0, 0, 0, 1, 0, 0, 0, 0]), Buffer.from('client transport shutdown')]);
  const farewell = formatFrame(frameType.goAway, 0, 0, reason);

  async function leave(handler: RequestListener, isReady: (received: string) => boolean, last = farewell) {
    const logged: object[] = [];
    const logger = { warn: (fields: object) => void logged.push({ ...fields }) };
    const { port } = await start({ logger, handler });
    const { socket, received, closed } = speak(port, Buffer.concat([greeting, formatGet(1)]).toString('latin1'));
    await eventually(() => assert.ok(isReady(received())));
    socket.write(last);
    await closed;
    return logged;
  }

  it('is not logged when it has its responses', async () => {
    const logged = await leave(protocol, (received) => received.includes('over 2.0'));
    assert.deepEqual(logged, []);
  });

  it('is logged when it waits for one', async () => {
    let begun = 0;
    const handler = () => {
      begun += 1;
    };
    const logged = await leave(handler, () => begun === 1);
    assert.deepEqual(logged, [{ client: '127.0.0.1', code: 'ERR_HTTP2_ERROR', reason: 'Protocol error' }]);
  });

  it('is logged when it sends more than a reason', async () => {
    const tooMuch = formatFrame(frameType.goAway, 0, 0, Buffer.concat([reason, Buffer.alloc(2000)]));
    const logged = await leave(protocol, (received) => received.includes('over 2.0'), tooMuch);
    assert.equal(logged.length, 1);
  });
});
