/** Bodies on their way to a service, in every framing that HTTP knows and in some that it does not. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Context, Middleware } from 'koa';
import supertest from 'supertest';
import { serveHttp } from '#http';
import { createRequestBody } from '../../src/proxy/request-body.ts';
import { remote, startEdge } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { createSignal } from '../support/waiting.ts';
import { httpLimits } from '../support/wire/http-limits.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

const bodyBytesMax = 1000;

const statusOf = (answer: string) => Number(answer.split(' ')[1]);

function chunked(...chunks: readonly string[]): string {
  return [...chunks, ''].map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('');
}

describe('the request body', () => {
  const servers = testServers();

  async function setUp(inside: readonly Middleware[] = []) {
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, { bodyBytesMax, inside, targets: { hotel: remote(upstream) } });
    return { upstream, edge };
  }

  /** `length`: what the service reads of it; bodies that come in chunks may be counted on the way, and `some` takes both. */
  interface Arrival {
    readonly length?: string;
    readonly some?: string;
  }

  function check(line: string, headers: readonly string[], body: string, { length, some = '' }: Arrival) {
    it(`of ${line} with ${headers.join(', ') || 'no headers'} arrives as ${JSON.stringify(some)}`, async () => {
      const { upstream, edge } = await setUp();
      const answer = await sendRaw(edge.port, rawRequest(`${line} /v1/hotels/x`, headers, body));
      assert.equal(statusOf(answer), 200);
      const reached = upstream.only();
      const { 'content-length': told, 'transfer-encoding': coding } = reached.headers;
      assert.equal(reached.body, some);
      if (coding === undefined) assert.equal(told, some === '' ? length : String(some.length));
      else assert.deepEqual([coding, told], ['chunked', undefined]);
    });
  }

  for (const method of ['GET', 'HEAD', 'DELETE', 'OPTIONS']) {
    check(method, [], '', {});
    check(method, ['Content-Length: 0'], '', {});
  }
  for (const method of ['POST', 'PUT', 'PATCH']) {
    check(method, [], '', { length: '0' });
    check(method, ['Content-Length: 0'], '', { length: '0' });
  }
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'GET']) {
    check(method, ['Content-Length: 5'], 'hello', { some: 'hello' });
    check(method, ['Transfer-Encoding: chunked'], chunked('hel', 'lo'), { some: 'hello' });
  }
  check('POST', ['Transfer-Encoding: chunked'], chunked(), { length: '0' });
  check('GET', ['Transfer-Encoding: chunked'], chunked(), {});
  check('POST', ['Content-Length: 5', 'Connection: content-length'], 'hello', { some: 'hello' });

  it('arrives byte for byte', async () => {
    const { upstream, edge } = await setUp();
    const bytes = Buffer.from(Array.from({ length: 512 }, (_, index) => index % 256));
    await supertest(edge.origin).post('/v1/hotels').send(bytes).expect(200);
    assert.equal(upstream.only().body, bytes.toString('latin1'));
  });

  it('is asked for when the client waits for 100 Continue, and the service does not hear of that', async () => {
    const { upstream, edge } = await setUp();
    const head = rawRequest('POST /v1/hotels', ['Content-Length: 5', 'Expect: 100-continue']);
    const answer = await sendRaw(edge.port, head, 'hello');
    assert.match(answer, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
    assert.equal(upstream.only().headers['expect'], undefined);
    assert.equal(upstream.only().body, 'hello');
  });

  it('is not asked for when nobody can take it', async () => {
    const { origin } = await servers.refusing();
    const targets = { hotel: { kind: 'remote', origins: () => [origin], path: '' } } as const;
    const { listener: handler } = await startEdge(servers, { targets });
    const front = await serveHttp({ ...httpLimits, handler });
    servers.later(() => front.close(0));
    const answer = await sendRaw(
      front.port,
      rawRequest('POST /v1/hotels', ['Content-Length: 5', 'Expect: 100-continue']),
    );
    assert.equal(statusOf(answer), 503);
  });

  it('is refused in a transfer coding that we cannot undo', async () => {
    const { upstream, edge } = await setUp();
    const head = rawRequest('POST /v1/hotels', ['Transfer-Encoding: gzip, chunked'], chunked('hello'));
    assert.equal(statusOf(await sendRaw(edge.port, head)), 400);
    assert.equal(upstream.reached.length, 0);
  });

  it('cannot smuggle a second request in', async () => {
    const { upstream, edge } = await setUp();
    const smuggled = 'GET /v1/hotels/secret HTTP/1.1\r\nHost: x\r\n\r\n';
    for (const headers of [
      ['Content-Length: 4', 'Transfer-Encoding: chunked'],
      ['Content-Length: 4', 'Content-Length: 5'],
      ['Transfer-Encoding: identity'],
      ['Transfer-Encoding : chunked'],
    ]) {
      const answer = await sendRaw(edge.port, rawRequest('POST /v1/hotels', headers, `0\r\n\r\n${smuggled}`));
      assert.equal(statusOf(answer), 400, headers.join());
    }
    assert.equal(upstream.reached.length, 0);
  });
});

