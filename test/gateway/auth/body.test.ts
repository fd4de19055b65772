/** include_body: the auth service gets the beginning of the body, and the service gets all of it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { AuthService } from '#config';
import { isolate } from '#http';
import { authRecordOf, type EdgeOptions, remote, startEdge } from '../../support/edge.ts';
import { testServers } from '../../support/serve.ts';
import { startUpstream } from '../../support/upstream.ts';
import { createSignal } from '../../support/waiting.ts';
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

  it('gets the whole body and its type, and so does the service', async () => {
    const { auth, upstream, post } = await setUp(upTo(5));
    assert.equal((await post('hello', { 'Content-Type': 'a/b' })).status, 200);
    assert.equal(auth.only().body, 'hello');
    assert.equal(auth.only().headers['content-type'], 'a/b');
    assert.equal(auth.only().headers['x-envoy-auth-partial-body'], 'false');
    assert.equal(upstream.only().body, 'hello');
    assert.equal(upstream.only().headers['x-envoy-auth-partial-body'], undefined);
  });

  it('gets the beginning of a larger body with allow_partial, and the service gets it whole', async () => {
    const { auth, upstream, post } = await setUp(upTo(3, true));
    assert.equal((await post('hello')).status, 200);
    assert.deepEqual([auth.only().body, auth.only().headers['x-envoy-auth-partial-body']], ['hel', 'true']);
    assert.equal(upstream.only().body, 'hello');
  });

  it('is not asked about a larger body without allow_partial', async () => {
    const { auth, upstream, post } = await setUp(upTo(4));
    const answer = await post('hello');
    assert.equal(answer.status, 413);
    assert.match(String(Object(await answer.json()).detail), /\b4 bytes\b/);
    assert.deepEqual([auth.reached.length, upstream.reached.length], [0, 0]);
  });

  it('is not asked about a body announced as larger, which is not awaited', async () => {
    const { auth, edge } = await setUp(upTo(4));
    const answer = await sendRaw(edge.port, rawRequest('POST /v1/hotels', ['Content-Length: 5']));
    assert.match(answer, /^HTTP\/1\.1 413 /);
    assert.equal(auth.reached.length, 0);
  });

  it('is asked about a request without a body', async () => {
    const { auth, edge } = await setUp(upTo(4));
    await fetch(`${edge.origin}/v1/hotels`);
    assert.deepEqual([auth.only().body, auth.only().headers['x-envoy-auth-partial-body']], ['', 'false']);
  });

  /** In chunks of its own, of a length that nobody is told. */
  const chunked = (...chunks: readonly string[]) =>
    `${chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('')}0\r\n\r\n`;
  const postChunked = rawRequest('POST /v1/hotels', ['Transfer-Encoding: chunked']);

  it('gets a body of unknown length', async () => {
    const { auth, upstream, edge } = await setUp(upTo(10));
    assert.match(await sendRaw(edge.port, postChunked + chunked('hel', 'lo')), /^HTTP\/1\.1 200 /);
    assert.deepEqual([auth.only().body, upstream.only().body], ['hello', 'hello']);
  });

  it('gets an empty body of unknown length, and so does the service', async () => {
    for (const port of [undefined, () => ({ outcome: 'allow', headers: {} }) as const]) {
      const { upstream, edge } = await setUp(upTo(10), 200, port && { authPort: port });
      assert.match(await sendRaw(edge.port, postChunked + chunked()), /^HTTP\/1\.1 200 /);
      assert.equal(upstream.only().body, '');
    }
  });

  it('is not asked about a body of unknown length that proves larger', async () => {
    const { auth, edge } = await setUp(upTo(4));
    assert.match(await sendRaw(edge.port, postChunked + chunked('hel', 'lo')), /^HTTP\/1\.1 413 /);
    assert.equal(auth.reached.length, 0);
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
    const [answer] = await once(client.setEncoding('latin1'), 'data');
    assert.match(String(answer), /^HTTP\/1\.1 200 /);
    assert.deepEqual([auth.only().body, upstream.only().body], ['hello', 'hello']);
    client.destroy();
  });

  it('leaves the body for a service of this process', async () => {
    const read = isolate(async (ctx) => {
      const chunks: Buffer[] = [];
      for await (const chunk of ctx.req) chunks.push(chunk as Buffer);
      ctx.body = Buffer.concat(chunks).toString();
    });
    const auth = await startUpstream(servers);
    const { post } = await setUp(upTo(3, true), 200, { services: { hotel: read }, targets: { auth: remote(auth) } });
    assert.equal(await (await post('hello')).text(), 'hello');
    assert.equal(await (await post('')).text(), '');
  });

  it('leaves the connection usable after a refusal', async () => {
    const { edge } = await setUp(upTo(3, true), 401);
    const post = rawRequest('POST /v1/hotels', ['Content-Length: 400000'], 'x'.repeat(400_000));
    const [, ...answers] = (await sendRaw(edge.port, post.replace('Connection: close\r\n', '') + post)).split(
      'HTTP/1.1 ',
    );
    assert.deepEqual(
      answers.map((answer) => answer.slice(0, 3)),
      ['401', '401'],
    );
  });

  it('applies the same bound in this process', async () => {
    const asked: string[] = [];
    const { upstream, post } = await setUp(upTo(4), 200, {
      authPort({ method }) {
        asked.push(method);
        return { outcome: 'allow', headers: {} };
      },
    });
    assert.equal((await post('hello')).status, 413);
    assert.deepEqual(asked, []);
    assert.equal((await post('hell')).status, 200);
    assert.equal(upstream.only().body, 'hell');
  });

  it('is not asked when the client disconnects', async () => {
    const finished = createSignal();
    const { auth, upstream, edge } = await setUp(upTo(10), 200, {
      host: [(_ctx, next) => next().finally(finished.give)],
    });
    const leaving = connect(edge.port, '127.0.0.1');
    leaving.write(rawRequest('POST /v1/hotels', ['Content-Length: 5'], 'he'));
    await once(leaving, 'connect');
    leaving.destroy();
    await finished.given;
    assert.deepEqual([auth.reached.length, upstream.reached.length], [0, 0]);
    assert.deepEqual(edge.log, []);
  });
});
