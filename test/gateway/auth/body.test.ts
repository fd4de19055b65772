/** include_body: the auth service receives the beginning of the body, and the service receives all of it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import type { AuthService } from '#config';
import { isolate } from '#http';
import { createAuthBodyReader } from '../../../src/gateway/auth/body.ts';
import { authRecordOf, type EdgeOptions, remote, startEdge } from '../../support/edge.ts';
import { testServers } from '../../support/serve.ts';
import { startUpstream } from '../../support/upstream.ts';
import { createDeferred } from '../../support/waiting.ts';
import { createReadChunks, sendByteByByte } from '../../support/wire/byte-by-byte.ts';
import { speak } from '../../support/wire/peer.ts';
import { rawRequest, sendRaw } from '../../support/wire/raw-client.ts';

describe('an auth service with include_body', () => {
  const servers = testServers();

  async function setUp(includeBody: AuthService['includeBody'], status = 200, options: EdgeOptions = {}) {
    const auth = await startUpstream(servers, (res) => res.writeHead(status).end());
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, {
      authService: authRecordOf({ includeBody }),
      targets: { auth: remote(auth), hotel: remote(upstream) },
      ...options,
    });
    const post = (body: string, headers: Record<string, string> = {}) =>
      fetch(`${edge.origin}/v1/hotels`, { method: 'POST', body, headers });
    return { auth, upstream, edge, post };
  }

  const upTo = (maxBytes: number, allowPartial = false) => ({ maxBytes, allowPartial });

  /** `expected`: the auth service's body, whether it is only a part, and the service's body. Empty for a 413. */
  function check(what: string, include: AuthService['includeBody'], send: string, ...expected: string[]) {
    it(what, async () => {
      const { auth, upstream, edge } = await setUp(include);
      const response = await sendRaw(edge.port, send);
      assert.equal(response.slice(9, 12), expected.length === 0 ? '413' : '200');
      const asked = auth.reached.flatMap(({ body, headers }) => [body, headers['x-envoy-auth-partial-body']]);
      assert.deepEqual([...asked, ...upstream.reached.map(({ body }) => body)], expected);
    });
  }

  const chunked = (...chunks: readonly string[]) =>
    rawRequest(
      'POST /v1/hotels',
      ['Transfer-Encoding: chunked'],
      `${chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('')}0\r\n\r\n`,
    );
  const announced = (body: string) => rawRequest('POST /v1/hotels', ['Content-Length: 5'], body);

  check('receives the whole body, and so does the service', upTo(5), announced('hello'), 'hello', 'false', 'hello');
  check('receives the beginning of a larger body', upTo(3, true), announced('hello'), 'hel', 'true', 'hello');
  check('is not called for a larger body without allow_partial', upTo(4), announced('hello'));
  check('is not called for a larger Content-Length, without waiting for the body', upTo(4), announced(''));
  check('is called for a request without a body', upTo(4), rawRequest('GET /v1/hotels'), '', 'false', '');
  check('receives a body of unknown length', upTo(10), chunked('hel', 'lo'), 'hello', 'false', 'hello');
  check('receives an empty body of unknown length', upTo(10), chunked(), '', 'false', '');
  check('is not called for a body of unknown length that turns out to be larger', upTo(4), chunked('hel', 'lo'));

  it('receives the type of the body, and the service receives no header about a partial body', async () => {
    const { auth, upstream, post } = await setUp(upTo(5));
    await post('hello', { 'Content-Type': 'a/b' });
    assert.equal(auth.only().headers['content-type'], 'a/b');
    assert.equal(upstream.only().headers['x-envoy-auth-partial-body'], undefined);
  });

  it('reports its bound in the detail of a 413', async () => {
    const { post } = await setUp(upTo(4));
    assert.match(String(Object(await (await post('hello')).json()).detail), /\b4 bytes\b/);
  });

  it('leaves a large body unchanged', async () => {
    const { auth, upstream, post } = await setUp(upTo(100_000, true));
    const body = Array.from({ length: 60_000 }, (_, index) => String(index)).join(',');
    assert.equal((await post(body)).status, 200);
    assert.ok(auth.only().body === body.slice(0, 100_000));
    assert.ok(upstream.only().body === body);
  });

  it('waits for the rest of a body', async () => {
    const { auth, upstream, edge } = await setUp(upTo(10));
    const client = connect(edge.port, '127.0.0.1');
    client.write(rawRequest('POST /v1/hotels', ['Content-Length: 5'], 'he'));
    await once(client, 'connect');
    client.write('llo');
    const [response] = await once(client.setEncoding('latin1'), 'data');
    assert.match(String(response), /^HTTP\/1\.1 200 /);
    assert.deepEqual([auth.only().body, upstream.only().body], ['hello', 'hello']);
    client.destroy();
  });

  it('retains few buffers for a body that arrives byte by byte', async () => {
    const chunks = createReadChunks();
    const { auth, edge } = await setUp(upTo(300), 200, {
      host: [
        ({ req }, next) => {
          chunks.watch(req);
          return next();
        },
      ],
    });
    const body = 'x'.repeat(300);
    const head = rawRequest('POST /v1/hotels', ['Content-Length: 300']);
    const client = await sendByteByByte(edge.port, head, body, chunks);
    assert.ok(chunks.kept() < 30, `${chunks.kept()} buffers are retained`);
    client.write('x');
    await once(client, 'data');
    assert.equal(auth.only().body, body);
    client.destroy();
  });

  it('leaves the body for a service in this process', async () => {
    const read = isolate(async (ctx) => {
      ctx.body = await text(ctx.req);
    });
    const auth = await startUpstream(servers);
    const { post } = await setUp(upTo(3, true), 200, { services: { hotel: read }, targets: { auth: remote(auth) } });
    assert.equal(await (await post('hello')).text(), 'hello');
    assert.equal(await (await post('')).text(), '');
  });

  it('leaves the connection usable after a denial', async () => {
    const { edge } = await setUp(upTo(3, true), 401);
    const post = rawRequest('POST /v1/hotels', ['Content-Length: 400000'], 'x'.repeat(400_000));
    const responses = await sendRaw(edge.port, post.replace('Connection: close\r\n', '') + post);
    assert.equal(responses.match(/HTTP\/1\.1 401 /g)?.length, 2);
  });

  it('applies the same bound in this process', async () => {
    const asked: string[] = [];
    const { upstream, edge, post } = await setUp(upTo(4), 200, {
      authPort({ method }) {
        asked.push(method);
        return { outcome: 'allow', headers: {} };
      },
    });
    assert.equal((await post('hello')).status, 413);
    assert.deepEqual(asked, []);
    assert.equal((await post('hell')).status, 200);
    assert.match(await sendRaw(edge.port, chunked()), /^HTTP\/1\.1 200 /);
    assert.deepEqual(
      upstream.reached.map(({ body }) => body),
      ['hell', ''],
    );
  });

  it('rejects the body that has been arriving longest when bodies fill the memory', async () => {
    const readBody = createAuthBodyReader(upTo(10), 11);
    let reached = createDeferred();
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, {
      upstream,
      inside: [
        async (ctx, next) => {
          reached.resolve();
          await readBody(ctx);
          return next();
        },
      ],
    });
    const startUpload = async (body: string) => {
      reached = createDeferred();
      const peer = speak(edge.port, rawRequest('POST /v1/hotels', ['Content-Length: 10'], body));
      await reached.promise;
      return peer;
    };
    const slow = await startUpload('123456');
    const other = await startUpload('abcdef');
    await slow.until('HTTP/1.1 503 ');
    slow.socket.destroy();
    other.socket.write('ghij');
    assert.match(await other.closed, /^HTTP\/1\.1 200 /);
    // The bytes of finished requests do not count.
    assert.match(await (await startUpload('0123456789')).closed, /^HTTP\/1\.1 200 /);
    assert.deepEqual(
      upstream.reached.map(({ body }) => body),
      ['abcdefghij', '0123456789'],
    );
  });

  it('counts a body that has arrived until its response is complete', async () => {
    const readBody = createAuthBodyReader(upTo(10), 11);
    const [arrived, decided] = [createDeferred(), createDeferred()];
    const edge = await startEdge(servers, {
      upstream: await startUpstream(servers),
      inside: [
        async (ctx, next) => {
          await readBody(ctx);
          arrived.resolve();
          await decided.promise;
          return next();
        },
      ],
    });
    const first = speak(edge.port, rawRequest('POST /v1/hotels', ['Content-Length: 10'], '0123456789'));
    await arrived.promise;
    const other = rawRequest('POST /v1/hotels', ['Content-Length: 2'], 'ab');
    assert.match(await sendRaw(edge.port, other), /^HTTP\/1\.1 503 /);
    decided.resolve();
    assert.match(await first.closed, /^HTTP\/1\.1 200 /);
  });

  it('does not count the body of a client that left before it was read', async () => {
    const readBody = createAuthBodyReader(upTo(10), 11);
    const hasLeft = createDeferred();
    const wasRead = createDeferred();
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, {
      upstream,
      inside: [
        async (ctx, next) => {
          if (ctx.get('X-Leaves') !== '') {
            ctx.res.once('close', hasLeft.resolve);
            await hasLeft.promise;
          }
          await readBody(ctx).finally(wasRead.resolve);
          return next();
        },
      ],
    });
    const head = ['Content-Length: 10', 'X-Leaves: 1'];
    const leaving = speak(edge.port, rawRequest('POST /v1/hotels', head, '123456'));
    leaving.socket.once('connect', () => leaving.socket.end(() => leaving.socket.destroy()));
    await wasRead.promise;
    const post = rawRequest('POST /v1/hotels', ['Content-Length: 10'], '0123456789');
    assert.match(await sendRaw(edge.port, post), /^HTTP\/1\.1 200 /);
  });

  it('is not called when the client disconnects', async () => {
    const finished = createDeferred();
    const { auth, upstream, edge } = await setUp(upTo(10), 200, {
      host: [(_ctx, next) => next().finally(finished.resolve)],
    });
    const leaving = connect(edge.port, '127.0.0.1');
    leaving.write(rawRequest('POST /v1/hotels', ['Content-Length: 5'], 'he'));
    await once(leaving, 'connect');
    leaving.destroy();
    await finished.promise;
    assert.deepEqual([auth.reached.length, upstream.reached.length], [0, 0]);
    assert.deepEqual(edge.log, []);
  });
});
