/** The distant limiter, with services that misbehave: every call settles, and none waits for a service that is down. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import dns from 'node:dns';
import { once } from 'node:events';
import * as http2 from 'node:http2';
import type { Socket } from 'node:net';
import { mock } from 'node:test';
import { connectRateLimit, InvalidRequest, type RateLimitClient, type RateLimitClientOptions } from '#ratelimit';
import { descriptor } from '../../support/limits.ts';
import { testServers } from '../../support/serve.ts';
import { createSignal } from '../../support/waiting.ts';
import { startRateLimitStranger } from '../../support/wire/rate-limit-stranger.ts';

type OnStream = (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => void;

const request = { domain: 'd', descriptors: [descriptor('k=v')] };
const allowed = { overallCode: 'OK', statuses: [] };
const ok = Buffer.from([0, 0, 0, 0, 2, 0x08, 1]);
const grpc = { ':status': 200, 'content-type': 'application/grpc' };

/** Answers as a well-behaved service does; `frame` and the trailers may be worse. */
function answer(stream: http2.ServerHttp2Stream, frame: Buffer = ok, trailers: object = { 'grpc-status': '0' }): void {
  stream.respond(grpc, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ ...trailers }));
  stream.end(frame);
}

function refuse(stream: http2.ServerHttp2Stream, status: string, message?: string): void {
  const more = message === undefined ? {} : { 'grpc-message': message };
  stream.respond({ ...grpc, 'grpc-status': status, ...more }, { endStream: true });
}

function begin(stream: http2.ServerHttp2Stream): void {
  stream.respond(grpc);
  stream.write(Buffer.from([0, 0, 0]));
}

const notOneMessage = 'its answer is not one uncompressed message';
const unreadable = 'its answer cannot be read';

/** What a service sends, and what the log reads of it. */
const failures: readonly (readonly [string, OnStream, string | RegExp])[] = [
  [
    'a gRPC status',
    (stream) => refuse(stream, '14', 'redis%20is down 100%'),
    'it answered with gRPC status 14: redis%20is down 100%',
  ],
  [
    'a status after a message',
    (stream) => answer(stream, ok, { 'grpc-status': '13', 'grpc-message': 'b%C3%A4d' }),
    'it answered with gRPC status 13: bäd',
  ],
  ['no grpc-status', (stream) => answer(stream, ok, {}), 'its answer has no grpc-status'],
  [
    'another HTTP status than 200',
    (stream) => stream.respond({ ...grpc, ':status': 503 }, { endStream: true }),
    'it answered with HTTP status 503',
  ],
  [
    'another content type',
    (stream) => stream.respond({ ':status': 200, 'content-type': 'text/html' }, { endStream: true }),
    'its answer is not gRPC',
  ],
  ['a compressed message', (stream) => answer(stream, Buffer.from([1, 0, 0, 0, 2, 8, 1])), notOneMessage],
  ['half a message', (stream) => answer(stream, Buffer.from([0, 0, 0, 0, 9, 8])), notOneMessage],
  ['no message', (stream) => answer(stream, Buffer.alloc(0)), notOneMessage],
  ['bytes that are no message', (stream) => answer(stream, Buffer.from([0, 0, 0, 0, 1, 0xff])), unreadable],
  ['an empty message', (stream) => answer(stream, Buffer.alloc(5)), unreadable],
  [
    'a message without end',
    (stream) => {
      stream.respond(grpc);
      stream.write(Buffer.alloc(65_537));
    },
    'its answer is longer than 65536 bytes',
  ],
  [
    'a reset of the stream',
    (stream) => stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR),
    'it reset the stream (2)',
  ],
  [
    'half an answer and the end of the connection',
    (stream) => {
      stream.respond(grpc);
      stream.write(Buffer.from([0, 0, 0]), () => stream.session?.destroy());
    },
    /./,
  ],
  ['GOAWAY with an error', (stream) => stream.session?.goaway(http2.constants.NGHTTP2_ENHANCE_YOUR_CALM), /./],
];

