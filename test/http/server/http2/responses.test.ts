/** Responses over HTTP/2, from handlers of node:http: heads, bodies, trailers, and those that are cut off. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { constants } from 'node:http2';
import { expectTrailers, type HttpServerOptions } from '#http';
import { testServers } from '../../../support/serve.ts';
import { eventually } from '../../../support/waiting.ts';
import { startHttp } from '../../../support/wire/http-server.ts';
import { openHttp2 } from '../../../support/wire/http2-client.ts';
import {
  flag,
  formatFrame,
  formatGet,
  formatReset,
  formatSettings,
  frameType,
  preface,
} from '../../../support/wire/http2-frames.ts';
import { speak } from '../../../support/wire/peer.ts';

const servers = testServers();

async function open(handler: RequestListener, options: Partial<HttpServerOptions> = {}) {
  const { port } = await startHttp(servers, { http2: true, handler, ...options });
  const client = openHttp2(`http://127.0.0.1:${port}`);
  servers.later(() => client.session.destroy());
  return client;
}

/** Responds to `/fine`, and otherwise as the test says. */
function orFine(handler: RequestListener): RequestListener {
  return (req, res) => void (req.url === '/fine' ? res.end('fine') : handler(req, res));
}

describe('a response of HTTP/2', () => {
  it('has lower-case names, each line of its own, and none that concern a connection of HTTP/1.1', async () => {
    const { send } = await open((_req, res) => {
      res.setHeader('Set-Cookie', ['a=1', 'b=2']).setHeader('X-Custom', 'one').setHeader('ETag', ['"a"', '"b"']);
      for (const name of ['Connection', 'Keep-Alive', 'Transfer-Encoding', 'Upgrade', 'TE', 'Proxy-Connection'])
        res.setHeader(name, 'close');
      res.sendDate = false;
      res.end('x');
    });
    const { rawHeaders, body } = await send();
    const lines = ['set-cookie', 'a=1', 'set-cookie', 'b=2', 'x-custom', 'one', 'etag', '"a"', 'etag', '"b"'];
    assert.deepEqual([rawHeaders, body], [[...lines, 'content-length', '1'], 'x']);
  });

  for (const [what, write] of [
    ['an object', (res: ServerResponse) => res.writeHead(201, { 'X-Custom': 'one', 'Set-Cookie': ['a=1', 'b=2'] })],
    [
      'a list',
      (res: ServerResponse) => res.writeHead(201, ['X-Custom', 'one', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2']),
    ],
    [
      'an object beside a header',
      (res: ServerResponse) =>
        res.setHeader('X-Custom', 'no').writeHead(201, 'Made', { 'X-Custom': 'one', 'Set-Cookie': ['a=1', 'b=2'] }),
    ],
  ] as const) {
    it(`has the headers that writeHead gets as ${what}`, async () => {
      const { send } = await open((_req, res) => void write(res).end());
      const { status, headers } = await send();
      assert.deepEqual([status, headers['x-custom'], headers['set-cookie']], [201, 'one', ['a=1', 'b=2']]);
    });
  }

  it('has a date', async () => {
    const { send } = await open((_req, res) => void res.end());
    assert.match(String((await send()).headers['date']), /^\w{3}, .* GMT$/);
  });

  for (const status of [204, 205, 304, 426, 599]) {
    it(`may have the status ${status}`, async () => {
      const { send } = await open((_req, res) => void res.writeHead(status, { Upgrade: 'websocket' }).end());
      const response = await send();
      assert.deepEqual([response.status, response.body, response.code], [status, '', constants.NGHTTP2_NO_ERROR]);
    });
  }

  it('to HEAD has the headers of GET, and no body', async () => {
    const { send } = await open((_req, res) => void res.setHeader('Content-Length', 5).end('hello'));
    const { status, headers, body, code } = await send({ ':method': 'HEAD' });
    assert.deepEqual([status, headers['content-length'], body, code], [200, '5', '', constants.NGHTTP2_NO_ERROR]);
  });

  it('without a body is one frame that ends the stream', async () => {
    const { start } = await open((_req, res) => void res.writeHead(200).end());
    const { stream } = start();
    const [, flags] = await once(stream, 'response');
    assert.equal(flags & constants.NGHTTP2_FLAG_END_STREAM, constants.NGHTTP2_FLAG_END_STREAM);
  });

  it('sends a head before its body if it is flushed', async () => {
    let finish = () => {};
    const { start } = await open((_req, res) => {
      res.flushHeaders();
      finish = () => res.end('body');
    });
    const { status, response } = start();
    assert.equal(await status, 200);
    finish();
    assert.equal((await response).body, 'body');
  });

  it('sends strings in the encoding that is given, and buffers', async () => {
    const { send } = await open((_req, res) => {
      res.write('é');
      res.write('é', 'latin1');
      res.write('aGk=', 'base64');
      res.end(Buffer.from('!'));
    });
    assert.equal((await send()).body, Buffer.from('Ã©éhi!', 'latin1').toString('latin1'));
  });

  it('has trailers if they were announced before the head was sent, and none otherwise', async () => {
    const { send } = await open((req, res) => {
      if (req.url !== '/none') expectTrailers(res);
      res.write('body');
      res.addTrailers([
        ['X-Check', 'é'],
        ['X-Check', '2'],
      ] as never);
      res.end();
    });
    assert.deepEqual((await send()).rawTrailers, ['x-check', 'é', 'x-check', '2']);
    const { rawTrailers, body, code } = await send({ ':path': '/none' });
    assert.deepEqual([rawTrailers, body, code], [[], 'body', constants.NGHTTP2_NO_ERROR]);
  });

  it('may have trailers after no body at all', async () => {
    const { send } = await open((_req, res) => {
      res.addTrailers({ 'X-Check': '1' });
      res.end();
    });
    assert.deepEqual((await send()).rawTrailers, ['x-check', '1']);
  });

  it('may follow early hints', async () => {
    const { send } = await open((_req, res) => {
      res.writeEarlyHints({ link: '</a.css>; rel=preload' }, () => res.end('x'));
    });
    const { interim, status } = await send();
    assert.deepEqual([interim, status], [[103], 200]);
  });

  it('that is longer than its Content-Length is cut off, and ends no other request', async () => {
    const handler = orFine((_req, res) => {
      res
        .on('error', () => {})
        .setHeader('Content-Length', 3)
        .write('ab');
      res.write('cd');
    });
    const { send } = await open(handler);
    const [first, other] = await Promise.all([send(), send({ ':path': '/fine' })]);
    assert.equal(first.code, constants.NGHTTP2_INTERNAL_ERROR);
    assert.equal(other.body, 'fine');
    assert.equal((await send({ ':path': '/fine' })).body, 'fine');
  });

  it('that is shorter than its Content-Length is cut off, and ends no other request', async () => {
    const handler = orFine(
      (_req, res) =>
        void res
          .on('error', () => {})
          .setHeader('Content-Length', 3)
          .end('ab'),
    );
    const { send } = await open(handler);
    const [first, other] = await Promise.all([send(), send({ ':path': '/fine' })]);
    assert.notEqual(first.code, constants.NGHTTP2_NO_ERROR);
    assert.equal(other.body, 'fine');
    assert.equal((await send({ ':path': '/fine' })).body, 'fine');
  });

  it('that is destroyed ends with a reset, before its head and after it', async () => {
    let begun: ServerResponse | undefined;
    const handler = orFine((req, res) => {
      if (req.url !== '/begun') return void res.destroy();
      res.write('half');
      begun = res;
    });
    const { send, start } = await open(handler);
    const none = await send();
    assert.deepEqual([none.status, none.code], [0, constants.NGHTTP2_INTERNAL_ERROR]);
    const half = start({ ':path': '/begun' });
    assert.equal(await half.status, 200);
    begun?.destroy();
    assert.equal((await half.response).code, constants.NGHTTP2_INTERNAL_ERROR);
    assert.equal((await send({ ':path': '/fine' })).body, 'fine');
  });

  it('that is destroyed does not look complete: no frame says that the stream has ended', async () => {
    const { port } = await startHttp(servers, {
      http2: true,
      handler: (_req, res) => void res.write('half', () => res.destroy()),
    });
    const peer = speak(port, Buffer.concat([Buffer.from(preface), formatSettings(), formatGet(1)]).toString('latin1'));
    await peer.until(formatReset(1, constants.NGHTTP2_INTERNAL_ERROR).toString('latin1'));
    peer.socket.destroy();
    const half = formatFrame(frameType.data, 0, 1, Buffer.from('half')).toString('latin1');
    assert.ok(peer.received().includes(half));
    const end = formatFrame(frameType.data, flag.endStream, 1).toString('latin1');
    assert.ok(!peer.received().includes(end));
  });

  it('is closed once the client has left, which destroys the request', async () => {
    const closed: string[] = [];
    let arrived = () => {};
    const { start } = await open((req, res) => {
      req.once('close', () => closed.push('request'));
      res.once('close', () => closed.push('response'));
      arrived();
    });
    const { stream } = start();
    await new Promise<void>((resolve) => {
      arrived = resolve;
    });
    stream.close(constants.NGHTTP2_CANCEL);
    await eventually(() => assert.deepEqual(closed.toSorted(), ['request', 'response']));
  });

  it('waits for a client that reads slowly, and says so to whoever writes it', async () => {
    const sizes: number[] = [];
    const chunk = Buffer.alloc(64 * 1024);
    const { start } = await open(async (_req, res) => {
      for (let sent = 0; sent < 64; sent += 1) {
        if (!res.write(chunk)) await once(res, 'drain');
        sizes.push(res.req.socket.writableLength);
      }
      res.end();
    });
    const { stream, response } = start();
    stream.pause();
    await once(stream, 'response');
    setImmediate(() => stream.resume());
    assert.equal((await response).body.length, 64 * chunk.length);
    assert.ok(Math.max(...sizes) <= 2 * chunk.length, String(Math.max(...sizes)));
  });

  it('that the client stops reading is reset after a while, and the others are not', async () => {
    let res: ServerResponse | undefined;
    const handler = orFine((_req: IncomingMessage, response) => {
      res = response;
      response.end(Buffer.alloc(1024 * 1024));
    });
    const { start, send } = await open(handler, { responseIdleTimeoutMs: 20 });
    const { stream, response } = start();
    stream.pause();
    await once(stream, 'response');
    await eventually(() => assert.equal(res?.destroyed, true));
    stream.resume();
    assert.equal((await response).code, constants.NGHTTP2_CANCEL);
    assert.equal((await send({ ':path': '/fine' })).body, 'fine');
  });

  it('is not delayed by a slow one', async () => {
    let finish = () => {};
    const { start, send } = await open(
      orFine((_req, res) => {
        finish = () => res.end('slow');
      }),
    );
    const { response } = start();
    assert.equal((await send({ ':path': '/fine' })).body, 'fine');
    finish();
    assert.equal((await response).body, 'slow');
  });
});
