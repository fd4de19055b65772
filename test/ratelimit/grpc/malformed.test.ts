/** Malformed, truncated and excessive HTTP/2 on the rate-limit port never affects other clients. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import fc from 'fast-check';
import {
  connectRateLimit,
  createLimiter,
  type RateLimitClient,
  type RateLimitServer,
  serveRateLimit,
} from '#ratelimit';

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const path = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
const types = { data: 0, headers: 1, priority: 2, reset: 3, settings: 4, push: 5, ping: 6, window: 8, continuation: 9 };
const endStream = 1;
const endHeaders = 4;

/** Encodes a frame (RFC 9113 section 4.1). */
function frame(type: keyof typeof types, flags: number, stream: number, payload: Buffer | string = ''): Buffer {
  const bytes = Buffer.from(payload);
  const head = Buffer.alloc(9);
  head.writeUIntBE(bytes.length, 0, 3);
  head.writeUInt8(types[type], 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, bytes]);
}

/** Encodes literal fields without indexing or Huffman coding (RFC 7541 section 6.2.2). */
function block(fields: readonly (readonly [string, string])[]): Buffer {
  const text = (one: string) => Buffer.concat([length(Buffer.byteLength(one, 'latin1')), Buffer.from(one, 'latin1')]);
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

function length(count: number): Buffer {
  if (count < 127) return Buffer.from([count]);
  const bytes = [127];
  let rest = count - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}

const pseudo = (at: string, method = 'POST') => [
  [':method', method] as const,
  [':scheme', 'http'] as const,
  [':authority', 'x'] as const,
  [':path', at] as const,
];
const grpc = ['content-type', 'application/grpc'] as const;
const request = block([...pseudo(path), grpc]);
const start = Buffer.concat([preface, frame('settings', 0, 0)]);
const uint32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
const setting = (id: number, value: number) =>
  frame('settings', 0, 0, Buffer.concat([Buffer.from([0, id]), uint32(value)]));
const repeat = (count: number, make: (index: number) => Buffer) =>
  Buffer.concat(Array.from({ length: count }, (_, index) => make(index)));
const stream = (index: number) => 2 * index + 1;
const open = (id: number, flags = endHeaders) => frame('headers', flags, id, request);

/** The types of complete frames. */
function typesIn(bytes: Buffer): number[] {
  const found: number[] = [];
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) found.push(bytes.readUInt8(at + 3));
  return found;
}

