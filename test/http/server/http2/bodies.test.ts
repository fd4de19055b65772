/** Bodies of HTTP/2 requests: with and without a length, late, not wanted, and never read. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { type ClientHttp2Session, constants } from 'node:http2';
import { text } from 'node:stream/consumers';
import { announcesBody } from '#http';
import { testServers } from '../../../support/serve.ts';
import { startHttp } from '../../../support/wire/http-server.ts';
import { openHttp2 } from '../../../support/wire/http2-client.ts';
import {
  formatFrame,
  formatPost,
  formatReset,
  formatSettings,
  frameType,
  preface,
} from '../../../support/wire/http2-frames.ts';
import { speak } from '../../../support/wire/peer.ts';

const servers = testServers();

async function open(handler: RequestListener, options = {}) {
  const { port } = await startHttp(servers, { http2: true, handler, ...options });
  const client = openHttp2(`http://127.0.0.1:${port}`);
  servers.later(() => client.session.destroy());
  return client;
}

const post = { ':method': 'POST' };

/** Resolves when the server has read all that was sent before. */
function pinged(session: ClientHttp2Session): Promise<void> {
  return new Promise((resolve) => void session.ping(() => resolve()));
}

/** Responds with the length of the body, and whether it was announced. */
async function measure(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const isAnnounced = announcesBody(req);
  res.end(`${isAnnounced} ${(await text(req)).length} ${req.complete}`);
}

