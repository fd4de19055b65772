/** What clients may hold open on the rate-limit port: connections, calls and messages. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2 } from 'node:http2';
import { connect as connectSocket, type Socket } from 'node:net';
import { createLimiter, type RateLimitServer, type RateLimitServerOptions, serveRateLimit } from '#ratelimit';
import { closeOf } from '../../support/waiting.ts';

const limiter = createLimiter({ limits: [] });
const rateLimit = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
const reflection = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
const watch = '/grpc.health.v1.Health/Watch';
const frame = (hex: string) => Buffer.concat([Buffer.from([0, 0, 0, 0, hex.length / 2]), Buffer.from(hex, 'hex')]);
const onlyDomain = frame('0a0164');
const listServices = frame('3a00');
/** The calls that follow keep it on a busy machine, too. */
const shortMs = 500;

describe('the rate-limit port', () => {
  let server: RateLimitServer;
  let refused: string[];
  let logged: string[];
  let closers: (() => void)[];

  async function open(bounds: RateLimitServerOptions['bounds'] = {}): Promise<void> {
    const log = (_fields: object, message = '') => logged.push(message);
    server = await serveRateLimit({
      limiter,
      port: 0,
      logger: { error: log },
      onRefused: (reason) => refused.push(reason),
      bounds,
    });
  }

  beforeEach(() => {
    [refused, logged] = [[], []];
    closers = [];
  });

  afterEach(async () => {
    for (const close of closers) close();
    await server.close(100);
  });

  function session(initialWindowSize = 65_535): ClientHttp2Session {
    const opened = connectHttp2(`http://127.0.0.1:${server.port}`, { settings: { initialWindowSize } });
    opened.on('error', () => {});
    closers.push(() => opened.destroy());
    return opened;
  }

  function socket(): Socket {
    const opened = connectSocket(server.port, '127.0.0.1').resume();
    opened.on('error', () => {});
    closers.push(() => opened.destroy());
    return opened;
  }

  function begin(from: ClientHttp2Session, path = rateLimit, headers = {}): ClientHttp2Stream {
    const stream = from.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', ...headers });
    return stream.on('error', () => {});
  }

  /** The `grpc-status` of a call that is answered; undefined when it is not. */
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

  it('closes connections that send nothing, or not even the first line, and reports each', async () => {
    await open({ silentMs: shortMs });
    const [silent, slow] = [socket(), socket()];
    slow.write('PRI * HTTP/2.0\r\n');
    await Promise.all([closeOf(silent), closeOf(slow)]);
    assert.equal(await decide(), '0');
    assert.deepEqual(refused, ['silent', 'silent']);
  });

  it('closes a connection without a call after a while, and announces it to its client first', async () => {
    await open({ idleMs: shortMs });
    const idle = session();
    assert.equal(await decide(idle), '0');
    await Promise.all([once(idle, 'goaway'), closeOf(idle)]);
    assert.deepEqual(refused, []);
  });

  it('closes the connection of a call whose message never arrives whole', async () => {
    await open({ arrivingMs: shortMs });
    const slow = session();
    begin(slow).write(onlyDomain.subarray(0, 3));
    await closeOf(slow);
    assert.deepEqual(refused, ['unfinished']);
    assert.equal(await decide(), '0');
  });

  it('closes the connection of a client that takes no answers', async () => {
    await open({ callMs: shortMs });
    const deaf = session(0);
    for (let index = 0; index < 50; index += 1) begin(deaf).end(onlyDomain);
    await closeOf(deaf);
    assert.equal(await decide(), '0');
  });

  it('lets a watch of the health last', async () => {
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

  it('closes the oldest of too many calls whose message has not arrived', async () => {
    await open({ arrivingMax: 3 });
    const attacker = session();
    const closed = closeOf(attacker);
    for (let index = 0; index < 4; index += 1) begin(attacker).write(onlyDomain.subarray(0, 6));
    await closed;
    assert.equal(await decide(), '0');
  });

  it('takes no more than its number of calls of a connection', async () => {
    await open({ callsMax: 3 });
    const client = session();
    assert.equal(await decide(client), '0');
    assert.equal(client.remoteSettings.maxConcurrentStreams, 3);
  });

  it('makes room for a new connection by closing the newest without a call', async () => {
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

  it('closes the connection of a reflection that asks without end, and refuses the seventeenth at once', async () => {
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
    [
      'an unknown compression',
      '12',
      'unimplemented',
      () => begin(session(), rateLimit, { 'grpc-encoding': 'br' }).end(Buffer.from([1, 0, 0, 0, 1, 0])),
    ],
    [
      'a message that is not compressed as it says',
      '13',
      'unreadable',
      () => begin(session(), rateLimit, { 'grpc-encoding': 'gzip' }).end(Buffer.from([1, 0, 0, 0, 1, 0])),
    ],
    ['a message that is none', '13', 'unreadable', () => begin(session()).end(frame('ffff'))],
    ['a message of more than 1 MiB', '8', 'exhausted', () => begin(session()).end(Buffer.from([0, 0, 0x10, 0, 1]))],
    ['a request without a domain', '3', 'invalid', () => begin(session()).end(frame(''))],
  ];
  for (const [what, code, reason, call] of refusals)
    it(`refuses ${what}, and reports it as ${reason}`, async () => {
      await open();
      assert.equal(await status(call()), code);
      assert.equal(await decide(), '0');
      assert.deepEqual(refused, [reason]);
    });

  it('reports what another server of this process refuses to that server alone', async () => {
    await open();
    const elsewhere: string[] = [];
    const onRefused = (reason: string) => void elsewhere.push(reason);
    const other = await serveRateLimit({ limiter, port: 0, logger: { error() {} }, onRefused });
    assert.equal(await status(begin(session(), '/x').end()), '12');
    await other.close();
    assert.deepEqual([refused, elsewhere], [['unimplemented'], []]);
  });

  it('refuses to watch a service whose name is longer than 256 characters', async () => {
    await open();
    const stream = begin(session(), watch);
    const name = Buffer.alloc(257, 'x');
    const message = Buffer.concat([Buffer.from([0x0a, 0x81, 0x02]), name]);
    stream.end(frame(message.toString('hex').padStart(2, '0')).fill(message.length >> 8, 3, 4));
    assert.equal(await status(stream), '3');
  });

  it('refuses headers of more than 64 KiB, and serves the connection on', async () => {
    await open();
    const client = session();
    const many = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`x-${index}`, 'v'.repeat(4_000)]));
    assert.equal(await decide(client, many), undefined);
    assert.equal(await decide(), '0');
  });

  it('prints no header value that its client sends', async () => {
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