describe('malformed HTTP/2 on the rate-limit port', () => {
  let server: RateLimitServer;
  let other: RateLimitClient;
  let logged: unknown[];

  before(async () => {
    logged = [];
    const logger = { error: (fields: object) => logged.push(fields) };
    server = await serveRateLimit({ limiter: createLimiter({ limits: [] }), port: 0, logger });
    other = connectRateLimit({ target: () => ({ host: '127.0.0.1', port: server.port }), timeoutMs: 5_000 });
  });

  after(async () => {
    await other.close();
    await server.close(100);
  });

  /**
   * Sends the bytes, then checks that the server serves another client and, with `mustClose`, closes the connection. A
   * deaf client reads no responses.
   */
  async function attack(bytes: Buffer, mustClose: boolean, isDeaf = false): Promise<void> {
    const socket = connect(server.port, '127.0.0.1');
    const closed = once(socket, 'close').catch(() => {});
    socket.on('error', () => {});
    if (isDeaf) socket.pause();
    else socket.resume();
    socket.write(bytes);
    if (mustClose) await closed;
    const decision = await other.shouldRateLimit({ domain: 'd', descriptors: [] });
    assert.equal(decision.overallCode, 'OK');
    socket.destroy();
    await closed;
  }

  const flood = 5_000;
  const closing: Record<string, Buffer> = {
    'endless CONTINUATION': Buffer.concat([
      open(1, 0),
      repeat(flood, () => frame('continuation', 0, 1, block([['x', 'y']]))),
    ]),
    'endless empty CONTINUATION': Buffer.concat([open(1, 0), repeat(flood, () => frame('continuation', 0, 1))]),
    'endless HEADERS': repeat(flood, (index) => open(stream(index))),
    'rapid reset': repeat(flood, (index) =>
      Buffer.concat([open(stream(index)), frame('reset', 0, stream(index), uint32(8))]),
    ),
    'endless SETTINGS': repeat(flood, () => setting(3, 100)),
    'a window beyond 2^31': frame('window', 0, 0, uint32(0x7fffffff)),
    'a window of 0': frame('window', 0, 0, uint32(0)),
    'an initial window beyond 2^31': setting(4, 0x80000000),
    'a frame size of 1': setting(5, 1),
    'DATA without a stream': frame('data', 0, 0, 'x'),
    'DATA with more padding than bytes': Buffer.concat([open(1), frame('data', 8, 1, Buffer.from([255, 0]))]),
    'a frame of 16 MiB': Buffer.from([0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]),
    'PUSH_PROMISE from a client': frame('push', endHeaders, 1, Buffer.concat([uint32(2), request])),
    'an even stream': open(2),
    'a broken header block': frame('headers', endHeaders, 1, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff])),
    'a PING of the wrong length': frame('ping', 0, 0, 'x'),
    'no preface': Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'),
  };

  for (const [name, bytes] of Object.entries(closing))
    it(`closes the connection: ${name}`, () =>
      attack(name === 'no preface' ? bytes : Buffer.concat([start, bytes]), true));

  const single = (fields: readonly (readonly [string, string])[]) =>
    frame('headers', endHeaders + endStream, 1, block(fields));
  const harmless: Record<string, Buffer> = {
    'a decreasing stream id': Buffer.concat([open(5), open(3)]),
    'a path with non-ASCII bytes': single([...pseudo('/ü\xff'), grpc]),
    'a path with a line break': single([...pseudo('/a\r\nb'), grpc]),
    'no path': single([[':method', 'POST'], grpc]),
    CONNECT: single([[':method', 'CONNECT'], [':authority', 'x'], grpc]),
    'a path of 16 KB': single([...pseudo(`/${'%'.repeat(16_000)}`), grpc]),
    'a bad time-out': single([...pseudo(path), grpc, ['grpc-timeout', '\u00e4'.repeat(100)]]),
    'an unknown encoding': single([...pseudo(path), grpc, ['grpc-encoding', 'x']]),
    'a second message': Buffer.concat([open(1), frame('data', endStream, 1, Buffer.alloc(10))]),
    'a message that is not actually compressed': Buffer.concat([
      frame('headers', endHeaders, 1, block([...pseudo(path), grpc, ['grpc-encoding', 'gzip']])),
      frame('data', endStream, 1, Buffer.from([1, 0, 0, 0, 3, 1, 2, 3])),
    ]),
    'a message of 4 GiB that never arrives': Buffer.concat([
      open(1),
      frame('data', 0, 1, Buffer.from([0, 255, 255, 255, 255])),
    ]),
    'no window for responses': Buffer.concat([
      setting(4, 0),
      repeat(200, (index) =>
        Buffer.concat([open(stream(index)), frame('data', endStream, stream(index), Buffer.alloc(5))]),
      ),
    ]),
    'windows of one byte': Buffer.concat([
      setting(4, 1),
      repeat(100, (index) =>
        Buffer.concat([open(stream(index)), frame('data', endStream, stream(index), Buffer.alloc(5))]),
      ),
      repeat(100, (index) => frame('window', 0, stream(index), uint32(1))),
    ]),
  };

  for (const [name, bytes] of Object.entries(harmless))
    it(`keeps serving others: ${name}`, () => attack(Buffer.concat([start, bytes]), false));

  it('keeps serving others while a client sends endless frames and reads nothing', () =>
    attack(Buffer.concat([start, repeat(flood, () => frame('ping', 0, 0, Buffer.alloc(8)))]), false, true));

  it('rejects 40 MB of compressed headers call by call, so that the connection never reaches a memory limit of Node', async () => {
    const indexed = Buffer.concat([Buffer.from([0x40]), block([['x', 'y'.repeat(3_900)]]).subarray(1)]);
    const repeated = Buffer.alloc(100, 0xbe);
    const calls = repeat(100, (index) =>
      frame(
        'headers',
        endHeaders + endStream,
        stream(index),
        Buffer.concat([request, index === 0 ? indexed : Buffer.alloc(0), repeated]),
      ),
    );
    const socket = connect(server.port, '127.0.0.1');
    socket.end(Buffer.concat([start, calls]));
    const received = typesIn(Buffer.concat(await socket.toArray()));
    assert.equal(received.filter((type) => type === types.headers).length, 100);
    assert.ok(!received.includes(types.reset));
  });

  it('keeps serving others after arbitrary frames, complete or truncated', async function survive() {
    const type = fc.constantFrom(...(Object.keys(types) as (keyof typeof types)[]));
    const payload = fc.oneof(
      fc.uint8Array({ maxLength: 40 }).map(Buffer.from),
      fc.constant(request),
      fc.constant(uint32(1)),
    );
    const frames = fc.array(fc.tuple(type, fc.nat(255), fc.nat(9), payload), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(frames, fc.nat(400), async (list, cut) => {
        const bytes = Buffer.concat([start, ...list.map((one) => frame(...one))]);
        await attack(bytes.subarray(0, Math.max(1, bytes.length - cut)), false);
      }),
      { numRuns: 100 },
    );
    assert.deepEqual(logged, []);
  });
});
