/** Forwarded request bodies, in every valid HTTP framing and in some invalid ones. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Context, Middleware } from 'koa';
import supertest from 'supertest';
import { mappingDefaults } from '#config';
import { type BodyWatcher, createRequestBody, type RequestBodyOptions } from '../../src/proxy/request-body.ts';
import { startEdge } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { createDeferred } from '../support/waiting.ts';
import { startHttp } from '../support/wire/http-server.ts';
import { bodyOf, rawRequest, sendRaw, statusOf } from '../support/wire/raw-client.ts';

const servers = testServers();

const bodyBytesMax = 1000;

async function setUp(inside: readonly Middleware[] = []) {
  const upstream = await startUpstream(servers);
  const edge = await startEdge(servers, { bodyBytesMax, inside, upstream });
  const post = (headers: readonly string[], body = '') =>
    sendRaw(edge.port, rawRequest('POST /v1/hotels', headers, body));
  return { upstream, edge, post };
}

const isChunked = 'Transfer-Encoding: chunked';

function chunked(...chunks: readonly string[]): string {
  return [...chunks, ''].map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('');
}

describe('a request body', () => {
  /** `length` is the Content-Length that the service receives. It may receive a chunked body in chunks instead. */
  function check(line: string, headers: readonly string[], body: string, expected: string, length?: string) {
    it(`of ${line} with ${headers.join(', ') || 'no headers'} arrives as "${expected}"`, async () => {
      const { upstream, edge } = await setUp();
      assert.equal(statusOf(await sendRaw(edge.port, rawRequest(`${line} /v1/hotels/x`, headers, body))), 200);
      const reached = upstream.only();
      const { 'content-length': received, 'transfer-encoding': coding } = reached.headers;
      assert.equal(reached.body, expected);
      if (coding === undefined) assert.equal(received, length);
      else assert.deepEqual([coding, received, expected], ['chunked', undefined, 'hello']);
    });
  }

  for (const method of ['GET', 'HEAD', 'DELETE', 'OPTIONS']) check(method, ['Content-Length: 0'], '', '');
  for (const method of ['POST', 'PUT', 'PATCH']) check(method, [], '', '', '0');
  for (const method of ['POST', 'DELETE', 'GET']) {
    check(method, ['Content-Length: 5'], 'hello', 'hello', '5');
    check(method, [isChunked], chunked('hel', 'lo'), 'hello', '5');
  }
  check('GET', [], '', '');
  check('GET', [isChunked], chunked(), '');
  check('POST', [isChunked], chunked(), '', '0');
  check('POST', ['Content-Length: 0'], '', '', '0');
  check('POST', ['Content-Length: 5', 'Connection: content-length'], 'hello', 'hello', '5');

  it('arrives byte for byte', async () => {
    const { upstream, edge } = await setUp();
    const bytes = Buffer.from(Array.from({ length: 512 }, (_, index) => index % 256));
    await supertest(edge.origin).post('/v1/hotels').send(bytes).expect(200);
    assert.equal(upstream.only().body, bytes.toString('latin1'));
  });

  const expectContinue = ['Content-Length: 5', 'Expect: 100-continue'];

  it('is requested with 100 Continue from a client that expects it, but Expect is not forwarded', async () => {
    const { upstream, post } = await setUp();
    assert.match(await post(expectContinue, 'hello'), /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
    assert.equal(upstream.only().headers['expect'], undefined);
    assert.equal(upstream.only().body, 'hello');
  });

  it('is not requested with 100 Continue when it is too large', async () => {
    const { listener: handler } = await startEdge(servers, { upstream: await servers.refusing(), bodyBytesMax });
    const front = await startHttp(servers, { handler });
    const headers = ['Content-Length: 5000', 'Expect: 100-continue'];
    assert.equal(statusOf(await sendRaw(front.port, rawRequest('POST /v1/hotels', headers))), 413);
  });

  it('cannot smuggle a second request by ambiguous or unknown framing', async () => {
    const { upstream, post } = await setUp();
    const smuggled = 'GET /v1/hotels/secret HTTP/1.1\r\nHost: x\r\n\r\n';
    for (const headers of [
      ['Content-Length: 4', isChunked],
      ['Content-Length: 4', 'Content-Length: 5'],
      ['Transfer-Encoding: identity'],
      ['Transfer-Encoding : chunked'],
      ['Transfer-Encoding: gzip, chunked'],
    ])
      assert.equal(statusOf(await post(headers, `0\r\n\r\n${smuggled}`)), 400, headers.join());
    assert.equal(upstream.reached.length, 0);
  });
});

