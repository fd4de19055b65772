/** gRPC calls through a mapping, frame by frame: what the service and the client see of HTTP/2. */
import assert from 'node:assert/strict';
import {
  type ClientHttp2Stream,
  connect,
  constants,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { formatGrpcFrame } from '#http';
import type { MappingInput, RecordInput } from '../../../src/index.ts';
import { authRecord, desksOf, mappingRecord } from '../../support/desks.ts';
import { type Served, testServers } from '../../support/serve.ts';
import { startUpstream } from '../../support/upstream.ts';

const servers = testServers();
const openDesk = desksOf(servers);

/** A promise that the test resolves. */
function createAnswer<T>() {
  let resolve = (_: T) => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve: (value: T) => resolve(value) };
}

type HandleStream = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, rawHeaders: readonly string[]) => void;

async function startService(handle: HandleStream): Promise<Served> {
  const server = createServer().on('stream', (stream, headers, _flags, rawHeaders) => {
    stream.on('error', () => {});
    handle(stream, headers, rawHeaders);
  });
  const sessions = new Set<{ destroy(): void }>();
  server.on('session', (session) => sessions.add(session));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  servers.later(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { port, origin: `http://127.0.0.1:${port}` };
}

/** Opens a call through a desk, without a message and without an end. */
async function openCall(
  service: Served,
  mapping: Partial<MappingInput> = {},
  headers: Readonly<Record<string, string | string[]>> = {},
  others: readonly RecordInput[] = [],
): Promise<ClientHttp2Stream> {
  const records = [mappingRecord('carts', '/shop.Carts', service.origin, { grpc: true, ...mapping }), ...others];
  const desk = await openDesk({ config: { records } });
  const { gateway } = await desk.listen();
  const session = connect(`http://127.0.0.1:${gateway.port}`);
  servers.later(() => session.destroy());
  const head = { ':method': 'POST', ':path': '/shop.Carts/Add', 'content-type': 'application/grpc', te: 'trailers' };
  return session.request({ ...head, ...headers });
}

interface Received {
  readonly headers: IncomingHttpHeaders;
  /** Whether the first HEADERS frame ends the stream. */
  readonly isOneFrame: boolean;
  readonly body: Buffer;
  readonly trailers: IncomingHttpHeaders | undefined;
}

async function receive(call: ClientHttp2Stream): Promise<Received> {
  let found: Pick<Received, 'headers' | 'isOneFrame'> = { headers: {}, isOneFrame: false };
  let trailers: IncomingHttpHeaders | undefined;
  const chunks: Buffer[] = [];
  call.on('response', (headers, flags) => {
    found = { headers, isOneFrame: (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0 };
  });
  call.on('trailers', (headers) => {
    trailers = headers;
  });
  call.on('data', (chunk: Buffer) => void chunks.push(chunk)).resume();
  await new Promise<void>((resolve, reject) => call.on('close', resolve).on('error', reject));
  return { ...found, body: Buffer.concat(chunks), trailers };
}

const responseHead = { ':status': 200, 'content-type': 'application/grpc' };
const message = formatGrpcFrame(Buffer.from('hello'));

function respond(stream: ServerHttp2Stream, body: Buffer, trailers: Readonly<Record<string, string>>): void {
  stream.respond(responseHead, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers(trailers));
  stream.end(body);
}

describe('the frames of a gRPC call', () => {
  it('reach the service with te: trailers, the path of the client, and what it sends', async () => {
    const seen = createAnswer<IncomingHttpHeaders>();
    const service = await startService((stream, headers) => {
      seen.resolve(headers);
      stream.resume().on('end', () => respond(stream, message, { 'grpc-status': '0' }));
    });
    const call = await openCall(service, {}, { 'grpc-encoding': 'gzip', 'user-agent': 'grpc-test' });
    call.end(message);
    await receive(call);
    const headers = await seen.promise;
    assert.equal(headers[':path'], '/shop.Carts/Add');
    assert.equal(headers.te, 'trailers');
    assert.equal(headers['content-type'], 'application/grpc');
    assert.deepEqual([headers['grpc-encoding'], headers['grpc-timeout']], ['gzip', undefined]);
  });

  it('reach the service with each value of a repeated header on its own', async () => {
    const seen = createAnswer<readonly string[]>();
    const service = await startService((stream, _headers, rawHeaders) => {
      const values = rawHeaders.filter((_, index) => rawHeaders[index - 1] === 'x-key-bin');
      seen.resolve(values);
      respond(stream, message, { 'grpc-status': '0' });
    });
    const call = await openCall(service, {}, { 'x-key-bin': ['AAE', 'AQ'] });
    call.end(message);
    await receive(call);
    assert.deepEqual(await seen.promise, ['AAE', 'AQ']);
  });

  it('come back without a length, and with all trailers', async () => {
    const service = await startService((stream) =>
      respond(stream, message, { 'grpc-status': '0', 'grpc-message': '%C3%A4', 'x-detail-bin': 'AAE' }),
    );
    const call = await openCall(service);
    call.end(message);
    const { headers, body, trailers } = await receive(call);
    assert.deepEqual([headers[':status'], headers['content-type']], [200, 'application/grpc']);
    assert.equal(headers['content-length'], undefined);
    assert.ok(body.equals(message));
    assert.deepEqual(Object.fromEntries(Object.entries(trailers ?? {})), {
      'grpc-status': '0',
      'grpc-message': '%C3%A4',
      'x-detail-bin': 'AAE',
    });
  });

  it('are a single one for a response of headers alone, without a length', async () => {
    const service = await startService((stream) => {
      stream.respond({ ...responseHead, 'grpc-status': '5', 'grpc-message': 'no%20book' }, { endStream: true });
    });
    const call = await openCall(service);
    call.end(message);
    const { headers, isOneFrame, trailers } = await receive(call);
    assert.deepEqual([isOneFrame, trailers], [true, undefined]);
    assert.deepEqual([headers['grpc-status'], headers['grpc-message']], ['5', 'no%20book']);
    assert.equal(headers['content-length'], undefined);
  });

  it('are a single one also while the client is still sending', async () => {
    const service = await startService((stream) => {
      stream.respond({ ...responseHead, 'grpc-status': '7' }, { endStream: true });
    });
    const call = await openCall(service);
    call.write(message);
    const { headers, isOneFrame } = await receive(call);
    assert.deepEqual([isOneFrame, headers['grpc-status']], [true, '7']);
  });

  it('end with trailers also while the client is still sending, and the stream is then closed', async () => {
    const service = await startService((stream) => respond(stream, message, { 'grpc-status': '9' }));
    const call = await openCall(service);
    call.write(message);
    const { body, trailers } = await receive(call);
    assert.deepEqual([body.length, trailers?.['grpc-status'], call.rstCode], [message.length, '9', 0]);
  });

  it('begin with the headers of the response as soon as the service has sent them', async () => {
    const service = await startService((stream) => stream.respond(responseHead));
    const call = await openCall(service);
    const headers = await new Promise<IncomingHttpHeaders>((resolve) => call.on('response', resolve));
    assert.equal(headers['content-type'], 'application/grpc');
    call.on('error', () => {}).close();
  });

  it('wait for a client that does not read, and stop the service', async () => {
    const hasStopped = createAnswer<ServerHttp2Stream>();
    let sent = 0;
    const chunk = formatGrpcFrame(Buffer.alloc(64 * 1024));
    const service = await startService((stream) => {
      stream.respond(responseHead, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      const write = () => {
        if (sent === 400) stream.end();
        else {
          sent += 1;
          stream.write(chunk, write);
        }
        if (sent > 2) hasStopped.resolve(stream);
      };
      write();
    });
    const call = await openCall(service);
    call.pause();
    call.end(message);
    await hasStopped.promise;
    let before = -1;
    while (before !== sent) {
      before = sent;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    assert.ok(sent < 200, `the service could send ${sent} of 400 messages`);
    const { body, trailers } = await receive(call);
    assert.deepEqual([body.length, trailers?.['grpc-status']], [400 * chunk.length, '0']);
  });

  it('wait for a service that does not read, and stop the client', async () => {
    const hasBegun = createAnswer<ServerHttp2Stream>();
    const service = await startService((stream) => {
      stream.respond(responseHead, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.pause();
      hasBegun.resolve(stream);
    });
    const call = await openCall(service);
    let sent = 0;
    const chunk = formatGrpcFrame(Buffer.alloc(64 * 1024));
    const write = () => {
      if (sent === 400) call.end();
      else {
        sent += 1;
        call.write(chunk, write);
      }
    };
    write();
    const stream = await hasBegun.promise;
    let before = -1;
    while (before !== sent) {
      before = sent;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    assert.ok(sent < 200, `the client could send ${sent} of 400 messages`);
    let bytes = 0;
    stream.on('data', ({ length }: Buffer) => {
      bytes += length;
    });
    stream.on('end', () => stream.end(message)).resume();
    const { trailers } = await receive(call);
    assert.deepEqual([bytes, trailers?.['grpc-status']], [400 * chunk.length, '0']);
  });

  const resets = [
    [constants.NGHTTP2_CANCEL, '1'],
    [constants.NGHTTP2_INTERNAL_ERROR, '13'],
    [constants.NGHTTP2_INADEQUATE_SECURITY, '7'],
  ] as const;
  for (const [code, expected] of resets)
    it(`give the client the status ${expected} when the service resets the stream with ${code}`, async () => {
      const before = await startService((stream) => stream.close(code));
      const call = await openCall(before);
      call.end(message);
      const { headers, isOneFrame } = await receive(call);
      assert.deepEqual([isOneFrame, headers['grpc-status']], [true, expected]);

      const after = await startService((stream) => {
        stream.respond(responseHead, { waitForTrailers: true });
        stream.write(message, () => stream.close(code));
      });
      const begun = await openCall(after);
      begun.end(message);
      const { body, trailers } = await receive(begun);
      assert.deepEqual([body.length, trailers?.['grpc-status']], [message.length, expected]);
    });

  it('cancel the call of the service when the client resets it', async () => {
    const code = createAnswer<number>();
    const began = createAnswer<undefined>();
    const service = await startService((stream) => {
      began.resolve(undefined);
      stream.on('close', () => code.resolve(stream.rstCode));
    });
    const call = await openCall(service);
    call.on('error', () => {});
    call.write(message);
    await began.promise;
    call.close(constants.NGHTTP2_CANCEL);
    assert.equal(await code.promise, constants.NGHTTP2_CANCEL);
  });

  it('give the service the time that is left: of the client, or of the mapping if that is shorter', async () => {
    const timeoutOf = async (mapping: Partial<MappingInput>, sent: string) => {
      const seen = createAnswer<string>();
      const service = await startService((stream, headers) => {
        seen.resolve(String(headers['grpc-timeout']));
        respond(stream, message, { 'grpc-status': '0' });
      });
      const call = await openCall(service, mapping, { 'grpc-timeout': sent });
      call.end(message);
      await receive(call);
      return await seen.promise;
    };
    assert.match(await timeoutOf({}, '20S'), /^(?:20000|19\d\d\d)m$/);
    assert.match(await timeoutOf({ timeout_ms: 10_000 }, '20S'), /^(?:10000|9\d\d\d)m$/);
    assert.match(await timeoutOf({ timeout_ms: 30_000 }, '20S'), /^(?:20000|19\d\d\d)m$/);
    assert.equal(await timeoutOf({ timeout_ms: 0 }, 'soon'), 'soon');
  });

  it('give the service what the auth service has left of the time', async () => {
    const auth = await startUpstream(servers, (res) => void setTimeout(() => res.end(), 300));
    const seen = createAnswer<string>();
    const service = await startService((stream, headers) => {
      seen.resolve(String(headers['grpc-timeout']));
      respond(stream, message, { 'grpc-status': '0' });
    });
    const records = [{ ...authRecord, auth_service: auth.origin }];
    const call = await openCall(service, {}, { 'grpc-timeout': '10S' }, records);
    call.end(message);
    await receive(call);
    assert.ok(Number.parseInt(await seen.promise, 10) <= 9701);
  });

  it('end with DEADLINE_EXCEEDED when the time of the client is over, and cancel the call of the service', async () => {
    const code = createAnswer<number>();
    const service = await startService((stream) => void stream.on('close', () => code.resolve(stream.rstCode)));
    const call = await openCall(service, {}, { 'grpc-timeout': '200m' });
    call.end(message);
    const { headers, isOneFrame } = await receive(call);
    assert.deepEqual([isOneFrame, headers['grpc-status']], [true, '4']);
    assert.equal(await code.promise, constants.NGHTTP2_CANCEL);
  });

  it('whose time is over when it arrives gets DEADLINE_EXCEEDED, without a warning of Node', async () => {
    const warnings: string[] = [];
    const onWarning = ({ name }: Error) => void warnings.push(name);
    process.on('warning', onWarning);
    servers.later(() => void process.off('warning', onWarning));
    const service = await startService(() => {});
    const { headers } = await receive((await openCall(service, {}, { 'grpc-timeout': '0n' })).end());
    assert.equal(headers['grpc-status'], '4');
    assert.deepEqual(warnings, []);
  });
});
