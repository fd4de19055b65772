/** Clients of HTTP/2 that hold a connection without using it, or do not read: when each loses it or its requests. */
import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { constants } from 'node:http2';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { HttpServerOptions } from '#http';
import { testServers } from '../../../support/serve.ts';
import { temporaryFiles } from '../../../support/temporary-files.ts';
import { eventually } from '../../../support/waiting.ts';
import { makeCertificate } from '../../../support/wire/certificate.ts';
import { startHttp } from '../../../support/wire/http-server.ts';
import { type Attacker, attack, attackOver, start } from '../../../support/wire/http2-attacker.ts';
import { openHttp2 } from '../../../support/wire/http2-client.ts';
import {
  flag,
  formatFrame,
  formatGet,
  formatHead,
  formatReset,
  formatSettings,
  formatWindowUpdate,
  frameType,
  preface,
  setting,
} from '../../../support/wire/http2-frames.ts';

const servers = testServers();
const writeFiles = temporaryFiles();

/** Short enough to wait for, and long enough for a busy machine not to exceed it by chance. */
const shortMs = 300;
/** Longer than mocha's time-out, so a test that passes did not wait for it. */
const neverMs = 120_000;

const neverClosing = { headerTimeoutMs: neverMs, keepAliveTimeoutMs: neverMs, responseIdleTimeoutMs: neverMs };
const ping = formatFrame(frameType.ping, 0, 0, Buffer.alloc(8));
const idOf = (index: number) => 2 * index + 1;

interface Held extends Attacker {
  readonly port: number;
  readonly reached: () => number;
}

async function hold(first: Uint8Array, options: Partial<HttpServerOptions> = {}): Promise<Held> {
  let reached = 0;
  const handler: RequestListener = options.handler ?? ((_req, res) => res.end('x'));
  const { port } = await startHttp(servers, {
    http2: true,
    ...neverClosing,
    ...options,
    handler(req, res) {
      reached += 1;
      handler(req, res);
    },
  });
  const attacker = attack(port, first);
  servers.later(() => attacker.socket.destroy());
  return { ...attacker, port, reached: () => reached };
}

/** Sends a part now and then until the connection closes. */
async function trickle({ socket, send }: Attacker, parts: Iterable<Uint8Array>): Promise<void> {
  for (const part of parts) {
    if (socket.destroyed) return;
    await send(part);
    await new Promise((resolve) => setTimeout(resolve, shortMs / 20));
  }
}

function* forever(part: Uint8Array) {
  for (;;) yield part;
}

describe('a connection of HTTP/2 without a request', () => {
  const unfinishedHead = formatFrame(frameType.headers, flag.endStream, 1, formatHead('GET'));
  const beginnings = {
    'the first bytes of the preface': Buffer.from(preface.slice(0, 3)),
    'half of the preface': Buffer.from(preface.slice(0, 12)),
    'the preface': Buffer.from(preface),
    'the preface and settings': start,
    'headers that do not end': Buffer.concat([start, unfinishedHead]),
  };
  for (const [what, first] of Object.entries(beginnings))
    it(`closes after HEADER_TIMEOUT_MS: ${what}`, async () => {
      const { closed, reached } = await hold(first, { headerTimeoutMs: shortMs });
      await closed;
      assert.equal(reached(), 0);
    });

  it('closes although the preface arrives byte by byte', async () => {
    const attacker = await hold(Buffer.alloc(0), { headerTimeoutMs: shortMs });
    await trickle(
      attacker,
      Array.from(preface.repeat(100), (byte) => Buffer.from(byte)),
    );
    await attacker.closed;
  });

  it('closes although the client sends pings', async () => {
    const attacker = await hold(start, { headerTimeoutMs: shortMs });
    await trickle(attacker, forever(ping));
    assert.deepEqual([...new Set(attacker.codes(frameType.goAway))], [constants.NGHTTP2_NO_ERROR]);
  });

  it('closes after KEEP_ALIVE_TIMEOUT_MS if it had requests, although the client sends pings', async () => {
    const attacker = await hold(Buffer.concat([start, formatGet(1)]), { keepAliveTimeoutMs: shortMs });
    await trickle(attacker, forever(ping));
    assert.ok(attacker.hasEnded(1));
    assert.deepEqual([...new Set(attacker.codes(frameType.goAway))], [constants.NGHTTP2_NO_ERROR]);
  });

  it('closes over TLS although the client does not close its side', async function () {
    const certificate = await makeCertificate(await writeFiles(), 'DNS:localhost');
    if (certificate === undefined) return this.skip();
    const { port } = await startHttp(servers, {
      http2: true,
      ...neverClosing,
      tls: certificate,
      headerTimeoutMs: 1000,
    });
    const socket = connectTls({ port, ALPNProtocols: ['h2'], rejectUnauthorized: false });
    servers.later(() => socket.destroy());
    attackOver(socket);
    // It does not see the end.
    socket.pause();
    await untilDestroyed(socket);
  });
});

/** The system may take a while until it tells this side, and only when it sends. */
async function untilDestroyed(socket: Socket): Promise<void> {
  await eventually(() => {
    socket.write(ping);
    assert.ok(socket.destroyed);
  }, 20);
}