describe('the size limit of a request body', () => {
  function checkTooLarge(response: string, bytesMax = bodyBytesMax) {
    assert.match(response, /^HTTP\/1\.1 413 Content Too Large\r\n/);
    assert.match(response, /\r\nConnection: close\r\n/i);
    assert.deepEqual(JSON.parse(bodyOf(response)), {
      code: 413,
      message: '413: Content Too Large',
      detail: `The body may have at most ${bytesMax} bytes.`,
    });
  }

  it('rejects a Content-Length that exceeds it without calling the service', async () => {
    const { upstream, post } = await setUp();
    const body = 'x'.repeat(bodyBytesMax + 1);
    checkTooLarge(await post([`Content-Length: ${body.length}`, 'Accept: */*'], body));
    assert.equal(upstream.reached.length, 0);
  });

  it('aborts the request to the service when the chunks exceed it', async () => {
    const [reached, broken] = [createDeferred(), createDeferred()];
    const upstream = await servers.http((req) => {
      req.on('error', broken.resolve).once('data', reached.resolve);
    });
    const edge = await startEdge(servers, { bodyBytesMax: 100_000, upstream });
    const socket = connect(edge.port, '127.0.0.1').setEncoding('latin1');
    const chunk = chunked('x'.repeat(65_536)).slice(0, -'0\r\n\r\n'.length);
    socket.write(rawRequest('POST /v1/hotels', [isChunked], chunk));
    await reached.promise;
    socket.write(chunk);
    checkTooLarge(await text(socket), 100_000);
    await broken.promise;
  });

  it('applies even when the client keeps sending', async () => {
    const { post } = await setUp();
    const parts = Array.from({ length: 40 }, () => chunked('x'.repeat(60_000)).slice(0, -5));
    checkTooLarge(await post([isChunked], parts.join('') + chunked()));
  });

  it('allows a body of exactly that size', async () => {
    const { upstream, post } = await setUp();
    const body = 'x'.repeat(bodyBytesMax);
    for (const [header, sent] of [
      [`Content-Length: ${bodyBytesMax}`, body],
      [isChunked, chunked(body)],
    ] as const)
      assert.equal(statusOf(await post([header], sent)), 200);
    for (const reached of upstream.reached) assert.equal(reached.body.length, bodyBytesMax);
  });
});

/** Creates a request whose body the test writes, and the RequestBody for it. */
function openBody(length: number, options: Partial<RequestBodyOptions> = {}) {
  const req = Object.assign(new PassThrough(), { headers: { 'content-length': String(length) } });
  const body = createRequestBody({ req } as unknown as Context, { idleTimeoutMs: 0, ...options });
  assert.ok(body !== undefined);
  return { req, body };
}

const unwatched: BodyWatcher = { onEnd() {}, onIdle() {}, onRefused() {}, isCrowded: () => false, paceMin: () => 0 };

