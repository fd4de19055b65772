/** The client of a remote limiter: failures, deadlines and reconnects with services that misbehave or are down. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import dns from 'node:dns';
import { once } from 'node:events';
import * as http2 from 'node:http2';
import { createServer, type Socket } from 'node:net';
import { mock } from 'node:test';
import { connectRateLimit, InvalidRequest, type RateLimitClient, type RateLimitClientOptions } from '#ratelimit';
import { descriptor } from '../../support/limits.ts';
import { testServers } from '../../support/serve.ts';
import { createDeferred, eventually } from '../../support/waiting.ts';
import { startForeignRateLimitService } from '../../support/wire/foreign-rate-limit-service.ts';

type OnStream = (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => void;

const request = { domain: 'd', descriptors: [descriptor('k=v')] };
const allowed = { overallCode: 'OK', statuses: [] };
const ok = Buffer.from([0, 0, 0, 0, 2, 0x08, 1]);
const grpc = { ':status': 200, 'content-type': 'application/grpc' };

/** Responds like a well-behaved service, unless `frame` or `trailers` are given. */
function respond(stream: http2.ServerHttp2Stream, frame: Buffer = ok, trailers: object = { 'grpc-status': '0' }): void {
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

const notOneMessage = 'its response is not a single uncompressed message';
const unreadable = 'its response cannot be parsed';

/** Responses of a service, and the reasons that the client reports for them. */
const failures: readonly (readonly [string, OnStream, string | RegExp])[] = [
  [
    'a gRPC status',
    (stream) => refuse(stream, '14', 'redis%20is down 100%'),
    'it responded with gRPC status 14: redis is down 100%',
  ],
  [
    'a status after a message',
    (stream) => respond(stream, ok, { 'grpc-status': '13', 'grpc-message': 'b%C3%A4d' }),
    'it responded with gRPC status 13: bäd',
  ],
  ['no grpc-status', (stream) => respond(stream, ok, {}), 'its response has no grpc-status'],
  [
    'an HTTP status other than 200',
    (stream) => stream.respond({ ...grpc, ':status': 503 }, { endStream: true }),
    'it responded with HTTP status 503',
  ],
  [
    'a different content type',
    (stream) => stream.respond({ ':status': 200, 'content-type': 'text/html' }, { endStream: true }),
    'its response is not gRPC',
  ],
  ['a compressed message', (stream) => respond(stream, Buffer.from([1, 0, 0, 0, 2, 8, 1])), notOneMessage],
  ['half a message', (stream) => respond(stream, Buffer.from([0, 0, 0, 0, 9, 8])), notOneMessage],
  ['no message', (stream) => respond(stream, Buffer.alloc(0)), notOneMessage],
  ['bytes that are not a message', (stream) => respond(stream, Buffer.from([0, 0, 0, 0, 1, 0xff])), unreadable],
  ['an empty message', (stream) => respond(stream, Buffer.alloc(5)), unreadable],
  [
    'an endless message',
    (stream) => {
      stream.respond(grpc);
      stream.write(Buffer.alloc(65_537));
    },
    'its response is longer than 65536 bytes',
  ],
  [
    'a reset of the stream',
    (stream) => stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR),
    'it reset the stream (2)',
  ],
  [
    'half a response and closes the connection',
    (stream) => {
      stream.respond(grpc);
      stream.write(Buffer.from([0, 0, 0]), () => stream.session?.destroy());
    },
    /./,
  ],
  ['GOAWAY with an error', (stream) => stream.session?.goaway(http2.constants.NGHTTP2_ENHANCE_YOUR_CALM), /./],
];

const notHttp2 = 'its response is not HTTP/2 (Protocol error): use the port on which it accepts gRPC without TLS';

const ended = 'the connection ended; if it expects TLS, use the port on which it accepts gRPC without TLS';