const rudeness: readonly (readonly [string, (socket: Socket) => void])[] = [
  ['a reset of the connection', (socket) => socket.resetAndDestroy()],
  ['the end of the connection', (socket) => socket.end()],
  ['HTTP/1', (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')],
  ['noise', (socket) => socket.write(Buffer.alloc(1_000, 0xa5))],
];

describe('the rate-limit client', () => {
  const servers = testServers();
  let nowMs: number;

  beforeEach(() => {
    nowMs = 0;
  });
  afterEach(() => mock.restoreAll());

  async function serve(onStream: OnStream) {
    let connections = 0;
    const server = http2.createServer();
    server.on('connection', (socket: Socket) => {
      connections += 1;
      socket.on('error', () => {});
    });
    server.on('sessionError', () => {});
    server.on('stream', (stream, headers) => {
      stream.on('error', () => {});
      onStream(stream, headers);
    });
    const { port } = await servers.listen(server);
    return { port, connections: () => connections };
  }

  function connectTo(port: number | (() => number), options: Partial<RateLimitClientOptions> = {}): RateLimitClient {
    const client = connectRateLimit({
      target: () => ({ host: '127.0.0.1', port: typeof port === 'number' ? port : port() }),
      timeoutMs: 5_000,
      clock: () => nowMs,
      random: () => 0,
      ...options,
    });
    servers.later(client.close);
    return client;
  }

  async function checkFailure(client: RateLimitClient, reason: string | RegExp): Promise<void> {
    await assert.rejects(client.shouldRateLimit(request), ({ message }: Error) => {
      const [before, found = ''] = message.split(/(?<=^no answer from the rate-limit service: )/);
      assert.equal(before, 'no answer from the rate-limit service: ', message);
      if (typeof reason === 'string') assert.equal(found, reason);
      else assert.match(found, reason);
      return true;
    });
  }

  it('sends the headers of gRPC and ten times its deadline, and all calls over one connection', async () => {
    const seen = new Set<string>();
    const { port, connections } = await serve((stream, headers) => {
      const names = [':method', ':path', 'content-type', 'te', 'grpc-timeout'];
      seen.add(names.map((name) => headers[name]).join(' '));
      answer(stream);
    });
    const client = connectTo(port);
    const answers = await Promise.all(Array.from({ length: 50 }, () => client.shouldRateLimit(request)));
    for (const one of answers) assert.deepEqual(one, allowed);
    const path = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
    assert.deepEqual([...seen], [`POST ${path} application/grpc trailers 50000m`]);
    assert.equal(connections(), 1);
  });

  for (const [what, onStream, reason] of failures)
    it(`rejects with a reason for the log when the service sends ${what}`, async () => {
      const { port } = await serve(onStream);
      await checkFailure(connectTo(port, { timeoutMs: 2_000 }), reason);
    });

  for (const [what, onSocket] of rudeness)
    it(`rejects with a reason for the log when the service answers the connect with ${what}`, async () =>
      checkFailure(connectTo((await servers.tcp(onSocket)).port), /./));

  it('rejects with an InvalidRequest when the service refuses the request as invalid', async () => {
    const { port } = await serve((stream) => refuse(stream, '3', 'too%20long'));
    await assert.rejects(connectTo(port).shouldRateLimit(request), new InvalidRequest('too long'));
  });

  it('keeps its deadline when the service does not answer, not even the connect, or not to the end', async () => {
    for (const { port } of [await serve(() => {}), await servers.tcp(() => {}), await serve(begin)])
      await checkFailure(connectTo(port, { timeoutMs: 20 }), 'it did not answer within 20 ms');
  });

  it('does not count time in which this process was busy', async () => {
    const { port } = await serve((stream) => answer(stream));
    const client = connectTo(port, { timeoutMs: 200 });
    await client.shouldRateLimit(request);
    const pending = client.shouldRateLimit(request);
    await new Promise((resolve) => setImmediate(resolve));
    const untilMs = performance.now() + 300;
    while (performance.now() < untilMs);
    assert.deepEqual(await pending, allowed);
  });

  it('gives up a connect that takes more than a second, and reports why to that call and to the next', async () => {
    // The name is never found: the connect lasts until it is given up.
    mock.method(dns, 'lookup', () => {});
    const client = connectTo(0, { target: () => ({ host: 'nowhere.example', port: 1 }) });
    await checkFailure(client, /no connection within 1000 ms/);
    await checkFailure(client, /it is down.*no connection within 1000 ms/);
  });

  it('connects for longer than a call waits, and never sends what timed out meanwhile', async () => {
    let streams = 0;
    const { port, connections } = await serve((stream) => {
      streams += 1;
      answer(stream);
    });
    let found = (_error: null, _addresses: readonly object[]) => {};
    mock.method(dns, 'lookup', (_host: string, _options: object, callback: typeof found) => {
      found = callback;
    });
    const client = connectTo(port, { target: () => ({ host: 'slow.example', port }), timeoutMs: 100 });
    await checkFailure(client, 'it did not answer within 100 ms');
    found(null, [{ address: '127.0.0.1', family: 4 }]);
    assert.deepEqual(await client.shouldRateLimit(request), allowed);
    assert.deepEqual([streams, connections()], [1, 1]);
  });

  it('loses the running calls of a service that is killed, then one call for each retry until it is back', async () => {
    let hold = false;
    const stranger = () => startRateLimitStranger(() => (hold ? new Promise<object>(() => {}) : { overallCode: 1 }));
    const [first, refusing] = [await stranger(), await servers.refusing()];
    let { port } = first;
    const client = connectTo(() => port);
    const outcomes = async () => {
      const counts = { answered: 0, failed: 0, refused: 0 };
      const ask = () =>
        client.shouldRateLimit(request).then(
          () => (counts.answered += 1),
          ({ message }: Error) => (counts[/it is down/.test(message) ? 'refused' : 'failed'] += 1),
        );
      await Promise.all(Array.from({ length: 50 }, ask));
      return Object.values(counts);
    };
    assert.deepEqual(await outcomes(), [50, 0, 0]);

    hold = true;
    const underWay = outcomes();
    port = refusing.port;
    setImmediate(first.stop);
    assert.deepEqual(await underWay, [0, 50, 0]);
    assert.deepEqual(await outcomes(), [0, 0, 50]);
    nowMs = 100;
    assert.deepEqual(await outcomes(), [0, 1, 49]);
    await checkFailure(client, /it is down, and asked again in a while \(.*ECONNREFUSED/);

    hold = false;
    const second = await stranger();
    ({ port } = second);
    nowMs = 299;
    assert.deepEqual(await outcomes(), [0, 0, 50]);
    nowMs = 300;
    assert.deepEqual(await outcomes(), [1, 0, 49]);
    assert.deepEqual(await outcomes(), [50, 0, 0]);
    second.stop();
  });

  it('asks the next of several addresses when one is down or cannot count, each with its own back-off', async () => {
    const [refusing, away, counting] = [
      await servers.refusing(),
      await serve((stream) => refuse(stream, '14')),
      await serve((stream) => answer(stream)),
    ];
    const at = ({ port }: { port: number }) => ({ host: '127.0.0.1', port });
    const client = connectTo(0, { target: () => [refusing, away, counting].map(at) });
    for (const _ of [1, 2]) assert.equal((await client.shouldRateLimit(request)).overallCode, 'OK');
    const alone = connectTo(0, { target: () => [refusing, away].map(at) });
    await checkFailure(alone, /^it answered with gRPC status 14/);
  });

  it('lets a running call finish after a GOAWAY, and opens a new connection for the next', async () => {
    const { port, connections } = await serve((stream) => {
      stream.session?.goaway();
      setImmediate(() => answer(stream));
    });
    const client = connectTo(port);
    for (const expected of [1, 2]) {
      assert.deepEqual(await client.shouldRateLimit(request), allowed);
      assert.equal(connections(), expected);
    }
  });

  it('keeps the connection when only a stream was reset', async () => {
    let calls = 0;
    const { port, connections } = await serve((stream) => {
      calls += 1;
      if (calls === 1) stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);
      else answer(stream);
    });
    const client = connectTo(port);
    await checkFailure(client, /./);
    assert.deepEqual(await client.shouldRateLimit(request), allowed);
    assert.equal(connections(), 1);
  });

  it('gives up a connection without an answer for a second', async () => {
    let isSilent = true;
    const { port, connections } = await serve((stream) => {
      if (!isSilent) answer(stream);
    });
    const client = connectTo(port, { timeoutMs: 200 });
    const late = () => checkFailure(client, 'it did not answer within 200 ms');
    const refused = () => checkFailure(client, /it is down/);
    await late();
    nowMs += 999;
    await late();
    nowMs += 1;
    await late();
    await refused();
    assert.equal(connections(), 1);

    nowMs += 100;
    await late();
    await refused();
    assert.equal(connections(), 2);

    isSilent = false;
    nowMs += 200;
    assert.deepEqual(await client.shouldRateLimit(request), allowed);
    assert.equal(connections(), 3);
  });

  for (const [how, end] of [
    ['says DEADLINE_EXCEEDED', (stream) => refuse(stream, '4')],
    ['resets the stream with CANCEL', (stream) => stream.close(http2.constants.NGHTTP2_CANCEL)],
  ] as const satisfies [string, OnStream][])
    it(`counts a time-out when the service ends the call at its deadline and ${how}`, async () => {
      const { port } = await serve(end);
      const client = connectTo(port);
      await checkFailure(client, 'it ended the call at its deadline');
      nowMs += 1_000;
      await checkFailure(client, 'it ended the call at its deadline');
      await checkFailure(client, /it is down/);
    });

  it('rejects running calls and later ones once it is closed, which may be twice or before the first call', async () => {
    const reached = createSignal();
    const { port } = await serve(reached.give);
    const client = connectTo(port);
    const running = checkFailure(client, /./);
    await reached.given;
    for (const one of [client, client, connectTo(1)]) await one.close();
    await running;
    await checkFailure(client, 'the client is closed');
  });

  it('does not keep the process alive when it is not closed', async () => {
    const { port } = await serve((stream) => answer(stream));
    const program = `
      import { connectRateLimit } from '#ratelimit';
      const client = connectRateLimit({ target: () => ({ host: '127.0.0.1', port: ${port} }), timeoutMs: 5_000 });
      const { overallCode } = await client.shouldRateLimit({ domain: 'd', descriptors: [] });
      console.log(overallCode);`;
    const child = spawn(process.execPath, ['--conditions=frontdesk-source', '--input-type=module', '--eval', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const output = child.stdout.setEncoding('utf8').toArray();
    assert.deepEqual(await once(child, 'exit'), [0, null]);
    assert.equal((await output).join(''), 'OK\n');
  });
});