it('the rest of a request body is read and dropped after the call, without destroying the request', async () => {
  const { req, body } = openBody(400_000);
  const buffered = createDeferred();
  body.buffer(buffered.resolve);
  req.write(Buffer.alloc(200_000));
  await buffered.promise;
  assert.ok(req.isPaused(), 'reading pauses until the body is sent');
  assert.ok(body.isRepeatable() && !body.isWhole() && !body.hasArrived());
  const unsent = body.open();
  assert.ok(unsent instanceof Readable);
  await once(unsent.destroy(), 'close');
  const content = body.open();
  assert.ok(content instanceof Readable && body.isRepeatable());
  content.read(0);
  assert.ok(!body.isRepeatable());
  await once(content.destroy(), 'close');
  req.end(Buffer.alloc(200_000));
  await once(req, 'end');
  assert.equal(req.errored, null);
});

describe('a slow request body', () => {
  it('is rejected only once slots are scarce', async () => {
    const { req, body } = openBody(300, { slowAfterMs: 20 });
    const [checked, rejected] = [createDeferred(), createDeferred()];
    let checks = 0;
    body.watch({
      ...unwatched,
      onIdle: (isClientIdle) => void (isClientIdle && rejected.resolve()),
      paceMin() {
        checks += 1;
        if (checks === 2) checked.resolve();
        return checks > 2 ? 1024 : 0;
      },
    });
    body.buffer(() => {});
    req.write('x');
    await checked.promise;
    await rejected.promise;
    assert.equal(checks, 3);
    body.discard();
  });

  it('is rejected even if its beginning was fast, but not while the service is the slow side', async () => {
    const { req, body } = openBody(200_000, { slowAfterMs: 20 });
    const [buffered, rejected] = [createDeferred(), createDeferred()];
    let isRejected = false;
    body.watch({
      ...unwatched,
      paceMin: () => 1024,
      onIdle() {
        isRejected = true;
        rejected.resolve();
      },
    });
    body.buffer(buffered.resolve);
    req.write(Buffer.alloc(70_000));
    await buffered.promise;
    await sleep(60);
    assert.equal(isRejected, false);
    (body.open() as Readable).resume();
    await rejected.promise;
    body.discard();
  });

  it('is not sent before 64 KiB have arrived while slots are scarce', async () => {
    const { req, body } = openBody(300);
    const buffered = createDeferred();
    let checks = 0;
    body.watch({
      ...unwatched,
      isCrowded() {
        checks += 1;
        return checks < 3;
      },
    });
    body.buffer(buffered.resolve);
    req.write('x');
    await buffered.promise;
    assert.equal(checks, 3);
    body.discard();
  });

  it('times out even if none of it arrives', async () => {
    const { body } = openBody(300, { idleTimeoutMs: 20 });
    const isClientIdle = new Promise((resolve) => body.watch({ ...unwatched, onIdle: resolve }));
    body.buffer(() => {});
    assert.equal(await isClientIdle, true);
    body.discard();
  });

  it('times out after a full idle period, however long it has been arriving', async () => {
    const idleTimeoutMs = 60;
    const { req, body } = openBody(300, { idleTimeoutMs });
    const idle = createDeferred();
    let [wroteAtMs, idleAtMs] = [0, 0];
    body.watch({
      ...unwatched,
      onIdle() {
        idleAtMs = performance.now();
        idle.resolve();
      },
    });
    body.buffer(() => {});
    for (let part = 0; part < 20 && idleAtMs === 0; part += 1) {
      wroteAtMs = performance.now();
      req.write('x');
      await sleep(5);
    }
    await idle.promise;
    body.discard();
    // A timer may fire a millisecond early.
    assert.ok(idleAtMs - wroteAtMs >= idleTimeoutMs - 1, `${idleAtMs - wroteAtMs} ms`);
  });

  it('occupies no slot, so that other requests are served', async () => {
    const upstream = await startUpstream(servers);
    const circuitBreakers = { ...mappingDefaults.circuitBreakers, maxRequests: 2 };
    const edge = await startEdge(servers, { upstream, mapping: { circuitBreakers } });
    const sockets = Array.from({ length: 8 }, () => connect(edge.port, '127.0.0.1'));
    const head = rawRequest('POST /v1/hotels', ['Content-Length: 4'], 'a');
    await Promise.all(sockets.map((socket) => new Promise<void>((sent) => socket.write(head, () => sent()))));
    await supertest(edge.origin).get('/v1/hotels').expect(200);
    const [first, ...others] = sockets as [Socket, ...Socket[]];
    first.write('bcd');
    assert.match(await text(first), /^HTTP\/1\.1 200 /);
    for (const socket of others) socket.destroy();
    assert.deepEqual(
      upstream.reached.map(({ method, body }) => method + body),
      ['GET', 'POSTabcd'],
    );
  });
});

