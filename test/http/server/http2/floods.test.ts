/** Clients of HTTP/2 that send more than they may: each is closed and logged, and the others are served as before. */
import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { constants } from 'node:http2';
import { connect as connectTls } from 'node:tls';
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
  formatPost,
  formatReset,
  formatSettings,
  formatWindowUpdate,
  frameType,
  indexedNewest,
  literal,
  setting,
  stored,
  uint32,
} from '../../../support/wire/http2-frames.ts';

const servers = testServers();
const writeFiles = temporaryFiles();

interface Attacked extends Attacker {
  readonly port: number;
  /** The requests of the attacker that reached the handler. */
  readonly reached: () => number;
  /** What the log says about the attacker. */
  readonly logged: readonly Readonly<Record<string, unknown>>[];
}

/** Checks at the end of the test that another client has been served all the time. */
async function begin(handler: RequestListener = (_req, res) => res.end('x'), first = start): Promise<Attacked> {
  const logged: Readonly<Record<string, unknown>>[] = [];
  let reached = 0;
  const { port } = await startHttp(servers, {
    http2: true,
    logger: { warn: (fields: object) => void logged.push({ ...fields }) },
    handler(req, res) {
      if (req.url === '/other') return void res.end('other');
      reached += 1;
      handler(req, res);
    },
  });
  const other = openHttp2(`http://127.0.0.1:${port}`);
  servers.later(async () => {
    assert.equal((await other.send({ ':path': '/other' })).body, 'other');
    other.session.destroy();
  });
  assert.equal((await other.send({ ':path': '/other' })).status, 200);
  const attacker = attack(port, first);
  servers.later(() => attacker.socket.destroy());
  return { ...attacker, port, reached: () => reached, logged };
}

/** The stream of a client's request with this number. */
const idOf = (index: number) => 2 * index + 1;

/** Sends `count` frames at most, some at a time, until the connection closes. */
async function flood(
  { socket, send }: Attacker,
  frameOf: (index: number) => Uint8Array,
  count = 200_000,
  atOnce = 500,
) {
  for (let index = 0; index < count && !socket.destroyed; index += atOnce)
    await send(...Array.from({ length: Math.min(atOnce, count - index) }, (_, turn) => frameOf(index + turn)));
}

const nothing = Buffer.alloc(0);
const openAndReset = (index: number, code?: number) =>
  Buffer.concat([formatGet(idOf(index)), formatReset(idOf(index), code)]);

describe('a client of HTTP/2 that resets its requests', () => {
  function assertBound({ reached }: Attacked, startedMs: number): void {
    const seconds = (performance.now() - startedMs) / 1000;
    // Some may have ended before they were reset.
    assert.ok(reached() >= 100 && reached() <= 250 + 100 * seconds, `${reached()} in ${seconds} s`);
  }

  for (const code of [constants.NGHTTP2_CANCEL, constants.NGHTTP2_NO_ERROR, constants.NGHTTP2_INTERNAL_ERROR])
    it(`is closed when 100 have started, or 200 still run, and gets 100 more a second (with code ${code})`, async () => {
      // A request that is complete before the reset arrives has not been reset.
      const attacker = await begin(() => {});
      const startedMs = performance.now();
      await flood(attacker, (index) => openAndReset(index, code), 100_000, 1);
      await attacker.closed;
      assertBound(attacker, startedMs);
      assert.deepEqual(attacker.codes(frameType.goAway), [constants.NGHTTP2_ENHANCE_YOUR_CALM]);
      const reason = 'the client resets too many requests';
      await eventually(() =>
        assert.deepEqual(attacker.logged, [{ client: '127.0.0.1', code: 'ENHANCE_YOUR_CALM', reason }]),
      );
    });

  it('does not start more when the frames arrive together', async () => {
    const attacker = await begin();
    const startedMs = performance.now();
    await attacker.send(...Array.from({ length: 2000 }, (_, index) => openAndReset(index)));
    await attacker.closed;
    assertBound(attacker, startedMs);
  });

  it('is served if it resets no more than 100', async () => {
    const attacker = await begin(() => {});
    await attacker.send(...Array.from({ length: 100 }, (_, index) => formatGet(idOf(index))));
    await eventually(() => assert.equal(attacker.reached(), 100));
    await attacker.send(...Array.from({ length: 100 }, (_, index) => formatReset(idOf(index))));
    await attacker.send(formatGet(idOf(100)));
    await eventually(() => assert.equal(attacker.reached(), 101));
    assert.deepEqual(attacker.logged, []);
  });
});

