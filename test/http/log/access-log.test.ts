/** The lines of the access log, as JSON and in Apache's combined format, and the status that they report. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import Koa, { type Middleware } from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { type Logger, silentLogger } from '#foundation';
import {
  createAccessLog,
  createAddresses,
  createProblemResponses,
  createRequestContext,
  createUpgrades,
  finalStatus,
  problem,
  requestContext,
  upgradeOf,
} from '#http';
import { testServers } from '../../support/serve.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { createDeferred } from '../../support/waiting.ts';
import { makeCertificate } from '../../support/wire/certificate.ts';
import { peerOf } from '../../support/wire/peer.ts';
import { sendRaw } from '../../support/wire/raw-client.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const ids = { 'X-Request-Id': 'one', traceparent: `00-${traceId}-b7ad6b7169203331-00` };

type Line = Readonly<Record<string, unknown>>;

/** Records log lines. `firstLine` resolves when the first one is written, because the client may be done before. */
function recordingLogger() {
  const lines: Line[] = [];
  const { promise: firstLine, resolve } = createDeferred();
  const write = (fields: object, message?: string) => {
    lines.push({ ...fields, message });
    resolve();
  };
  const logger: Logger = { info: write, warn: write, error: write };
  return { logger, lines, firstLine };
}

function appOf(...middleware: readonly Middleware[]) {
  const app = new Koa();
  app.silent = true;
  for (const one of [createRequestContext(createAddresses()), ...middleware]) app.use(one);
  return app.callback();
}

const sendX: Middleware = (ctx) => {
  ctx.body = 'x';
};

const head = (target: string, ...lines: readonly string[]) =>
  [`GET ${target} HTTP/1.1`, 'Host: x', ...lines, '', ''].join('\r\n');

const servers = testServers();

describe('createAccessLog', () => {
  const writeFiles = temporaryFiles();

  it('logs the client, user, request, mapping, upstream, status and times', async () => {
    const { logger, lines, firstLine } = recordingLogger();
    const handler = appOf(createAccessLog(logger), (ctx) => {
      Object.assign(requestContext(ctx), {
        user: 'demo',
        apiKey: 'ci',
        mapping: 'hotel',
        upstream: 'http://10.0.0.1:9001',
        upstreamMs: 12.345,
        refusedUpgrade: 'websocket',
        grpcStatus: 0,
      });
      ctx.status = 201;
      ctx.body = 'made';
    });
    await request(handler)
      .post('/v1/hotels/bookings/?token=secret')
      .set({ ...ids, Authorization: 'Basic secret', Cookie: 'session=secret', 'Content-Type': 'application/grpc' })
      .expect(201);
    await firstLine;
    const [{ durationMs, bytesIn, bytesOut, client, ...rest } = {}] = lines;
    assert.deepEqual(rest, {
      message: 'request',
      requestId: 'one',
      traceId,
      user: 'demo',
      apiKey: 'ci',
      mapping: 'hotel',
      method: 'POST',
      path: '/v1/hotels/bookings/',
      protocol: 'HTTP/1.1',
      tls: undefined,
      status: 201,
      grpcStatus: 'OK',
      problem: undefined,
      upstream: 'http://10.0.0.1:9001',
      upstreamMs: 12.3,
      refusedUpgrade: 'websocket',
    });
    assert.match(String(client), /^(?:127\.0\.0\.1|::1)$/);
    assert.ok(typeof durationMs === 'number' && durationMs >= 0 && durationMs * 10 === Math.round(durationMs * 10));
    assert.ok(Number(bytesIn) > 100 && Number(bytesOut) > 100);
    assert.equal(lines.length, 1);
  });

  const fail: Middleware = () => {
    throw problem('upstream-overloaded');
  };
  const crash: Middleware = () => {
    throw new Error('broken');
  };
  const rewrite: Middleware = (ctx, next) => {
    ctx.path = '/elsewhere';
    return next();
  };
  const behindProxy = createRequestContext(createAddresses({ trustedProxies: ['127.0.0.1'] }));
  /** `handlerOf` puts the access log into an app. */
  for (const [what, text, expected, handlerOf] of [
    [
      'the problem that was sent, so that a status of the service can be told from one of the gateway',
      head('/', 'Connection: close'),
      { status: 503, problem: 'upstream-overloaded' },
      (log) => appOf(log, createProblemResponses({ logger: silentLogger }), fail),
    ],
    [
      'the path that the client sent, even if the app is mounted and rewrites it',
      head('/travel/v1/x', 'Connection: close'),
      { status: 200, path: '/travel/v1/x' },
      (log) => new Koa().use(mount('/travel', new Koa().use(log).use(rewrite).use(sendX))).callback(),
    ],
    [
      '500 for an error, and the path of a target that is not a valid URL',
      head('http://[/x', 'Connection: close'),
      { status: 500, path: '/x', problem: undefined },
      (log) => appOf(log, crash),
    ],
    [
      'the client address that a trusted proxy forwards',
      head('/', 'X-Forwarded-For: 198.51.100.7', 'Connection: close'),
      { client: '198.51.100.7' },
      (log) => new Koa().use(behindProxy).use(log).use(sendX).callback(),
    ],
  ] as const satisfies readonly (readonly [string, string, Line, (log: Middleware) => RequestListener])[])
    it(`logs ${what}`, async () => {
      const { logger, lines, firstLine } = recordingLogger();
      const { port } = await servers.http(handlerOf(createAccessLog(logger)));
      await sendRaw(port, text);
      await firstLine;
      for (const [name, value] of Object.entries(expected)) assert.equal(lines[0]?.[name], value, name);
    });

  it('logs for each request the bytes since the previous line of its connection', async () => {
    const { logger, lines } = recordingLogger();
    const requests = [head('/1'), head('/22'), head('/333', 'Connection: close')];
    const { port } = await servers.http(appOf(createAccessLog(logger), sendX));
    const socket = connect(port, '127.0.0.1');
    const responses = peerOf(socket).closed;
    for (const [index, text] of requests.entries()) {
      socket.write(text);
      while (lines.length <= index) await new Promise(setImmediate);
    }
    const received = await responses;
    assert.deepEqual(
      lines.map(({ path, bytesIn }) => [path, bytesIn]),
      [
        ['/1', requests[0]?.length],
        ['/22', requests[1]?.length],
        ['/333', requests[2]?.length],
      ],
    );
    assert.equal(
      lines.reduce((sum, { bytesOut }) => sum + Number(bytesOut), 0),
      received.length,
    );
  });

  it('logs one line for each pipelined request', async () => {
    const { logger, lines } = recordingLogger();
    const sent = head('/1') + head('/2', 'Connection: close');
    const { port } = await servers.http(appOf(createAccessLog(logger), sendX));
    await sendRaw(port, sent);
    assert.deepEqual(
      lines.map(({ path }) => path),
      ['/1', '/2'],
    );
    assert.equal(
      lines.reduce((sum, { bytesIn }) => sum + Number(bytesIn), 0),
      sent.length,
    );
  });

  it('logs the TLS version', async function () {
    const certificate = await makeCertificate(await writeFiles(), 'IP:127.0.0.1');
    if (certificate === undefined) return this.skip();
    const { cert, key } = certificate;
    const { logger, lines, firstLine } = recordingLogger();
    const server = createTlsServer({ cert, key }, appOf(createAccessLog(logger), sendX));
    const { port } = await servers.listen(server);
    const socket = connectTls({ port, host: '127.0.0.1', ca: cert, maxVersion: 'TLSv1.2' });
    socket.write(head('/', 'Connection: close'));
    await peerOf(socket).closed;
    await firstLine;
    assert.equal(lines[0]?.['tls'], 'TLSv1.2');
  });
});

