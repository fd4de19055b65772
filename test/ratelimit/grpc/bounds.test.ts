/** Bounds of the rate-limit port on connections, calls and messages. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2 } from 'node:http2';
import { connect as connectSocket, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { createLimiter, type RateLimitServer, type RateLimitServerOptions, serveRateLimit } from '#ratelimit';
import { testServers } from '../../support/serve.ts';
import { closeOf } from '../../support/waiting.ts';

const limiter = createLimiter({ limits: [] });
const rateLimit = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
const reflection = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
const watch = '/grpc.health.v1.Health/Watch';
const frame = (hex: string) => Buffer.concat([Buffer.from([0, 0, 0, 0, hex.length / 2]), Buffer.from(hex, 'hex')]);
const onlyDomain = frame('0a0164');
const gzip = { 'grpc-encoding': 'gzip' };
const zipped = gzipSync(onlyDomain.subarray(5));
const compressed = Buffer.concat([Buffer.from([1, 0, 0, 0, zipped.length]), zipped]);
const listServices = frame('3a00');
/** Long enough for the calls of a test to complete on a busy machine. */
const shortMs = 500;

describe('the rate-limit port', () => {
  const servers = testServers();
  let server: RateLimitServer;
  let refused: string[];
  let logged: string[];

  async function open(bounds: RateLimitServerOptions['bounds'] = {}): Promise<void> {
    const log = (_fields: object, message = '') => logged.push(message);
    server = await serveRateLimit({
      limiter,
      port: 0,
      logger: { error: log },
      onRefused: (reason) => refused.push(reason),
      bounds,
    });
    servers.later(() => server.close(100));
  }

  beforeEach(() => {
    [refused, logged] = [[], []];
  });

  function session(initialWindowSize = 65_535): ClientHttp2Session {
    const opened = connectHttp2(`http://127.0.0.1:${server.port}`, { settings: { initialWindowSize } });
    opened.on('error', () => {});
    servers.later(() => opened.destroy());
    return opened;
  }

  function socket(): Socket {
    const opened = connectSocket(server.port, '127.0.0.1').resume();
    opened.on('error', () => {});
    servers.later(() => opened.destroy());
    return opened;
  }

  function begin(from: ClientHttp2Session, path = rateLimit, headers = {}): ClientHttp2Stream {
    const stream = from.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', ...headers });
    return stream.on('error', () => {});
  }

  /** Resolves with the `grpc-status` of a call, or undefined if it gets no response. */
  function status(stream: ClientHttp2Stream): Promise<string | undefined> {
    return new Promise((resolve) => {
      const read = (headers: Record<string, unknown>) => {
        if (typeof headers['grpc-status'] === 'string') resolve(headers['grpc-status']);
      };
      const give = () => resolve(undefined);
      stream.on('response', read).on('trailers', read).on('close', give).resume();
    });
  }

  const decide = (from = session(), headers = {}) => {
    const stream = begin(from, rateLimit, headers);
    stream.end(onlyDomain);
    return status(stream);
  };

  it('closes and reports connections that send nothing or only part of the preface', async () => {
    await open({ silentMs: shortMs });
    const [silent, slow] = [socket(), socket()];
    slow.write('PRI * HTTP/2.0\r\n');
    await Promise.all([closeOf(silent), closeOf(slow)]);
    assert.equal(await decide(), '0');
    assert.deepEqual(refused, ['silent', 'silent']);
  });

  it('closes a connection without calls after a while, and sends GOAWAY first', async () => {
    await open({ idleMs: shortMs });
    const idle = session();
    assert.equal(await decide(idle), '0');
    await Promise.all([once(idle, 'goaway'), closeOf(idle)]);
    assert.deepEqual(refused, []);
  });

  it('closes the connection of a call whose message never arrives completely', async () => {
    await open({ arrivingMs: shortMs });
    const slow = session();
    begin(slow).write(onlyDomain.subarray(0, 3));
    await closeOf(slow);
    assert.deepEqual(refused, ['unfinished']);
    assert.equal(await decide(), '0');
  });

  for (const path of [rateLimit, watch])
    it(`closes the connection of a call to ${path} whose message has arrived but whose request never ends`, async () => {
      await open({ arrivingMs: shortMs });
      const slow = session();
      begin(slow, path).write(path === watch ? frame('') : onlyDomain);
      await closeOf(slow);
      assert.deepEqual(refused, ['unfinished']);
      assert.equal(await decide(), '0');
    });

  it('closes the connection of a client that does not read responses', async () => {
    await open({ callMs: shortMs });
    const deaf = session(0);
    for (let index = 0; index < 50; index += 1) begin(deaf).end(onlyDomain);
    await closeOf(deaf);
    assert.equal(await decide(), '0');
  });

  it('does not limit the duration of a health watch', async () => {
    await open({ callMs: shortMs });
    const stream = begin(session(), watch);
    stream.end(frame(''));
    await once(stream, 'data');
    const slow = session();
    begin(slow);
    await closeOf(slow);
    server.setServing(false);
    await once(stream, 'data');
  });

  it('closes the oldest call when too many have an incomplete message', async () => {
    await open({ arrivingMax: 3 });
    const attacker = session();
    const closed = closeOf(attacker);
    for (let index = 0; index < 4; index += 1) begin(attacker).write(onlyDomain.subarray(0, 6));
    await closed;
    assert.equal(await decide(), '0');
  });

  it('closes the connection of the oldest call when too many clients do not read their responses', async () => {
    await open({ openMax: 3, callMs: 600_000 });
    const oldest = session(0);
    const closed = closeOf(oldest);
    for (const deaf of [oldest, session(0), session(0), session(0)])
      await once(begin(deaf).end(onlyDomain), 'response');
    await closed;
    assert.equal(await decide(), '0');
    assert.equal(refused[0], 'unfinished');
  });

  it('announces the maximum number of concurrent calls to clients', async () => {
    await open({ callsMax: 3 });
    const client = session();
    assert.equal(await decide(client), '0');
    assert.equal(client.remoteSettings.maxConcurrentStreams, 3);
  });

  it('makes room for a new connection by closing the newest one without a call', async () => {
    await open({ connectionsMax: 3 });
    const [busy, idle] = [session(), session()];
    const pending = begin(busy);
    assert.equal(await decide(idle), '0');
    const silent = socket();
    await once(silent, 'connect');
    const gone = closeOf(silent);
    assert.equal(await decide(), '0');
    await gone;
    pending.end(onlyDomain);
    assert.equal(await status(pending), '0');
    assert.equal(await decide(idle), '0');
    assert.deepEqual(refused, ['too_many']);
  });

  it('makes room for a new connection by closing the oldest that has never made a call, before any idle one', async () => {
    await open({ connectionsMax: 3 });
    const silent = [socket(), socket()];
    for (const one of silent) await once(one, 'connect');
    const idle = session();
    assert.equal(await decide(idle), '0');
    const gone = silent.map(closeOf);
    for (const one of gone) {
      assert.equal(await decide(), '0');
      await one;
    }
    assert.equal(await decide(idle), '0');
    assert.deepEqual(refused, ['too_many', 'too_many']);
  });

  it('closes the connection of an endless reflection stream, and rejects the 17th concurrent one', async () => {
    await open();
    const attacker = session();
    const endless = begin(attacker, reflection);
    for (let index = 0; index < 101; index += 1) endless.write(listServices);
    await closeOf(attacker);
    const client = session();
    for (let index = 0; index < 16; index += 1) begin(client, reflection).write(listServices);
    assert.equal(await status(begin(client, reflection)), '8');
    assert.deepEqual(refused, ['unfinished', 'exhausted']);
  });

  const refusals: readonly (readonly [string, string, string, () => ClientHttp2Stream])[] = [
    ['an unknown method', '12', 'unimplemented', () => begin(session(), `${rateLimit}s`).end(onlyDomain)],
    ['a compressed message', '12', 'unimplemented', () => begin(session(), rateLimit, gzip).end(compressed)],
    ['a malformed message', '13', 'unreadable', () => begin(session()).end(frame('ffff'))],
    ['a message of more than 1 MiB', '8', 'exhausted', () => begin(session()).end(Buffer.from([0, 0, 0x10, 0, 1]))],
    ['a request without a domain', '3', 'invalid', () => begin(session()).end(frame(''))],
  ];
  for (const [name, code, reason, call] of refusals)
    it(`rejects ${name} and reports it as ${reason}`, async () => {
      await open();
      assert.equal(await status(call()), code);
      assert.equal(await decide(), '0');
      assert.deepEqual(refused, [reason]);
    });

  it('accepts an uncompressed message of a client that may compress others', async () => {
    await open();
    assert.equal(await decide(session(), gzip), '0');
  });

  const unended: readonly (readonly [string, string, string, Buffer, object])[] = [
    ['its message is malformed', '13', rateLimit, frame('ffff'), {}],
    ['its deadline passes', '4', rateLimit, onlyDomain, { 'grpc-timeout': '1n' }],
    ['a later message is malformed', '13', reflection, Buffer.concat([listServices, frame('ffff')]), {}],
  ];
  for (const [name, code, path, bytes, headers] of unended)
    it(`closes the stream of a call that never ends its request when ${name}`, async () => {
      await open();
      const stream = begin(session(), path, headers);
      const closed = closeOf(stream);
      stream.write(bytes);
      assert.equal(await status(stream), code);
      await closed;
    });

  it('reports rejected calls only for the server that received them, even if a process has several', async () => {
    await open();
    const elsewhere: string[] = [];
    const onRefused = (reason: string) => void elsewhere.push(reason);
    const other = await serveRateLimit({ limiter, port: 0, logger: { error() {} }, onRefused });
    assert.equal(await status(begin(session(), '/x').end()), '12');
    await other.close();
    assert.deepEqual([refused, elsewhere], [['unimplemented'], []]);
  });

  it('rejects a watch of a service whose name is longer than 256 characters', async () => {
    await open();
    const stream = begin(session(), watch);
    const name = Buffer.alloc(257, 'x');
    const message = Buffer.concat([Buffer.from([0x0a, 0x81, 0x02]), name]);
    stream.end(frame(message.toString('hex').padStart(2, '0')).fill(message.length >> 8, 3, 4));
    assert.equal(await status(stream), '3');
  });

  it('rejects headers of more than 8 KiB, even if their encoding is short', async () => {
    await open();
    const repeated = (times: number) => ({ 'x-repeated': Array.from({ length: times }, () => 'v'.repeat(1_000)) });
    assert.equal(await decide(session(), repeated(7)), '0');
    assert.equal(await decide(session(), repeated(9)), undefined);
    assert.equal(await decide(session(), repeated(60)), undefined);
    assert.deepEqual(refused, ['exhausted', 'exhausted']);
  });

  it('never prints header values from clients', async () => {
    await open();
    const printed: unknown[] = [];
    const { error } = console;
    console.error = (...line: unknown[]) => printed.push(line);
    try {
      assert.equal(await decide(session(), { authorization: 'Basic sécrèt' }), '0');
    } finally {
      console.error = error;
    }
    assert.deepEqual([printed, logged], [[], []]);
  });
});