it('a request body that arrives byte by byte while the service does not read it is merged, and loses nothing at its end', async () => {
  const { req, body } = openBody(65_000);
  body.watch(unwatched);
  const first = createDeferred();
  body.buffer(first.resolve);
  req.write('x');
  await first.promise;
  const stream = body.open() as Readable;
  const taken = once(stream, 'data');
  await taken;
  stream.pause();
  for (let count = 0; count < 60_000; count += 1) req.write('x');
  req.end();
  await once(req, 'end');
  let chunks = 0;
  let bytes = 0;
  stream.on('data', ({ length }: Buffer) => {
    chunks += 1;
    bytes += length;
  });
  stream.resume();
  await once(stream, 'end');
  assert.equal(bytes, 60_000);
  assert.ok(chunks < 100, `${chunks}`);
});

it('a request body of up to 64 KiB is sent again unchanged', async () => {
  const reset = await servers.tcp((socket) => void socket.once('data', () => socket.resetAndDestroy()));
  const upstream = await startUpstream(servers);
  const retryPolicy = { retryOn: ['reset'] as const, numRetries: 1, perTryTimeoutMs: undefined, statusCodes: [] };
  const origins = [reset.origin, upstream.origin];
  const targets = { hotel: { kind: 'remote', origins: () => origins, path: '' } as const };
  const edge = await startEdge(servers, { targets, mapping: { retryPolicy } });
  const body = 'x'.repeat(60_000);
  for (let round = 0; round < 2; round += 1) await supertest(edge.origin).put('/v1/hotels').send(body).expect(200);
  for (const reached of upstream.reached) assert.equal(reached.body, body);
});

describe('a request body that a host app has read', () => {
  const json = '{"a":1}';

  async function send(rawBody: unknown, headers: readonly string[] = [], body = json) {
    const { upstream, post } = await setUp([
      async (ctx, next) => {
        for await (const _ of ctx.req);
        Object.assign(ctx.request, { rawBody });
        return next();
      },
    ]);
    const framing = headers.includes(isChunked) ? [] : [`Content-Length: ${body.length}`];
    return { upstream, response: await post([...framing, ...headers], body) };
  }

  it('is read from rawBody', async () => {
    for (const rawBody of [json, Buffer.from(json)]) {
      const { response, upstream } = await send(rawBody);
      assert.equal(statusOf(response), 200);
      assert.equal(upstream.only().body, json);
      assert.equal(upstream.only().headers['content-length'], '7');
    }
  });

  function checkRefused(why: string, status: number, ...[rawBody, headers, body]: Parameters<typeof send>) {
    it(`causes a ${status} when the parser ${why}`, async () => {
      const { response, upstream } = await send(rawBody, headers, body);
      assert.equal(statusOf(response), status);
      assert.equal(JSON.parse(bodyOf(response)).code, status);
      assert.equal(upstream.reached.length, 0);
    });
  }

  checkRefused('kept nothing', 500, undefined);
  checkRefused('kept something else', 500, { a: 1 });
  checkRefused('decompressed it', 500, json, ['Content-Encoding: gzip']);
  checkRefused('decoded it to other bytes', 500, 'Zoë', [], 'Zoe');
  checkRefused('kept more than the limit', 413, 'x'.repeat(bodyBytesMax + 1), [isChunked], chunked(json));
});