describe('createAccessLog with the combined format', () => {
  /** Returns the lines for one request. */
  async function linesFor(text: string, handle: Middleware = sendX) {
    const { logger, lines } = recordingLogger();
    const written: string[] = [];
    const handler = appOf(createAccessLog({ ...logger, writeLine: (line) => written.push(line) }, 'combined'), handle);
    const { port } = await servers.http(handler);
    await sendRaw(port, text);
    assert.deepEqual(lines, []);
    return written;
  }

  const time = String.raw`\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000\]`;

  /** `expected` is the part of the line before the time and the part after it. */
  function check(what: string, expected: readonly [string, string], text: string, handle?: Middleware) {
    it(what, async () => {
      const [line = '', ...others] = await linesFor(text, handle);
      assert.deepEqual(others, []);
      const parts = new RegExp(`^(.*) ${time} (.*)$`).exec(line);
      assert.deepEqual(parts?.slice(1), expected, line);
    });
  }

  check(
    'logs client, user, time, request, status, body size, referer and user agent, without queries',
    ['127.0.0.1 - demo', '"GET /v1/x HTTP/1.1" 200 5 "https://app.example/a" "curl/8.5"'],
    head(
      '/v1/x?token=secret',
      'Referer: https://app.example/a?token=secret',
      'User-Agent: curl/8.5',
      'Connection: close',
    ),
    (ctx) => {
      requestContext(ctx).user = 'demo';
      ctx.body = 'hello';
    },
  );

  check(
    'logs a dash for missing values',
    ['127.0.0.1 - -', '"GET / HTTP/1.1" 204 - "-" "-"'],
    head('/', 'Connection: close'),
    (ctx) => {
      ctx.status = 204;
    },
  );

  check(
    'escapes values so that a client cannot close the quotes, start a line or shift a column',
    [String.raw`127.0.0.1 - a\x20-\x20b`, String.raw`"GET /\"\\x HTTP/1.1" 200 1 "\" 200 1 \"" "a\x09b\\\xff"`],
    head('/"\\x', 'Referer: " 200 1 "', 'User-Agent: a\tb\\ÿ', 'Connection: close'),
    (ctx) => {
      requestContext(ctx).user = 'a - b';
      ctx.body = 'x';
    },
  );

  check(
    'escapes the bytes of a user name in UTF-8',
    [String.raw`127.0.0.1 - J\xc3\xb6rg`, '"GET / HTTP/1.1" 200 1 "-" "-"'],
    head('/', 'Connection: close'),
    (ctx) => {
      requestContext(ctx).user = 'Jörg';
      ctx.body = 'x';
    },
  );

  it('logs the line as a message if the logger cannot write plain lines', async () => {
    const { logger, lines } = recordingLogger();
    const { port } = await servers.http(appOf(createAccessLog(logger, 'combined'), sendX));
    await sendRaw(port, head('/', 'Connection: close'));
    assert.match(String(lines[0]?.['message']), /"GET \/ HTTP\/1\.1" 200 1 /);
  });
});

