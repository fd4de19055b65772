/** Calls of gRPC-Web through a mapping with `grpc: true`, with frames written by hand, to a service of grpc-js. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2, createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { Metadata, status } from '@grpc/grpc-js';
import Koa from 'koa';
import { formatGrpcFrame } from '#http';
import type { MappingInput } from '../../../src/index.ts';
import { desksOf, mappingRecord } from '../../support/desks.ts';
import { testServers } from '../../support/serve.ts';
import { createDeferred } from '../../support/waiting.ts';
import { grpcFramesIn } from '../../support/wire/grpc-frames.ts';
import { failing, type HandleCall, startGrpcService, unary } from '../../support/wire/grpc-peers.ts';

const servers = testServers();
const openDesk = desksOf(servers);

const add = '/shop.Carts/Add';
const echo = unary((message) => Buffer.concat([Buffer.from('added '), message]));

async function openThrough(origin: string, more: Partial<MappingInput> = {}, others: readonly MappingInput[] = []) {
  const carts = mappingRecord('carts', '/shop.Carts', origin, { grpc: true, bypass_auth: true, ...more });
  const desk = await openDesk({ config: { records: [carts, ...others] }, only: ['gateway'] });
  return (await desk.listen()).gateway;
}

async function startThrough(handle: HandleCall, more: Partial<MappingInput> = {}) {
  const service = await startGrpcService(servers, { [add]: handle });
  return { service, gateway: await openThrough(service.origin, more) };
}

interface WebResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly messages: readonly string[];
  /** Those at the end of the body. */
  readonly trailers: readonly string[];
}

const binary = 'application/grpc-web+proto';
const text = 'application/grpc-web-text+proto';
const frameOf = (message: string) => formatGrpcFrame(Buffer.from(message));
const textOf = (bytes: Buffer) => bytes.toString('base64');

/** Each part of the text is decoded alone, because there is padding wherever the gateway has flushed it. */
function bytesOf(type: string, body: Buffer): Buffer {
  if (!type.startsWith('application/grpc-web-text')) return body;
  return Buffer.concat((body.toString().match(/[^=]+=*/g) ?? []).map((part) => Buffer.from(part, 'base64')));
}

function parse(type: string, body: Buffer) {
  const frames = grpcFramesIn(bytesOf(type, body));
  const [trailers, ...more] = frames.filter(({ flags }) => flags === 128);
  assert.deepEqual(more, []);
  return {
    messages: frames.filter(({ flags }) => flags === 0).map(({ message }) => message.toString()),
    trailers: trailers?.message.toString().split('\r\n').slice(0, -1) ?? [],
  };
}

async function send(url: string, type: string, body: Buffer | string, more = {}): Promise<WebResponse> {
  const headers = { 'Content-Type': type, 'X-Grpc-Web': '1', ...more };
  const response = await fetch(`${url}${add}`, { method: 'POST', headers, body });
  const received = Buffer.from(await response.arrayBuffer());
  const { status: code, headers: found } = response;
  return { status: code, headers: found, ...parse(found.get('content-type') ?? '', received) };
}

/** Calls `onFirst` when the first message has arrived. */
async function stream(url: string, type: string, onFirst: () => void) {
  const body = type === text ? textOf(frameOf('x')) : frameOf('x');
  const response = await fetch(`${url}${add}`, { method: 'POST', headers: { 'Content-Type': type }, body });
  const chunks: Buffer[] = [];
  for await (const chunk of response.body ?? []) {
    chunks.push(Buffer.from(chunk));
    if (parse(type, Buffer.concat(chunks)).messages.length === 1) onFirst();
  }
  return parse(type, Buffer.concat(chunks));
}