const rudeness: readonly (readonly [string, (socket: Socket) => void, string | RegExp])[] = [
  ['a reset of the connection', (socket) => socket.resetAndDestroy(), /./],
  ['the end of the connection, as a port with TLS does', (socket) => socket.end(), ended],
  ['HTTP/1', (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'), notHttp2],
  ['noise', (socket) => socket.write(Buffer.alloc(1_000, 0xa5)), /./],
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
      const [before, found = ''] = message.split(/(?<=^no decision from the rate-limit service: )/);
      assert.equal(before, 'no decision from the rate-limit service: ', message);
      if (typeof reason === 'string') assert.equal(found, reason);
      else assert.match(found, reason);
      return true;
    });
  }

  it('cannot be created with an address in place of a function', () => {
    const target = { host: '127.0.0.1', port: 8081 };
    assert.throws(() => connectRateLimit({ target } as never), /^TypeError: `target` must be a function/);
  });

  it('sends the gRPC headers, with ten times its deadline, and all calls over one connection', async () => {
    const seen = new Set<string>();
    const { port, connections } = await serve((stream, headers) => {
      const names = [':method', ':path', 'content-type', 'te', 'grpc-timeout'];
      seen.add(names.map((name) => headers[name]).join(' '));
      respond(stream);
    });
    const client = connectTo(port);
    const decisions = await Promise.all(Array.from({ length: 50 }, () => client.shouldRateLimit(request)));
    for (const decision of decisions) assert.deepEqual(decision, allowed);
    const path = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
    assert.deepEqual([...seen], [`POST ${path} application/grpc trailers 50000m`]);
    assert.equal(connections(), 1);
  });

  for (const [name, onStream, reason] of failures)
    it(`rejects with a specific reason when the service sends ${name}`, async () => {
      const { port } = await serve(onStream);
      await checkFailure(connectTo(port, { timeoutMs: 2_000 }), reason);
    });

  for (const [name, onSocket, reason] of rudeness)
    it(`rejects with a reason when the service responds to the connection with ${name}`, async () =>
      checkFailure(connectTo((await servers.tcp(onSocket)).port), reason));

  it('rejects with an InvalidRequest when the service rejects the request as invalid', async () => {
    const { port } = await serve((stream) => refuse(stream, '3', 'too%20long'));
    await assert.rejects(connectTo(port).shouldRateLimit(request), new InvalidRequest('too long'));
  });

  it('meets its deadline when the service never responds, never connects, or never finishes a response', async () => {
    for (const { port } of [await serve(() => {}), await servers.tcp(() => {}), await serve(begin)])
      await checkFailure(connectTo(port, { timeoutMs: 20 }), 'it did not respond within 20 ms');
  });

  it('does not time out because this process was busy', async () => {
    const { port } = await serve((stream) => respond(stream));
    const client = connectTo(port, { timeoutMs: 200 });
    await client.shouldRateLimit(request);
    const pending = client.shouldRateLimit(request);
    await new Promise((resolve) => setImmediate(resolve));
    const untilMs = performance.now() + 300;
    while (performance.now() < untilMs);
    assert.deepEqual(await pending, allowed);
  });

  it('gives up on a connection attempt after a second, and reports the reason to that call and the next', async () => {
    // The name never resolves, so the attempt lasts until the client gives up.
    mock.method(dns, 'lookup', () => {});
    const client = connectTo(0, { target: () => ({ host: 'nowhere.example', port: 1 }) });
    await checkFailure(client, /no connection within 1000 ms/);
    await checkFailure(client, /it is down.*no connection within 1000 ms/);
  });

  it('keeps connecting after a call has timed out, and never sends that call', async () => {
    let streams = 0;
    const { port, connections } = await serve((stream) => {
      streams += 1;
      respond(stream);
    });
    let found = (_error: null, _addresses: readonly object[]) => {};
    mock.method(dns, 'lookup', (_host: string, _options: object, callback: typeof found) => {
      found = callback;
    });
    const client = connectTo(port, { target: () => ({ host: 'slow.example', port }), timeoutMs: 100 });
    await checkFailure(client, 'it did not respond within 100 ms');
    found(null, [{ address: '127.0.0.1', family: 4 }]);
    assert.deepEqual(await client.shouldRateLimit(request), allowed);
    assert.deepEqual([streams, connections()], [1, 1]);
  });

  it('loses only the running calls when the service is killed, and then one call for each probe until it is back', async () => {
    let hold = false;
    const service = () =>
      startForeignRateLimitService(() => (hold ? new Promise<object>(() => {}) : { overallCode: 1 }));
    const [first, refusing] = [await service(), await servers.refusing()];
    let { port } = first;
    const client = connectTo(() => port);
    const outcomes = async () => {
      const counts = { succeeded: 0, failed: 0, rejected: 0 };
      const ask = () =>
        client.shouldRateLimit(request).then(
          () => (counts.succeeded += 1),
          ({ message }: Error) => (counts[/it is down/.test(message) ? 'rejected' : 'failed'] += 1),
        );
      await Promise.all(Array.from({ length: 50 }, ask));
      return Object.values(counts);
    };
    assert.deepEqual(await outcomes(), [50, 0, 0]);

    hold = true;
    const inFlight = outcomes();
    port = refusing.port;
    setImmediate(first.stop);
    assert.deepEqual(await inFlight, [0, 50, 0]);
    assert.deepEqual(await outcomes(), [0, 0, 50]);
    nowMs = 100;
    assert.deepEqual(await outcomes(), [0, 1, 49]);
    await checkFailure(client, /it is down and will be retried shortly \(.*ECONNREFUSED/);

    hold = false;
    const second = await service();
    ({ port } = second);
    nowMs = 299;
    assert.deepEqual(await outcomes(), [0, 0, 50]);
    nowMs = 300;
    assert.deepEqual(await outcomes(), [1, 0, 49]);
    assert.deepEqual(await outcomes(), [50, 0, 0]);
    second.stop();
  });

  it('tries the next address when one is down or cannot count, with a separate back-off for each', async () => {
    const [refusing, unavailable, counting] = [
      await servers.refusing(),
      await serve((stream) => refuse(stream, '14')),
      await serve((stream) => respond(stream)),
    ];
    const at = ({ port }: { port: number }) => ({ host: '127.0.0.1', port });
    const client = connectTo(0, { target: () => [refusing, unavailable, counting].map(at) });
    for (const _ of [1, 2]) assert.equal((await client.shouldRateLimit(request)).overallCode, 'OK');
    const other = await serve(() => assert.fail('the request was counted twice'));
    const decided = connectTo(0, { target: () => [counting, other].map(at) });
    assert.equal((await decided.shouldRateLimit(request)).overallCode, 'OK');
    const alone = connectTo(0, { target: () => [refusing, unavailable].map(at) });
    await checkFailure(alone, /^it responded with gRPC status 14/);
    const slow = await serve((stream) => {
      nowMs += 4_900;
      refuse(stream, '14');
    });
    const silent = await serve(() => {});
    const late = connectTo(0, { target: () => [slow, silent].map(at) });
    await checkFailure(late, 'it did not respond within 100 ms');
  });

  it('follows a list that changes: a call at an address that has left still ends, and its connection closes', async () => {
    const held = createDeferred();
    const streams: http2.ServerHttp2Stream[] = [];
    const first = await serve((stream) => {
      streams.push(stream);
      held.resolve();
    });
    const second = await serve((stream) => respond(stream));
    const at = ({ port }: { port: number }) => ({ host: '127.0.0.1', port });
    let targets = [at(first)];
    const client = connectTo(0, { target: () => targets });
    const running = client.shouldRateLimit(request);
    await held.promise;
    targets = [];
    await checkFailure(client, 'it has no address');
    targets = [at(second)];
    assert.equal((await client.shouldRateLimit(request)).overallCode, 'OK');
    const [stream] = streams;
    assert.ok(stream?.session != null && streams.length === 1);
    const closed = once(stream.session, 'close');
    respond(stream);
    assert.equal((await running).overallCode, 'OK');
    await closed;
    targets = [at(first), at(second)];
    const again = client.shouldRateLimit(request);
    await eventually(() => assert.equal(first.connections(), 2));
    await client.close();
    await assert.rejects(again);
  });

  it('lets a running call finish after a GOAWAY, and opens a new connection for the next one', async () => {
    const { port, connections } = await serve((stream) => {
      stream.session?.goaway();
      setImmediate(() => respond(stream));
    });
    const client = connectTo(port);
    for (const expected of [1, 2]) {
      assert.deepEqual(await client.shouldRateLimit(request), allowed);
      assert.equal(connections(), expected);
    }
  });

  it('closes a connection after a GOAWAY, even if the service never closes it', async () => {
    const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    const goAway = Buffer.from([0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    const closed = createDeferred();
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      // A connection that is only half-closed would accept more data.
      const writeUntilReset = () =>
        socket.write(settings, (error) => setImmediate(error ? closed.resolve : writeUntilReset));
      socket
        .on('error', () => {})
        .once('end', writeUntilReset)
        .resume();
      socket.write(Buffer.concat([settings, goAway]));
    });
    const { port } = await servers.listen(server);
    await checkFailure(connectTo(port), 'it refused the call');
    await closed.promise;
  });

  it('keeps the connection when only a stream is reset', async () => {
    let calls = 0;
    const { port, connections } = await serve((stream) => {
      calls += 1;
      if (calls === 1) stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
      else respond(stream);
    });
    const client = connectTo(port);
    await checkFailure(client, /./);
    assert.deepEqual(await client.shouldRateLimit(request), allowed);
    assert.equal(connections(), 1);
  });

  it('repeats a call that the service refused before processing it, once and only while time is left', async () => {
    let calls = 0;
    let refuse = (_stream: http2.ServerHttp2Stream) => {};
    const { port } = await serve((stream) => {
      calls += 1;
      refuse(stream);
      if (!stream.closed) respond(stream);
    });
    const client = connectTo(port);
    const refuseAll = (stream: http2.ServerHttp2Stream) => stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);
    refuse = (stream) => void (calls === 1 && refuseAll(stream));
    assert.deepEqual(await client.shouldRateLimit(request), allowed);
    refuse = refuseAll;
    await checkFailure(client, /refused/);
    assert.equal(calls, 4);
    refuse = (stream) => {
      nowMs += 60_000;
      refuseAll(stream);
    };
    await checkFailure(client, /refused/);
    assert.equal(calls, 5);
  });

  it('reports the time that was left for a repeated call in whole milliseconds', async () => {
    let calls = 0;
    const { port } = await serve((stream) => {
      calls += 1;
      nowMs += 0.7;
      if (calls === 1) stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);
    });
    await checkFailure(connectTo(port, { timeoutMs: 20 }), 'it did not respond within 19 ms');
  });

  it('drops a connection after a second without a response', async () => {
    let isSilent = true;
    const { port, connections } = await serve((stream) => {
      if (!isSilent) respond(stream);
    });
    const client = connectTo(port, { timeoutMs: 200 });
    const late = () => checkFailure(client, 'it did not respond within 200 ms');
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
    ['returns DEADLINE_EXCEEDED', (stream) => refuse(stream, '4')],
    ['resets the stream with CANCEL', (stream) => stream.close(http2.constants.NGHTTP2_CANCEL)],
  ] as const satisfies [string, OnStream][])
    it(`reports a time-out when the service ends the call at the deadline and ${how}`, async () => {
      const { port } = await serve(end);
      const client = connectTo(port);
      await checkFailure(client, 'it ended the call at its deadline');
      nowMs += 1_000;
      await checkFailure(client, 'it ended the call at its deadline');
      await checkFailure(client, /it is down/);
    });

  it('rejects running and later calls when closed, and may be closed twice or before the first call', async () => {
    const reached = createDeferred();
    const { port } = await serve(reached.resolve);
    const client = connectTo(port);
    const running = checkFailure(client, /./);
    await reached.promise;
    for (const one of [client, client, connectTo(1)]) await one.close();
    await running;
    await checkFailure(client, 'the client is closed');
  });

  it('does not keep the process alive if it is not closed', async () => {
    const { port } = await serve((stream) => respond(stream));
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