describe('finalStatus', () => {
  /** Does not fit into the buffers of the two sockets. */
  const large = Buffer.alloc(32 * 1024 * 1024);

  /** Wraps a handler and resolves `status` with the final status of its first response. */
  function watch(handle: RequestListener) {
    let resolve = (_status: number) => {};
    const status = new Promise<number>((settle) => {
      resolve = settle;
    });
    const handler: RequestListener = (req, res) => {
      res.once('close', () => resolve(finalStatus(res)));
      handle(req, res);
    };
    return { handler, status };
  }

  for (const [what, handle] of Object.entries<RequestListener>({
    'a complete response': (_req, res) => res.end(large),
    'half of a response': (_req, res) => res.write(large),
    'an unfinished response that fits into the buffers': (_req, res) => res.write('x'),
  }))
    it(`returns 499 when the client disconnects before it has read ${what}`, async () => {
      const { handler, status } = watch(handle);
      const { port } = await servers.http(handler);
      const socket = connect(port, '127.0.0.1');
      socket.write(head('/'));
      await once(socket, 'data');
      socket.destroy();
      assert.equal(await status, 499);
    });

  for (const line of ['Connection: keep-alive', 'Connection: close'])
    it(`returns the status of a response that the client has read, with ${line}`, async () => {
      const { handler, status } = watch((_req, res) => res.writeHead(404).end(large));
      const { port } = await servers.http(handler);
      const socket = connect(port, '127.0.0.1');
      socket.resume().write(head('/', line));
      assert.equal(await status, 404);
      socket.destroy();
    });

  it('returns the status of a response that was sent before the server closed the connection', async () => {
    const { handler, status } = watch((req, res) => {
      res.writeHead(404).end('x');
      req.socket.destroy();
    });
    const { port } = await servers.http(handler);
    assert.match(await sendRaw(port, head('/')), / 404 /);
    assert.equal(await status, 404);
  });

  it('returns 499 for a response that ends after the client has disconnected, but before it closes', async () => {
    const { handler, status } = watch((req, res) => {
      // Node closes the connection of a client that has ended its side.
      req.socket.once('finish', () => setImmediate(() => res.end('x')));
    });
    const { port } = await servers.http(handler);
    connect(port, '127.0.0.1').end(head('/'));
    assert.equal(await status, 499);
  });

  it('returns 499 for each pipelined response when the client disconnects, and each closes once', async () => {
    const count = 3;
    const [allStarted, allClosed] = [createDeferred(), createDeferred()];
    const statuses: number[] = [];
    let started = 0;
    const handler: RequestListener = (_req, res) => {
      started += 1;
      if (started === count) allStarted.resolve();
      res.on('close', () => {
        if (statuses.push(finalStatus(res)) === count) setImmediate(allClosed.resolve);
      });
    };
    const { port } = await servers.http(handler);
    const socket = connect(port, '127.0.0.1');
    socket.write(head('/').repeat(count));
    await allStarted.promise;
    socket.destroy();
    await allClosed.promise;
    assert.deepEqual(statuses, Array(count).fill(499));
  });

  it('returns 101 for an upgraded connection, even if it is reset', async () => {
    const { handler, status } = watch((req) => upgradeOf(req)?.accept('echo').resume());
    const server = createServer(handler);
    const { port } = await servers.listen(server);
    server.on('upgrade', createUpgrades(() => true).listener(handler));
    const socket = connect(port, '127.0.0.1');
    socket.write(head('/', 'Connection: Upgrade', 'Upgrade: echo'));
    await once(socket, 'data');
    socket.resetAndDestroy();
    assert.equal(await status, 101);
  });
});