describe('a call of gRPC-Web', () => {
  it('gets the message and, at the end of the body, the trailers of the service', async () => {
    const { gateway } = await startThrough((call) => {
      const headers = new Metadata();
      headers.set('cart-id', '7');
      call.sendMetadata(headers);
      call.on('data', (message: Buffer) => call.write(Buffer.concat([Buffer.from('added '), message])));
      call.on('end', () => {
        const trailers = new Metadata();
        trailers.add('x-last', 'a');
        trailers.set('x-last-bin', Buffer.from([254, 0, 1]));
        call.end(trailers);
      });
    });
    const { status, headers, messages, trailers } = await send(gateway.url, binary, frameOf('a book'));
    assert.deepEqual([status, headers.get('content-type'), headers.get('cart-id')], [200, binary, '7']);
    assert.deepEqual(messages, ['added a book']);
    assert.deepEqual(trailers.toSorted(), ['grpc-message: OK', 'grpc-status: 0', 'x-last-bin: /gAB', 'x-last: a']);
  });

  it('as text is decoded for the service, and its response encoded', async () => {
    const { gateway } = await startThrough(echo);
    const frame = frameOf('a book');
    const padded = textOf(frame.subarray(0, 4)) + textOf(frame.subarray(4, 5)) + textOf(frame.subarray(5));
    for (const body of [textOf(frame), padded]) {
      const { headers, messages, trailers } = await send(gateway.url, text, body);
      assert.equal(headers.get('content-type'), text);
      assert.deepEqual([messages, trailers[0]], [['added a book'], 'grpc-status: 0']);
    }
  });

  it('gets its response as text if it accepts only that', async () => {
    const { gateway } = await startThrough(echo);
    const accept = { Accept: 'application/grpc-web-text' };
    const { headers, messages } = await send(gateway.url, binary, frameOf('x'), accept);
    assert.deepEqual([headers.get('content-type'), messages], [text, ['added x']]);
  });

  for (const type of [binary, text])
    it(`gets each message of a stream when the service sends it, as ${type}`, async () => {
      const first = createDeferred();
      const { gateway } = await startThrough((call) => {
        call.on('end', async () => {
          call.write(Buffer.from('one'));
          await first.promise;
          call.write(Buffer.from('two'));
          call.end();
        });
        call.resume();
      });
      const { messages, trailers } = await stream(gateway.url, type, first.resolve);
      assert.deepEqual([messages, trailers[0]], [['one', 'two'], 'grpc-status: 0']);
    });

  it('gets the status of a service that refuses it in the headers', async () => {
    const { gateway } = await startThrough(failing(status.NOT_FOUND, 'there is no cart für 7'));
    for (const type of [binary, text]) {
      const { status, headers, messages } = await send(gateway.url, type, type === text ? '' : frameOf('x'));
      assert.deepEqual([status, headers.get('grpc-status'), messages], [200, '5', []]);
      assert.equal(decodeURIComponent(headers.get('grpc-message') ?? ''), 'there is no cart für 7');
      assert.equal(headers.get('content-type')?.startsWith('application/grpc-web'), true);
    }
  });

  for (const [what, expected, end] of [
    ['breaks it off', '13', (stream) => stream.destroy(new Error('broken'))],
    ['sends no status', '2', (stream) => stream.end()],
  ] as const satisfies readonly [string, string, (stream: ServerHttp2Stream) => unknown][])
    it(`gets a status at the end of the body if the service ${what}`, async () => {
      const received = createDeferred();
      const server = createServer().on('stream', async (stream) => {
        stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
        stream.on('error', () => {}).write(frameOf('one'));
        await received.promise;
        end(stream);
      });
      const { port } = await servers.listen(server);
      const gateway = await openThrough(`http://127.0.0.1:${port}`);
      const { messages, trailers } = await stream(gateway.url, text, received.resolve);
      assert.deepEqual([messages, trailers[0]], [['one'], `grpc-status: ${expected}`]);
    });

  for (const [what, body] of Object.entries({
    'is not base64': 'AAAA*AAA',
    'ends within a group of four characters': textOf(frameOf('abcd')).slice(0, -1),
  }))
    it(`as text that ${what} gets INVALID_ARGUMENT`, async () => {
      const { gateway } = await startThrough(echo);
      const { status, headers } = await send(gateway.url, text, body);
      assert.deepEqual([status, headers.get('grpc-status')], [200, '3']);
      assert.equal(headers.get('content-type'), text);
    });

  it('is a call of gRPC for the service', async () => {
    const seen: IncomingHttpHeaders[] = [];
    const server = createServer().on('stream', (stream, headers) => {
      seen.push(headers);
      stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '0' }, { endStream: true });
    });
    const { port } = await servers.listen(server);
    const gateway = await openThrough(`http://127.0.0.1:${port}`);
    const more = {
      Accept: 'application/grpc-web-text',
      'X-User-Agent': 'grpc-web-javascript/0.1',
      'Grpc-Timeout': '9S',
    };
    await send(gateway.url, text, textOf(frameOf('x')), more);
    const [{ te, accept, 'content-type': type, 'grpc-timeout': timeout, ...others } = {}] = seen;
    assert.deepEqual([type, te, accept], ['application/grpc+proto', 'trailers', undefined]);
    // Not that of the text.
    assert.ok([undefined, String(frameOf('x').length)].includes(others['content-length']));
    assert.equal(others['x-user-agent'], 'grpc-web-javascript/0.1');
    assert.match(String(timeout), /^(?:8\d\d\d|9000)m$/);
  });

  it('has its response over HTTP/2 too', async () => {
    const { gateway } = await startThrough(echo);
    const session = connectHttp2(gateway.url);
    servers.later(() => session.destroy());
    const stream = session.request({ ':method': 'POST', ':path': add, 'content-type': text });
    stream.end(textOf(frameOf('a book')));
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => void chunks.push(chunk)).on('trailers', () => assert.fail('trailers of HTTP'));
    await once(stream, 'end');
    const { messages, trailers } = parse(text, Buffer.concat(chunks));
    assert.deepEqual([messages, trailers[0]], [['added a book'], 'grpc-status: 0']);
  });

  it('is cancelled at the service when the client leaves', async () => {
    const cancelled = createDeferred();
    const { gateway } = await startThrough((call) => {
      call.on('cancelled', () => cancelled.resolve());
      call.write(Buffer.from('one'));
    });
    const leaving = new AbortController();
    const init = { method: 'POST', headers: { 'Content-Type': binary }, body: frameOf('x'), signal: leaving.signal };
    const response = await fetch(`${gateway.url}${add}`, init);
    await response.body?.getReader().read();
    leaving.abort();
    await cancelled.promise;
  });

  it('as text is decoded for a shadow as well', async () => {
    let copy = '';
    const copied = createDeferred();
    const keep = unary((message) => {
      copy = message.toString();
      copied.resolve();
      return message;
    });
    const shadow = await startGrpcService(servers, { [add]: keep });
    const service = await startGrpcService(servers, { [add]: echo });
    const copies = mappingRecord('copies', '/shop.Carts', shadow.origin, {
      grpc: true,
      bypass_auth: true,
      shadow: true,
    });
    const gateway = await openThrough(service.origin, {}, [copies]);
    await send(gateway.url, text, textOf(frameOf('a book')));
    await copied.promise;
    assert.equal(copy, 'a book');
  });

  it('as text gets INTERNAL if the host application has read it, and as binary passes', async () => {
    const { origin } = await startGrpcService(servers, { [add]: echo });
    const carts = mappingRecord('carts', '/shop.Carts', origin, { grpc: true, bypass_auth: true });
    const desk = await openDesk({ config: { records: [carts] }, only: ['gateway'] });
    const host = new Koa().use(async (ctx, next) => {
      const rawBody = Buffer.concat(await ctx.req.toArray());
      Object.assign(ctx.request, { rawBody });
      await next();
    });
    const { origin: url } = await servers.http(host.use(desk.middleware).callback());
    assert.equal((await send(url, text, textOf(frameOf('x')))).headers.get('grpc-status'), '13');
    assert.deepEqual((await send(url, binary, frameOf('x'))).messages, ['added x']);
  });
});
