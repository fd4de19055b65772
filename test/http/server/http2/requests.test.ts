/** Requests of HTTP/2: what is accepted, what is rejected, and how they look to a handler of node:http. */
import assert from 'node:assert/strict';
import type { IncomingMessage, RequestListener } from 'node:http';
import { constants } from 'node:http2';
import { finalStatus } from '#http';
import { testServers } from '../../../support/serve.ts';
import { eventually } from '../../../support/waiting.ts';
import { httpLimits, startHttp } from '../../../support/wire/http-server.ts';
import { type Http2Client, openHttp2 } from '../../../support/wire/http2-client.ts';
import {
  flag,
  formatFrame,
  formatGet,
  formatHead,
  formatReset,
  formatSettings,
  frameType,
  literal,
  preface,
} from '../../../support/wire/http2-frames.ts';
import { speak } from '../../../support/wire/peer.ts';

const servers = testServers();

interface Opened extends Http2Client {
  readonly port: number;
  /** The requests that reached the handler. */
  readonly reached: readonly IncomingMessage[];
  /** The fields of the log's lines. */
  readonly logged: readonly Readonly<Record<string, unknown>>[];
}

async function open(handler: RequestListener = (_req, res) => res.end('x')): Promise<Opened> {
  const reached: IncomingMessage[] = [];
  const logged: Readonly<Record<string, unknown>>[] = [];
  const logger = { warn: (fields: object) => void logged.push({ ...fields }) };
  const { port } = await startHttp(servers, {
    http2: true,
    logger,
    handler(req, res) {
      reached.push(req);
      handler(req, res);
    },
  });
  const client = openHttp2(`http://127.0.0.1:${port}`);
  servers.later(() => client.session.destroy());
  return { ...client, port, reached, logged };
}

