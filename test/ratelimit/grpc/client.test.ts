/** The distant limiter, with services that misbehave: every call settles, and none waits for a service that is down. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import dns from 'node:dns';
import { once } from 'node:events';
import * as http2 from 'node:http2';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { mock } from 'node:test';
import { connectRateLimit, InvalidRequest, type RateLimitClient, type RateLimitClientOptions } from '#ratelimit';
import { descriptor } from '../../support/limits.ts';
import { startRateLimitStranger } from '../../support/wire/rate-limit-stranger.ts';
import { holdRefusingPort, type RefusingPort } from '../../support/wire/refusing-port.ts';

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

describe('the rate-limit client', () => {
  const open: { server: Server | http2.Http2Server; sockets: Set<Socket> }[] = [];
  const clients: RateLimitClient[] = [];
  const refusingPorts: RefusingPort[] = [];
  const time = { nowMs: 0 };

  beforeEach(() => {
    time.nowMs = 0;
  });
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()));
    await Promise.all(open.splice(0).map(stop));
    for (const { close } of refusingPorts.splice(0)) close();
  });

  async function stop({ server, sockets }: (typeof open)[number]): Promise<void> {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
  }

  async function listen(server: Server | http2.Http2Server): Promise<{ port: number; connections: () => number }> {
    const sockets = new Set<Socket>();
    let connections = 0;
    server.on('connection', (socket: Socket) => {
      connections += 1;
      sockets.add(socket.on('error', () => {}));
    });
    open.push({ server, sockets });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return { port: (server.address() as AddressInfo).port, connections: () => connections };
  }

  function serve(onStream: (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => void) {
    const server = http2.createServer();
    server.on('sessionError', () => {});
    server.on('stream', (stream, headers) =>
      onStream(
        stream.on('error', () => {}),
        headers,
      ),
    );
    return listen(server);
  }

  function client(port: number, options: Partial<RateLimitClientOptions> = {}): RateLimitClient {
    const made = connectRateLimit({
      target: () => ({ host: '127.0.0.1', port }),
      timeoutMs: 5_000,
      clock: () => time.nowMs,
      random: () => 0,
      ...options,
    });
    clients.push(made);
    return made;
  }

  /** A service that is down, until `serve` gives the port to which the client connects next. */
  async function down(options: Partial<RateLimitClientOptions> = {}) {
    const refusing = await holdRefusingPort();
    refusingPorts.push(refusing);
    let { port } = refusing;
    const asked = client(0, { target: () => ({ host: '127.0.0.1', port }), ...options });
    return {
      asked,
      async comeBack() {
        const service = await serve((stream) => answer(stream));
        port = service.port;
        return service;
      },
    };
  }

  /** What the log reads of a call to a service that behaves so. */
  async function check(onStream: (stream: http2.ServerHttp2Stream) => void, reason: string | RegExp): Promise<void> {
    const { port } = await serve(onStream);
    await assert.rejects(client(port, { timeoutMs: 2_000 }).shouldRateLimit(request), ({ message }: Error) => {
      const prefix = 'no answer from the rate-limit service: ';
      assert.ok(message.startsWith(prefix), message);
      if (typeof reason === 'string') assert.equal(message.slice(prefix.length), reason);
      else assert.match(message.slice(prefix.length), reason);
      return true;
    });
  }

  describe('asks', () => {
    it('with the headers of gRPC, and ten times its own deadline', async () => {
      const { port } = await serve((stream, headers) => {
        assert.deepEqual(
          [headers[':method'], headers[':path'], headers['content-type'], headers['te'], headers['grpc-timeout']],
          [
            'POST',
            '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
            'application/grpc',
            'trailers',
            '50000m',
          ],
        );
        answer(stream);
      });
      assert.deepEqual(await client(port).shouldRateLimit(request), allowed);
    });

    it('all over one connection', async () => {
      const { port, connections } = await serve((stream) => answer(stream));
      const asked = client(port);
      await Promise.all(Array.from({ length: 50 }, () => asked.shouldRateLimit(request)));
      assert.equal(connections(), 1);
    });

    it('a service whose port is known only at the first call', async () => {
      let port: number | undefined;
      const asked = client(0, {
        target: () => {
          if (port === undefined) throw new Error('the service does not listen yet');
          return { host: '127.0.0.1', port };
        },
      });
      await assert.rejects(asked.shouldRateLimit(request), /does not listen yet/);
      ({ port } = await serve((stream) => answer(stream)));
      time.nowMs += 100;
      assert.deepEqual(await asked.shouldRateLimit(request), allowed);
    });
  });

  describe('rejects with a reason for the log when the service', () => {
    it('answers with a gRPC status', () =>
      check(
        (stream) =>
          stream.respond({ ...grpc, 'grpc-status': '14', 'grpc-message': 'redis%20is down 100%' }, { endStream: true }),
        'it answered with gRPC status 14: redis%20is down 100%',
      ));

    it('answers with a status after a message', () =>
      check(
        (stream) => answer(stream, ok, { 'grpc-status': '13', 'grpc-message': 'b%C3%A4d' }),
        'it answered with gRPC status 13: bäd',
      ));

    it('answers without a grpc-status', () =>
      check((stream) => answer(stream, ok, {}), 'its answer has no grpc-status'));

    it('answers another HTTP status than 200', () =>
      check(
        (stream) => stream.respond({ ...grpc, ':status': 503 }, { endStream: true }),
        'it answered with HTTP status 503',
      ));

    it('answers with something else than gRPC', () =>
      check((stream) => {
        stream.respond({ ':status': 200, 'content-type': 'text/html' });
        stream.end('<h1>It works!</h1>');
      }, 'its answer is not gRPC'));

    it('compresses its answer', () =>
      check(
        (stream) => answer(stream, Buffer.from([1, 0, 0, 0, 2, 8, 1])),
        'its answer is not one uncompressed message',
      ));

    it('sends half a message', () =>
      check((stream) => answer(stream, Buffer.from([0, 0, 0, 0, 9, 8])), 'its answer is not one uncompressed message'));

    it('sends no message', () =>
      check((stream) => answer(stream, Buffer.alloc(0)), 'its answer is not one uncompressed message'));

    it('sends bytes that are no message', () =>
      check((stream) => answer(stream, Buffer.from([0, 0, 0, 0, 1, 0xff])), 'its answer cannot be read'));

    it('sends an empty message', () => check((stream) => answer(stream, Buffer.alloc(5)), 'its answer cannot be read'));

    it('sends a message without end', () =>
      check((stream) => {
        stream.respond(grpc);
        stream.write(Buffer.alloc(65_537));
      }, 'its answer is longer than 65536 bytes'));

    it('resets the stream', () =>
      check((stream) => stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR), 'it reset the stream (2)'));

    it('ends the connection in the middle of an answer', () =>
      check((stream) => {
        stream.respond(grpc);
        stream.write(Buffer.from([0, 0, 0]), () => stream.session?.destroy());
      }, /./));

    it('sends GOAWAY with an error', () =>
      check((stream) => stream.session?.goaway(http2.constants.NGHTTP2_ENHANCE_YOUR_CALM), /./));
  });

  it('rejects with an InvalidRequest when the service refuses the request as invalid', async () => {
    const { port } = await serve((stream) =>
      stream.respond({ ...grpc, 'grpc-status': '3', 'grpc-message': 'too%20long' }, { endStream: true }),
    );
    await assert.rejects(client(port).shouldRateLimit(request), new InvalidRequest('too long'));
  });

  describe('keeps its deadline when the service', () => {
    it('does not answer', async () => {
      const { port } = await serve(() => {});
      await assert.rejects(client(port, { timeoutMs: 20 }).shouldRateLimit(request), /it did not answer within 20 ms/);
    });

    it('accepts the connection and never speaks', async () => {
      const { port } = await listen(createServer());
      await assert.rejects(client(port, { timeoutMs: 20 }).shouldRateLimit(request), /it did not answer within 20 ms/);
    });

    it('stalls in the middle of an answer', async () => {
      const { port } = await serve((stream) => {
        stream.respond(grpc);
        stream.write(Buffer.from([0, 0, 0]));
      });
      await assert.rejects(client(port, { timeoutMs: 20 }).shouldRateLimit(request), /it did not answer within 20 ms/);
    });
  });

  it('does not count time in which this process was busy', async () => {
    const { port } = await serve((stream) => answer(stream));
    const asked = client(port, { timeoutMs: 200 });
    await asked.shouldRateLimit(request);
    const pending = asked.shouldRateLimit(request);
    await new Promise((resolve) => setImmediate(resolve));
    const untilMs = performance.now() + 600;
    while (performance.now() < untilMs);
    assert.deepEqual(await pending, allowed);
  });

  describe('a connect', () => {
    afterEach(() => mock.restoreAll());

    it('is given up when it takes more than a second, and the call learns why', async () => {
      // The name is never found: the connect lasts until it is given up.
      mock.method(dns, 'lookup', () => {});
      const asked = client(0, { target: () => ({ host: 'nowhere.example', port: 1 }) });
      await assert.rejects(asked.shouldRateLimit(request), /no connection within 1000 ms/);
      await assert.rejects(asked.shouldRateLimit(request), /it is down.*no connection within 1000 ms/);
    });

    it('may take longer than a call waits for it; what timed out meanwhile is never sent', async () => {
      let streams = 0;
      const { port, connections } = await serve((stream) => {
        streams += 1;
        answer(stream);
      });
      let found = (_error: null, _addresses: readonly object[]) => {};
      mock.method(dns, 'lookup', (_host: string, _options: object, callback: typeof found) => {
        found = callback;
      });
      const asked = client(port, { target: () => ({ host: 'slow.example', port }), timeoutMs: 100 });
      await assert.rejects(asked.shouldRateLimit(request), /did not answer within 100 ms/);
      found(null, [{ address: '127.0.0.1', family: 4 }]);
      assert.deepEqual(await asked.shouldRateLimit(request), allowed);
      assert.deepEqual([streams, connections()], [1, 1]);
    });
  });

  it('costs a service that is killed its running calls, then one call for each retry until it is back', async () => {
    let hold = false;
    const stranger = () => startRateLimitStranger(() => (hold ? new Promise<object>(() => {}) : { overallCode: 1 }));
    const [first, refusing] = [await stranger(), await holdRefusingPort()];
    refusingPorts.push(refusing);
    let { port } = first;
    const asked = client(0, { target: () => ({ host: '127.0.0.1', port }) });
    const outcomes = async () => {
      const counts = { answered: 0, failed: 0, refused: 0 };
      const ask = () =>
        asked.shouldRateLimit(request).then(
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
    time.nowMs = 100;
    assert.deepEqual(await outcomes(), [0, 1, 49]);

    hold = false;
    const second = await stranger();
    ({ port } = second);
    time.nowMs = 299;
    assert.deepEqual(await outcomes(), [0, 0, 50]);
    time.nowMs = 300;
    assert.deepEqual(await outcomes(), [1, 0, 49]);
    assert.deepEqual(await outcomes(), [50, 0, 0]);
    await asked.close();
    second.stop();
  });

  describe('survives a service that', () => {
    async function survives(onSocket: (socket: Socket) => void): Promise<void> {
      const { port } = await listen(createServer(onSocket));
      await assert.rejects(client(port).shouldRateLimit(request), /^Error: no answer from the rate-limit service: ./);
    }

    it('resets the connection', () => survives((socket) => socket.resetAndDestroy()));
    it('hangs up', () => survives((socket) => socket.end()));
    it('speaks HTTP/1', () => survives((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')));
    it('sends noise', () => survives((socket) => socket.write(Buffer.alloc(1_000, 0xa5))));
  });

  describe('when the service goes away', () => {
    it('lets a running call finish after a GOAWAY, and opens a new connection for the next', async () => {
      const { port, connections } = await serve((stream) => {
        stream.session?.goaway();
        setImmediate(() => answer(stream));
      });
      const asked = client(port);
      assert.deepEqual(await asked.shouldRateLimit(request), allowed);
      assert.deepEqual(await asked.shouldRateLimit(request), allowed);
      assert.equal(connections(), 2);
    });

    it('keeps the connection when only a stream was reset', async () => {
      let calls = 0;
      const { port, connections } = await serve((stream) => {
        calls += 1;
        if (calls === 1) stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);
        else answer(stream);
      });
      const asked = client(port);
      await assert.rejects(asked.shouldRateLimit(request));
      assert.deepEqual(await asked.shouldRateLimit(request), allowed);
      assert.equal(connections(), 1);
    });

    it('is refused, then rejects at once, and recovers by itself', async () => {
      const { asked, comeBack } = await down();
      await assert.rejects(asked.shouldRateLimit(request), /ECONNREFUSED/);
      const { connections } = await comeBack();
      await assert.rejects(asked.shouldRateLimit(request), /it is down, and asked again in a while \(.*ECONNREFUSED/);
      assert.equal(connections(), 0);
      time.nowMs += 100;
      assert.deepEqual(await asked.shouldRateLimit(request), allowed);
      assert.deepEqual(await asked.shouldRateLimit(request), allowed);
    });

    it('sends one call to find out whether it is back, and lets no other wait for it', async () => {
      const { asked, comeBack } = await down();
      await assert.rejects(asked.shouldRateLimit(request));
      await comeBack();
      time.nowMs += 100;
      const probe = asked.shouldRateLimit(request);
      await assert.rejects(asked.shouldRateLimit(request), /it is down/);
      assert.deepEqual(await probe, allowed);
    });

    it('gives up a connection without an answer for a second', async () => {
      let silent = true;
      const { port, connections } = await serve((stream) => {
        if (!silent) answer(stream);
      });
      const asked = client(port, { timeoutMs: 200 });
      const late = () => assert.rejects(asked.shouldRateLimit(request), /it did not answer within 200 ms/);
      const refused = () => assert.rejects(asked.shouldRateLimit(request), /it is down/);
      await late();
      time.nowMs += 999;
      await late();
      time.nowMs += 1;
      await late();
      await refused();
      assert.equal(connections(), 1);

      time.nowMs += 100;
      await late();
      await refused();
      assert.equal(connections(), 2);

      silent = false;
      time.nowMs += 200;
      assert.deepEqual(await asked.shouldRateLimit(request), allowed);
      assert.equal(connections(), 3);
    });
  });

  for (const [how, end] of [
    ['says DEADLINE_EXCEEDED', (stream) => stream.respond({ ...grpc, 'grpc-status': '4' }, { endStream: true })],
    ['resets the stream with CANCEL', (stream) => stream.close(http2.constants.NGHTTP2_CANCEL)],
  ] as const satisfies [string, (stream: http2.ServerHttp2Stream) => void][])
    it(`takes it for a time-out when the service ends the call at its deadline, and ${how}`, async () => {
      const { port } = await serve(end);
      const asked = client(port);
      await assert.rejects(asked.shouldRateLimit(request), /it ended the call at its deadline/);
      time.nowMs += 1_000;
      await assert.rejects(asked.shouldRateLimit(request), /it ended the call at its deadline/);
      await assert.rejects(asked.shouldRateLimit(request), /it is down/);
    });

  describe('closed', () => {
    it('rejects running calls and later ones', async () => {
      let reached = () => {};
      const asking = new Promise<void>((resolve) => {
        reached = resolve;
      });
      const { port } = await serve(() => reached());
      const asked = client(port);
      const running = assert.rejects(asked.shouldRateLimit(request), /no answer/);
      await asking;
      await asked.close();
      await running;
      await assert.rejects(asked.shouldRateLimit(request), /the client is closed/);
    });

    it('before it was used, or twice, does nothing', async () => {
      const asked = client(1);
      await asked.close();
      await asked.close();
    });
  });

  it('does not keep the process alive when it is not closed', async () => {
    const { port } = await serve((stream) => answer(stream));
    const program = `
      import { connectRateLimit } from '#ratelimit';
      const client = connectRateLimit({ target: () => ({ host: '127.0.0.1', port: ${port} }), timeoutMs: 5_000 });
      const { overallCode } = await client.shouldRateLimit({ domain: 'd', descriptors: [] });
      console.log(overallCode);`;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const output = child.stdout.setEncoding('utf8').toArray();
    assert.deepEqual(await once(child, 'exit'), [0, null]);
    assert.equal((await output).join(''), 'OK\n');
  });
});