describe('the body of a request of HTTP/2', () => {
  it('needs no length', async () => {
    const { send, start } = await open(measure);
    assert.equal((await send(post, 'x'.repeat(300_000))).body, 'true 300000 true');
    const { stream, response } = start(post);
    for (const chunk of ['a', 'b', 'c']) {
      stream.write(chunk);
      await new Promise(setImmediate);
    }
    stream.end();
    assert.equal((await response).body, 'true 3 true');
  });

  it('is none if the head ends the stream, whatever the method', async () => {
    const { session } = await open(measure);
    for (const method of ['GET', 'POST', 'DELETE']) {
      const stream = session.request({ ':method': method, ':path': '/', ':authority': 'a' }, { endStream: true });
      assert.equal(await text(stream), 'false 0 true');
    }
  });

  it('may be empty, also if its end arrives before it is read', async () => {
    const { start, session } = await open(async (req, res) => {
      // By now the end of the stream has arrived, too.
      await pinged(session);
      await measure(req, res);
    });
    const { stream, response } = start(post);
    stream.end();
    assert.equal((await response).body, 'true 0 true');
  });

  it('with a length of 0 is none', async () => {
    const { send } = await open(measure);
    assert.equal((await send({ ...post, 'content-length': '0' })).body, 'false 0 true');
  });

  it('may have trailers', async () => {
    const { session } = await open(async (req, res) => {
      const body = await text(req);
      res.end(JSON.stringify([body, req.rawTrailers, req.trailers]));
    });
    const stream = session.request({ ...post, ':path': '/', ':authority': 'a' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-check': 'é', 'x-other': '2' }));
    stream.end('body');
    const trailers = { 'x-check': 'é', 'x-other': '2' };
    assert.deepEqual(JSON.parse(await text(stream)), ['body', Object.entries(trailers).flat(), trailers]);
  });

  it('that is shorter than its Content-Length is a PROTOCOL_ERROR of its stream alone', async () => {
    const failure = rejection();
    const { send } = await open((req, res) => {
      if (req.method === 'GET') res.end('fine');
      else failure.of(req);
    });
    const { status, code } = await send({ ...post, 'content-length': 4 }, 'abc');
    assert.deepEqual([status, code], [0, constants.NGHTTP2_PROTOCOL_ERROR]);
    assert.equal(await failure.code, 'ECONNRESET');
    assert.equal((await send()).body, 'fine');
  });

  it('that is longer than its Content-Length ends its connection, and is logged', async () => {
    const failure = rejection();
    const logged: object[] = [];
    const logger = { warn: (fields: object) => void logged.push(fields) };
    const { send, closed } = await open((req) => failure.of(req), { logger });
    assert.equal((await send({ ...post, 'content-length': 2 }, 'abc')).status, 0);
    assert.equal(await failure.code, 'ECONNRESET');
    await closed;
    assert.deepEqual(logged, [{ client: '127.0.0.1', code: 'ERR_HTTP2_ERROR', reason: 'Protocol error' }]);
  });

  it('gets 100 Continue when it is first read, if the client waits for it', async () => {
    const { start } = await open(async (req, res) => {
      if (req.url === '/read') await measure(req, res);
      else res.writeHead(401).end();
    });
    const waiting = { ...post, expect: '100-continue' };
    const read = start({ ...waiting, ':path': '/read' });
    await once(read.stream, 'continue');
    read.stream.end('body');
    const { interim, body } = await read.response;
    assert.deepEqual([interim, body], [[100], 'true 4 true']);
    const refused = await start({ ...waiting, ':path': '/refuse' }).response;
    assert.deepEqual([refused.status, refused.interim], [401, []]);
  });

  it('gets 408 when it is late', async () => {
    const { start, send } = await open(
      (req, res) => {
        if (req.method === 'GET') res.end('fine');
        else void text(req).catch(() => {});
      },
      { headerTimeoutMs: 10, requestTimeoutMs: 20 },
    );
    const { stream, response } = start(post);
    stream.write('a');
    const { status, body, code } = await response;
    assert.deepEqual([status, JSON.parse(body).code, code], [408, 408, constants.NGHTTP2_NO_ERROR]);
    assert.equal((await send()).body, 'fine');
  });

  it('ends a response that has begun with a reset when it is late', async () => {
    const { start, send } = await open(
      (req, res) => {
        if (req.method === 'GET') res.end('fine');
        else res.write('begun');
      },
      { headerTimeoutMs: 10, requestTimeoutMs: 20 },
    );
    const { stream, response } = start(post);
    stream.write('a');
    const { status, body, code } = await response;
    assert.deepEqual([status, body, code], [200, 'begun', constants.NGHTTP2_INTERNAL_ERROR]);
    assert.equal((await send()).body, 'fine');
  });

  it('need not arrive whole: an early response arrives, the client stops sending, and the next request is served', async () => {
    const { start, send } = await open((req, res) => {
      if (req.method === 'GET') res.end('fine');
      else res.writeHead(401).end('x'.repeat(100_000));
    });
    const { stream, response } = start(post);
    const chunk = Buffer.alloc(64 * 1024);
    stream.on('drain', () => void stream.write(chunk));
    for (let written = 0; written < 16; written += 1) stream.write(chunk);
    const { status, body, code } = await response;
    assert.deepEqual([status, body.length, code], [401, 100_000, constants.NGHTTP2_NO_ERROR]);
    assert.equal((await send()).body, 'fine');
  });

  for (const [what, read] of [
    ['nobody reads', () => {}],
    ['is no longer read', (req: IncomingMessage) => void req.once('data', () => req.pause())],
  ] as const) {
    it(`that ${what} stops at the window of its stream, and the others go on`, async () => {
      const { start, send } = await open((req, res) => {
        if (req.method === 'GET') res.end('fine');
        else read(req);
      });
      const { stream } = start(post);
      let isSent = false;
      stream.write(Buffer.alloc(4 * 1024 * 1024), () => {
        isSent = true;
      });
      for (let sent = 0; sent < 200; sent += 1) assert.equal((await send()).body, 'fine');
      assert.equal(isSent, false);
      stream.close();
    });
  }

  it('that is broken off ends the request as a connection of HTTP/1.1 does that closes', async () => {
    const failure = rejection();
    const { port } = await startHttp(servers, { http2: true, handler: (req) => failure.of(req) });
    // Node's own client ends a body before it resets the stream.
    const body = formatFrame(frameType.data, 0, 1, Buffer.from('half'));
    const frames = [Buffer.from(preface), formatSettings(), formatPost(1), body, formatReset(1)];
    const { socket } = speak(port, Buffer.concat(frames).toString('latin1'));
    assert.equal(await failure.code, 'ECONNRESET');
    socket.destroy();
  });
});

/** The code of the error that ends a request, or `whole` if it ends without one. */
function rejection() {
  let resolve: (code: string | undefined) => void = () => {};
  const code = new Promise<string | undefined>((settle) => {
    resolve = settle;
  });
  const of = (req: IncomingMessage) =>
    void req
      .on('error', (error: NodeJS.ErrnoException) => resolve(error.code))
      .on('end', () => resolve('whole'))
      .resume();
  return { code, of };
}