describe('a request body that is too large', () => {
  const servers = testServers();

  function checkTooLarge(answer: string) {
    assert.equal(statusOf(answer), 413);
    assert.match(answer, /\r\nConnection: close\r\n/i);
    const body = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4));
    assert.deepEqual(body, {
      code: 413,
      message: '413: Payload Too Large',
      detail: `The body may have ${bodyBytesMax} bytes at most.`,
    });
  }

  it('by its own account never reaches the service', async () => {
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, { bodyBytesMax, targets: { hotel: remote(upstream) } });
    const body = 'x'.repeat(bodyBytesMax + 1);
    checkTooLarge(
      await sendRaw(edge.port, rawRequest('POST /v1/hotels', [`Content-Length: ${body.length}`, 'Accept: */*'], body)),
    );
    assert.equal(upstream.reached.length, 0);
  });

  it('as it turns out on the way breaks the exchange with the service', async () => {
    const [reached, broken] = [createSignal(), createSignal()];
    const upstream = await servers.http((req) => {
      req.on('error', broken.give).once('data', reached.give);
    });
    const edge = await startEdge(servers, { bodyBytesMax, targets: { hotel: remote(upstream) } });
    const socket = connect(edge.port, '127.0.0.1').setEncoding('latin1');
    const chunk = chunked('x'.repeat(600)).slice(0, -'0\r\n\r\n'.length);
    socket.write(rawRequest('POST /v1/hotels', ['Transfer-Encoding: chunked'], chunk));
    await reached.given;
    socket.write(chunk);
    checkTooLarge(await text(socket));
    await broken.given;
  });

  it('is told so also to a client that goes on sending', async () => {
    const upstream = await servers.http((req) => void req.resume());
    const edge = await startEdge(servers, { bodyBytesMax, targets: { hotel: remote(upstream) } });
    const parts = Array.from({ length: 40 }, () => chunked('x'.repeat(60_000)).slice(0, -5));
    checkTooLarge(
      await sendRaw(edge.port, rawRequest('POST /v1/hotels', ['Transfer-Encoding: chunked']), ...parts, chunked()),
    );
  });

  it('passes at exactly the limit', async () => {
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, { bodyBytesMax, targets: { hotel: remote(upstream) } });
    const body = 'x'.repeat(bodyBytesMax);
    await supertest(edge.origin).post('/v1/hotels').send(Buffer.from(body)).expect(200);
    await sendRaw(edge.port, rawRequest('POST /v1/hotels', ['Transfer-Encoding: chunked'], chunked(body)));
    assert.deepEqual(
      upstream.reached.map((one) => one.body.length),
      [bodyBytesMax, bodyBytesMax],
    );
  });
});

describe('a request body whose exchange is over', () => {
  it('is read to its end and dropped, while the request itself stays whole', async () => {
    const req = Object.assign(new PassThrough(), { headers: { 'content-length': '200005' } });
    const body = createRequestBody({ req } as unknown as Context, { bytesMax: 300_000, idleTimeoutMs: 0 });
    assert.ok(body?.content instanceof Readable);
    assert.ok(!body.hasBegun());
    body.content.read(0);
    assert.ok(body.hasBegun() && body.awaitsClient());
    req.write(Buffer.alloc(200_000));
    await once(body.content, 'readable');
    assert.ok(req.isPaused(), 'no more is taken than the service takes');
    assert.ok(!body.awaitsClient());
    await once(body.content.destroy(), 'close');
    req.end('world');
    await once(req, 'end');
    assert.equal(req.errored, null);
  });
});

describe('a request body that a host app has read', () => {
  const servers = testServers();

  async function setUp(rawBody: unknown) {
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, {
      bodyBytesMax,
      targets: { hotel: remote(upstream) },
      inside: [
        async (ctx, next) => {
          for await (const _ of ctx.req);
          Object.assign(ctx.request, { rawBody });
          return next();
        },
      ],
    });
    return { upstream, edge };
  }

  async function send(rawBody: unknown, headers: Readonly<Record<string, string>> = {}, body = '{"a":1}') {
    const { upstream, edge } = await setUp(rawBody);
    const request = supertest(edge.origin).post('/v1/hotels').set('Content-Type', 'application/json').set(headers);
    return { answer: await request.send(body), upstream };
  }

  it('is found again in rawBody', async () => {
    for (const rawBody of ['{"a":1}', Buffer.from('{"a":1}')]) {
      const { answer, upstream } = await send(rawBody);
      assert.equal(answer.status, 200);
      assert.equal(upstream.only().body, '{"a":1}');
      assert.equal(upstream.only().headers['content-length'], '7');
    }
  });

  function checkLost(why: string, ...[rawBody, headers, body]: Parameters<typeof send>) {
    it(`is lost, and the operator is told, when ${why}`, async () => {
      const { answer, upstream } = await send(rawBody, headers, body);
      assert.equal(answer.status, 500);
      assert.equal(answer.body.code, 500);
      assert.equal(upstream.reached.length, 0);
    });
  }

  checkLost('the parser kept nothing', undefined);
  checkLost('the parser kept something else', { a: 1 });
  checkLost('the parser unpacked it', '{"a":1}', { 'Content-Encoding': 'gzip' });
  checkLost('the parser decoded it to other bytes', 'Zoë', {}, 'Zoe');

  it('is refused when it is too large', async () => {
    const { edge, upstream } = await setUp('x'.repeat(bodyBytesMax + 1));
    const request = rawRequest('POST /v1/hotels', ['Transfer-Encoding: chunked'], chunked('{"a":1}'));
    assert.equal(statusOf(await sendRaw(edge.port, request)), 413);
    assert.equal(upstream.reached.length, 0);
  });
});