it('a client of HTTP/2 has at most 100 streams: others are refused, and may be sent again', async () => {
  const finish: (() => void)[] = [];
  const attacker = await begin((_req, res) => void finish.push(() => res.end('x')));
  await attacker.send(...Array.from({ length: 150 }, (_, index) => formatGet(idOf(index))));
  await eventually(() => assert.equal(attacker.codes(frameType.reset).length, 50));
  assert.deepEqual([...new Set(attacker.codes(frameType.reset))], [constants.NGHTTP2_REFUSED_STREAM]);
  assert.equal(attacker.reached(), 100);
  for (const end of finish) end();
  await eventually(() => assert.ok(attacker.hasEnded(idOf(99))));
  await attacker.send(formatGet(idOf(150)));
  await eventually(() => assert.equal(attacker.reached(), 101));
});

/** Frames that belong to a request and make it, or the connection, invalid (CVE-2025-8671 and others). */
const invalid: Readonly<Record<string, (index: number) => readonly Buffer[]>> = {
  'increases a window by nothing': (index) => [formatGet(idOf(index)), formatWindowUpdate(idOf(index), 0)],
  'makes a window overflow': (index) => [formatGet(idOf(index)), formatWindowUpdate(idOf(index), 2 ** 31 - 1)],
  'sends a body after the end': (index) => [
    formatGet(idOf(index)),
    formatFrame(frameType.data, 0, idOf(index), Buffer.from('x')),
  ],
  'sends a longer body than announced': (index) => [
    formatPost(idOf(index), literal('content-length', '1')),
    formatFrame(frameType.data, flag.endStream, idOf(index), Buffer.from('xyz')),
  ],
  'sends trailers twice': (index) => [
    formatPost(idOf(index)),
    formatFrame(frameType.headers, flag.endHeaders | flag.endStream, idOf(index), literal('a', 'b')),
    formatFrame(frameType.headers, flag.endHeaders | flag.endStream, idOf(index), literal('a', 'b')),
  ],
  'sends headers in upper case': (index) => [formatGet(idOf(index), literal('Upper', 'x'))],
  'sends headers of a connection': (index) => [formatGet(idOf(index), literal('connection', 'x'))],
  'sends no authority': (index) => [
    formatFrame(frameType.headers, flag.endHeaders | flag.endStream, idOf(index), Buffer.from([0x82, 0x86, 0x84])),
  ],
  'continues its headers in many frames': (index) => [
    formatFrame(frameType.headers, flag.endStream, idOf(index), formatHead('GET')),
    ...Array.from({ length: 64 }, () => formatFrame(frameType.continuation, 0, idOf(index), literal('x', 'y'))),
  ],
  'continues its headers in many empty frames': (index) => [
    formatFrame(frameType.headers, flag.endStream, idOf(index), formatHead('GET')),
    ...Array.from({ length: 64 }, () => formatFrame(frameType.continuation, 0, idOf(index))),
  ],
  'sends empty parts of a body': (index) => [
    ...(index === 0 ? [formatPost(1)] : []),
    formatFrame(frameType.data, 0, 1),
  ],
  'sends what is no frame': () => [Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n')],
  'confirms pings that it has not got': () => [formatFrame(frameType.ping, flag.ack, 0, Buffer.alloc(8))],
  'confirms settings that it has not got': () => [formatFrame(frameType.settings, flag.ack, 0)],
};

describe('a client of HTTP/2 that sends invalid frames', () => {
  for (const [what, framesOf] of Object.entries(invalid))
    it(`is closed if it ${what}, after at most 100 requests`, async () => {
      const attacker = await begin(() => {});
      await flood(attacker, (index) => Buffer.concat(framesOf(index)), 10_000, 100);
      await attacker.closed;
      assert.ok(attacker.reached() <= 100, `${attacker.reached()}`);
      await eventually(() => assert.equal(attacker.logged.length, 1));
      assert.match(String(attacker.logged[0]?.['code']), /^ERR_HTTP2_/);
    });
});

/** Frames that are valid, and do nothing for a request. */
const useless: Readonly<Record<string, (index: number) => Buffer>> = {
  settings: () => formatSettings(),
  'settings that change the windows of 100 streams': (index) =>
    index < 100 ? formatGet(idOf(index)) : formatSettings({ [setting.initialWindowSize]: 1000 + (index % 2) }),
  pings: () => formatFrame(frameType.ping, 0, 0, Buffer.alloc(8)),
  'window updates of one byte': () => formatWindowUpdate(0, 1),
  'window updates of a stream': (index) => (index === 0 ? formatGet(1) : formatWindowUpdate(1, 1)),
  priorities: (index) => formatFrame(frameType.priority, 0, idOf(index), Buffer.concat([uint32(0), Buffer.from([0])])),
  'updates of priorities': () =>
    formatFrame(frameType.priorityUpdate, 0, 0, Buffer.concat([uint32(1), Buffer.from('u=1')])),
  'unknown frames': () => formatFrame(frameType.unknown, 0, 0, Buffer.alloc(8)),
  'large unknown frames': () => formatFrame(frameType.unknown, 0, 0, Buffer.alloc(16_384)),
  'padding of a body': (index) =>
    index === 0
      ? formatPost(1)
      : formatFrame(frameType.data, 8, 1, Buffer.concat([Buffer.from([254]), Buffer.alloc(254)])),
  'headers with too many pairs': (index) => formatGet(idOf(index), ...Array(300).fill(literal('a', 'b'))),
};

describe('a client of HTTP/2 that sends frames without a purpose', () => {
  for (const [what, frameOf] of Object.entries(useless)) {
    it(`is closed: ${what}`, async () => {
      const attacker = await begin((req) => void req.resume());
      await flood(attacker, frameOf, 1_000_000, frameOf(1).length > 1000 ? 20 : 1000);
      await attacker.closed;
      await eventually(() => assert.equal(attacker.logged.length, 1));
    });

    it(`is closed if it does not read either: ${what}`, async () => {
      const attacker = await begin((req) => void req.resume());
      attacker.socket.pause();
      await flood(attacker, frameOf, 1_000_000, frameOf(1).length > 1000 ? 20 : 1000);
      await eventually(() => assert.equal(attacker.logged.length, 1));
      attacker.socket.resume();
      await attacker.closed;
    });
  }
});

it('a client of HTTP/2 is closed after two mebibytes of pings, however few it sends at once', async () => {
  const attacker = await begin();
  await flood(attacker, () => formatFrame(frameType.ping, 0, 0, Buffer.alloc(8)), 1_000_000, 50);
  await attacker.closed;
  await eventually(() => assert.equal(attacker.logged[0]?.['code'], 'ENHANCE_YOUR_CALM'));
  assert.deepEqual(attacker.codes(frameType.goAway), [constants.NGHTTP2_ENHANCE_YOUR_CALM]);
});

describe('the headers of an HTTP/2 request', () => {
  it('may have as many cookies as a browser keeps for a site, each in its own line', async () => {
    const attacker = await begin();
    await attacker.send(
      formatGet(1, ...Array.from({ length: 200 }, (_, index) => literal('cookie', `name-${index}=x`))),
    );
    await eventually(() => assert.ok(attacker.hasEnded(1)));
    assert.equal(attacker.reached(), 1);
  });

  it('that repeat one large entry of the table get 431, or the stream is reset', async () => {
    const attacker = await begin();
    const bomb = Array(200).fill(indexedNewest);
    await attacker.send(formatGet(1, stored('x', 'v'.repeat(3900))));
    await eventually(() => assert.ok(attacker.hasEnded(1)));
    for (let index = 1; index <= 20; index += 1) await attacker.send(formatGet(idOf(index), ...bomb));
    const resets = () => attacker.codes(frameType.reset);
    const rejected = () => attacker.received(frameType.headers).length - 1 + resets().length;
    await eventually(() => assert.ok(rejected() >= 20));
    assert.equal(attacker.reached(), 1);
    assert.ok(
      resets().every((code) => [constants.NGHTTP2_NO_ERROR, constants.NGHTTP2_ENHANCE_YOUR_CALM].includes(code)),
    );
    assert.equal(attacker.logged[0]?.['status'], 431);
  });
});

describe('a client of HTTP/2 with much to send', () => {
  it('is served, however small the parts of its bodies are', async () => {
    let bytes = 0;
    const attacker = await begin((req, res) => {
      req.on('data', ({ length }: Buffer) => {
        bytes += length;
      });
      req.once('end', () => res.end());
    });
    const parts = 150_000;
    await attacker.send(formatPost(1));
    await flood(attacker, () => formatFrame(frameType.data, 0, 1, Buffer.from('ab')), parts, 1000);
    await attacker.send(formatFrame(frameType.data, flag.endStream, 1, nothing));
    await eventually(() => assert.ok(attacker.hasEnded(1)));
    assert.equal(bytes, 2 * parts);
  });

  it('is served if a handler takes its time to read as much as may be sent', async () => {
    const finish: (() => void)[] = [];
    const attacker = await begin((req, res) => {
      finish.push(() => req.resume().once('end', () => res.end()));
    });
    const part = Buffer.alloc(16_384);
    const ids = [0, 1, 2, 3].map(idOf);
    await eventually(() => assert.ok(attacker.received(frameType.settings).length > 0));
    await attacker.send(formatFrame(frameType.settings, flag.ack, 0));
    for (const id of ids) {
      await attacker.send(formatPost(id), ...Array(16).fill(formatFrame(frameType.data, 0, id, part)));
      await attacker.send(formatFrame(frameType.data, flag.endStream, id, nothing));
    }
    await eventually(() => assert.equal(finish.length, 4));
    // The bounds are checked once a second.
    await new Promise((resolve) => setTimeout(resolve, 2100));
    for (const end of finish) end();
    await eventually(() => assert.ok(ids.every(attacker.hasEnded)));
    assert.deepEqual(attacker.logged, []);
  });

  it('is served after bodies that nobody has read', async () => {
    const attacker = await begin((_req, res) => res.writeHead(413).end());
    const body = Buffer.alloc(16_000);
    for (let index = 0; index < 100; index += 1) {
      const part = formatFrame(frameType.data, 0, idOf(index), body);
      await attacker.send(formatPost(idOf(index)), part, part, part);
      await eventually(() => assert.ok(attacker.hasEnded(idOf(index))));
    }
    assert.equal(attacker.reached(), 100);
    assert.deepEqual(attacker.logged, []);
  });
});

it('a client of HTTP/2 is closed over TLS too when it sends too many frames without a purpose', async function () {
  const certificate = await makeCertificate(await writeFiles(), 'DNS:localhost');
  if (certificate === undefined) return this.skip();
  const logged: object[] = [];
  const logger = { warn: (fields: object) => void logged.push(fields) };
  const { port } = await startHttp(servers, { http2: true, tls: certificate, logger });
  const attacker = attackOver(connectTls({ port, ALPNProtocols: ['h2'], rejectUnauthorized: false }));
  await flood(attacker, () => formatWindowUpdate(0, 1), 1_000_000, 1000);
  await attacker.closed;
  await eventually(() => assert.match(JSON.stringify(logged), /ENHANCE_YOUR_CALM/));
});