describe('a client of HTTP/2 that does not read its responses', () => {
  const noWindow = Buffer.concat([Buffer.from(preface), formatSettings({ [setting.initialWindowSize]: 0 })]);
  const requests = Array.from({ length: 100 }, (_, index) => formatGet(idOf(index)));

  it('loses them after the idle time-out, and can send other requests', async () => {
    const ended: number[] = [];
    const attacker = await hold(noWindow, {
      responseIdleTimeoutMs: shortMs,
      handler(_req, res) {
        res.once('close', () => ended.push(res.statusCode));
        res.write(Buffer.alloc(100_000));
      },
    });
    await attacker.send(...requests);
    await eventually(() => assert.equal(attacker.codes(frameType.reset).length, 100));
    assert.deepEqual([...new Set(attacker.codes(frameType.reset))], [constants.NGHTTP2_CANCEL]);
    await eventually(() => assert.equal(ended.length, 100));
    await attacker.send(formatGet(idOf(100)));
    await eventually(() => assert.equal(attacker.reached(), 101));
  });

  it('loses them at once if it resets them with NO_ERROR, also if responses may take forever', async () => {
    let closed = 0;
    const attacker = await hold(noWindow, {
      responseIdleTimeoutMs: 0,
      handler(_req, res) {
        res.once('close', () => {
          closed += 1;
        });
        res.end(Buffer.alloc(100_000));
      },
    });
    await attacker.send(formatGet(1));
    await eventually(() => assert.equal(attacker.received(frameType.headers).length, 1));
    await attacker.send(formatReset(1, constants.NGHTTP2_NO_ERROR));
    await eventually(() => assert.equal(closed, 1));
  });

  it('keeps them if it reads a little now and then', async () => {
    const attacker = await hold(noWindow, {
      responseIdleTimeoutMs: 10 * shortMs,
      handler: (_req, res) => res.end(Buffer.alloc(20)),
    });
    await attacker.send(formatGet(1));
    await trickle(attacker, Array(20).fill(formatWindowUpdate(1, 1)));
    await eventually(() => assert.ok(attacker.hasEnded(1)));
    const bytes = attacker.received(frameType.data).reduce((sum, { payload }) => sum + payload.length, 0);
    assert.equal(bytes, 20);
  });

  it('can send other requests while large responses wait', async () => {
    const attacker = await hold(noWindow, { handler: (_req, res) => res.end(Buffer.alloc(1_000_000)) });
    for (let index = 0; index < 50; index += 1) {
      await attacker.send(formatGet(idOf(index)));
      await eventually(() => assert.equal(attacker.received(frameType.headers).length, index + 1));
    }
    assert.deepEqual(attacker.codes(frameType.reset), []);
  });

  it('loses the connection if it does not read anything at all', async () => {
    const large = { [setting.initialWindowSize]: 2 ** 31 - 1 };
    const attacker = await hold(
      Buffer.concat([Buffer.from(preface), formatSettings(large), formatWindowUpdate(0, 2 ** 31 - 1 - 65_535)]),
      {
        responseIdleTimeoutMs: shortMs,
        keepAliveTimeoutMs: shortMs,
        handler: (_req, res) => res.end(Buffer.alloc(1_000_000)),
      },
    );
    attacker.socket.pause();
    // More than the system buffers.
    await attacker.send(...requests);
    await eventually(() => assert.equal(attacker.reached(), 100));
    await untilDestroyed(attacker.socket);
  });
});

it('a client of HTTP/2 may have 100 streams, and send 256 KiB on each and 1 MiB in all before it is read', async () => {
  const { send, received } = await hold(start);
  await send();
  await eventually(() => assert.equal(received(frameType.windowUpdate).length, 1));
  const [settings, windowUpdate] = [received(frameType.settings)[0], received(frameType.windowUpdate)[0]];
  assert.deepEqual(settingsOf(settings?.payload), {
    [setting.maxConcurrentStreams]: 100,
    [setting.initialWindowSize]: 262_144,
    [setting.maxHeaderListSize]: 65_535,
    [setting.enableConnectProtocol]: 0,
  });
  assert.equal(windowUpdate?.payload.readUInt32BE(), 1_048_576 - 65_535);
});

function settingsOf(payload: Buffer = Buffer.alloc(0)): Record<number, number> {
  const count = payload.length / 6;
  const entries = Array.from({ length: count }, (_, index) => payload.subarray(6 * index, 6 * index + 6));
  return Object.fromEntries(entries.map((entry) => [entry.readUInt16BE(), entry.readUInt32BE(2)]));
}

it('100 slow bodies on a connection of HTTP/2 get 408 each after REQUEST_TIMEOUT_MS', async () => {
  const handler: RequestListener = (req) => void req.resume();
  const { port } = await startHttp(servers, { http2: true, ...neverClosing, requestTimeoutMs: shortMs, handler });
  const { session, start: startRequest } = openHttp2(`http://127.0.0.1:${port}`);
  servers.later(() => session.destroy());
  const posts = Array.from({ length: 100 }, () => startRequest({ ':method': 'POST' }));
  const statuses = await Promise.all(posts.map(({ status }) => status));
  assert.deepEqual([...new Set(statuses)], [408]);
});

describe('the settings of an HTTP/2 client', () => {
  const odd: Readonly<Record<string, Readonly<Record<number, number>>>> = {
    'no table': { [setting.headerTableSize]: 0 },
    'a huge table': { [setting.headerTableSize]: 2 ** 32 - 1 },
    'huge frames': { [setting.maxFrameSize]: 2 ** 24 - 1 },
    'hardly any headers': { [setting.maxHeaderListSize]: 1 },
    'huge windows': { [setting.initialWindowSize]: 2 ** 31 - 1 },
  };
  for (const [what, settings] of Object.entries(odd))
    it(`may ask for ${what}`, async () => {
      const attacker = await hold(Buffer.concat([Buffer.from(preface), formatSettings(settings)]), {
        handler: (_req, res) => res.end(Buffer.alloc(50_000)),
      });
      await attacker.send(formatGet(1));
      await eventually(() => assert.ok(attacker.hasEnded(1)));
      const sizes = attacker.received(frameType.data).map(({ payload }) => payload.length);
      assert.equal(
        sizes.reduce((sum, size) => sum + size, 0),
        50_000,
      );
    });
});