describe('a request of HTTP/2', () => {
  it('is aborted when the client ends its connection, which HTTP/1.1 allows before a response', async () => {
    const statuses: number[] = [];
    const { port } = await open((_req, res) => {
      res.once('close', () => void statuses.push(finalStatus(res)));
      socket.end();
    });
    const get = Buffer.from([0x82, 0x84, 0x86, 0x01, 0x01, 0x61]);
    const headers = formatFrame(frameType.headers, flag.endHeaders | flag.endStream, 1, get);
    const start = Buffer.concat([Buffer.from(preface), formatSettings(), headers]);
    const { socket, closed } = speak(port, start.toString('latin1'));
    await closed;
    assert.deepEqual(statuses, [499]);
  });

  it('has the headers and the method of HTTP/1.1, with a host and without pseudo-headers', async () => {
    const { send, reached } = await open();
    await send({ ':method': 'PUT', ':path': '/a?b=c', ':authority': 'a.example', 'X-Custom': 'one', accept: '*/*' });
    const [request] = reached;
    assert.deepEqual([request?.method, request?.url, request?.httpVersion], ['PUT', '/a?b=c', '2.0']);
    assert.deepEqual({ ...request?.headers }, { host: 'a.example', 'x-custom': 'one', accept: '*/*' });
    assert.deepEqual(request?.rawHeaders, ['host', 'a.example', 'x-custom', 'one', 'accept', '*/*']);
    assert.deepEqual({ ...request?.headersDistinct }, { host: ['a.example'], 'x-custom': ['one'], accept: ['*/*'] });
  });

  it('has one Cookie header, in whichever number of lines the client sends its cookies', async () => {
    const { send, reached } = await open();
    await send({ cookie: ['a=1', 'b=2; c=3'] });
    assert.deepEqual(reached[0]?.headersDistinct['cookie'], ['a=1; b=2; c=3']);
    assert.equal(reached[0]?.headers.cookie, 'a=1; b=2; c=3');
  });

  it('has its Host header as host, if there is no :authority', async () => {
    const { send, reached } = await open();
    await send({ ':authority': undefined, host: 'b.example' });
    assert.equal(reached[0]?.headers.host, 'b.example');
  });

  it('may have a Host that equals its :authority but for the case', async () => {
    const { send, reached } = await open();
    assert.equal((await send({ ':authority': 'a.example', host: 'A.example' })).status, 200);
    assert.deepEqual(reached[0]?.headersDistinct['host'], ['a.example']);
  });

  it('has its header values as bytes', async () => {
    const { send, reached } = await open((req, res) => res.setHeader('x-back', req.headers['x-text'] ?? '').end());
    const text = Buffer.from('é€ ÿ').toString('latin1');
    const { headers } = await send({ 'x-text': text });
    assert.equal(reached[0]?.headers['x-text'], text);
    assert.equal(headers['x-back'], text);
  });

  it('may have * as its target, if its method is OPTIONS', async () => {
    const { send, reached } = await open();
    assert.equal((await send({ ':method': 'OPTIONS', ':path': '*' })).status, 200);
    assert.equal(reached[0]?.url, '*');
  });

  for (const [what, headers, status] of [
    ['a Host that differs from its :authority', { ':authority': 'a.example', host: 'b.example' }, 400],
    ['a method that does not exist', { ':method': 'BREW' }, 501],
    ['CONNECT', { ':method': 'CONNECT', ':path': undefined, ':scheme': undefined }, 501],
    ['headers beyond the limit', { 'x-long': 'a'.repeat(httpLimits.headerBytesMax) }, 431],
    ['headers far beyond the limit', { 'x-long': 'a'.repeat(60_000) }, 431],
  ] as const) {
    it(`with ${what} gets ${status}, is logged and reaches no handler, and the next one is served`, async () => {
      const { send, reached, logged } = await open();
      const response = await send(headers);
      assert.equal(response.status, status);
      assert.equal(JSON.parse(response.body).code, status);
      assert.equal(response.code, constants.NGHTTP2_NO_ERROR);
      assert.equal(logged.length, 1);
      assert.equal(logged[0]?.['status'], status);
      assert.equal((await send()).status, 200);
      assert.equal(reached.length, 1);
    });
  }

  it('without :authority and Host is a PROTOCOL_ERROR', async () => {
    const { port, reached } = await open();
    // The method, the scheme and the path, from the static table of HPACK.
    const head = formatFrame(frameType.headers, flag.endHeaders | flag.endStream, 1, Buffer.from([0x82, 0x86, 0x84]));
    const peer = speak(port, Buffer.concat([Buffer.from(preface), formatSettings(), head]).toString('latin1'));
    await peer.until(formatReset(1, constants.NGHTTP2_PROTOCOL_ERROR).toString('latin1'));
    peer.socket.destroy();
    assert.equal(reached.length, 0);
  });

  for (const [what, name, value] of [
    ['a name with a capital letter', 'X-Custom', 'one'],
    ['a Connection', 'connection', 'close'],
    ['a Transfer-Encoding', 'transfer-encoding', 'chunked'],
    ['an Upgrade', 'upgrade', 'websocket'],
  ] as const) {
    it(`with ${what} is a PROTOCOL_ERROR`, async () => {
      const { port, reached } = await open();
      const frames = [Buffer.from(preface), formatSettings(), formatGet(1, literal(name, value))];
      const peer = speak(port, Buffer.concat(frames).toString('latin1'));
      await peer.until(formatReset(1, constants.NGHTTP2_PROTOCOL_ERROR).toString('latin1'));
      peer.socket.destroy();
      assert.equal(reached.length, 0);
    });
  }

  it('with a header of more than 64 KiB ends its connection, and is logged', async () => {
    const { port, reached, logged } = await open();
    const block = formatHead('GET', literal('x-long', 'a'.repeat(70_000)));
    const parts = [0, 1, 2, 3, 4].map((index) => block.subarray(index * 16_000, (index + 1) * 16_000));
    const frames = parts.map((part, index) => {
      const isLast = index === parts.length - 1;
      const type = index === 0 ? frameType.headers : frameType.continuation;
      return formatFrame(type, (index === 0 ? flag.endStream : 0) | (isLast ? flag.endHeaders : 0), 1, part);
    });
    await speak(port, Buffer.concat([Buffer.from(preface), formatSettings(), ...frames]).toString('latin1')).closed;
    assert.equal(reached.length, 0);
    assert.deepEqual(logged, [{ client: '127.0.0.1', code: 'ERR_HTTP2_ERROR', reason: 'Protocol error' }]);
  });

  it('lacks a header whose value has a line break, and has no other instead', async () => {
    const { port, reached } = await open();
    const frames = [Buffer.from(preface), formatSettings(), formatGet(1, literal('x-custom', 'one\r\nx-other: two'))];
    const peer = speak(port, Buffer.concat(frames).toString('latin1'));
    await eventually(() => assert.equal(reached.length, 1));
    peer.socket.destroy();
    assert.deepEqual({ ...reached[0]?.headers }, { host: 'a' });
  });

  for (const [what, headers] of [
    ['without a slash', { ':path': 'a' }],
    ['in absolute form', { ':path': 'http://a.example/' }],
    ['that is empty', { ':path': '' }],
    ['that is *, for GET', { ':path': '*' }],
  ] as const) {
    it(`with a path ${what} is a PROTOCOL_ERROR, and the next one is served`, async () => {
      const { send, reached } = await open();
      const { status, code } = await send(headers);
      assert.deepEqual([status, code], [0, constants.NGHTTP2_PROTOCOL_ERROR]);
      assert.equal((await send()).status, 200);
      assert.equal(reached.length, 1);
    });
  }
});
