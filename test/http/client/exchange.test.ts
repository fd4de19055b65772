/** A request and its response over HTTP/2: bytes, bodies, trailers, flow control, resets and GOAWAY. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type ClientHttp2Stream, constants, type ServerHttp2Stream } from 'node:http2';
import { createServer as createTcpServer } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { Exchange } from '../../../src/http/client/exchange.ts';
import { codeOf, framesIn, respond, send, sessionsTo, startHttp2, startMute } from '../../support/http2-services.ts';
import { testServers } from '../../support/serve.ts';
import { closeOf, createDeferred, eventually } from '../../support/waiting.ts';

const servers = testServers();
const { NGHTTP2_NO_ERROR, NGHTTP2_CANCEL, NGHTTP2_REFUSED_STREAM, NGHTTP2_INTERNAL_ERROR, NGHTTP2_ENHANCE_YOUR_CALM } =
  constants;

async function startSessions(
  ...[onStream, options]: [Parameters<typeof startHttp2>[1], Parameters<typeof startHttp2>[2]?]
) {
  const service = await startHttp2(servers, onStream, options);
  return { service, sessions: sessionsTo(servers, service, { sessionsMax: 2 }) };
}

/** A frame of the first stream, or of another. */
function frame(type: number, flags: number, payload: Buffer, stream = 1): Buffer {
  const head = Buffer.from([0, 0, payload.length, type, flags, 0, 0, 0, stream]);
  return Buffer.concat([head, payload]);
}

/** `:status: 200` in the static table of HPACK. */
const ok = 0x88;

const settings = frame(4, 0, Buffer.alloc(0), 0);

/** Every byte that a value of a header may contain. */
const anyBytes = String.fromCharCode(9, ...Array.from({ length: 224 }, (_, index) => index + 32)).replace('\x7f', '');

describe('a request over HTTP/2', () => {
  it('has its pseudo-headers, its headers in lower case and byte for byte, and none of the connection', async () => {
    let received: object = {};
    const { sessions, service } = await startSessions((stream, headers) => {
      received = Object.fromEntries(Object.entries(headers));
      respond(stream);
    });
    const headers = [
      'Host',
      'shop.example',
      'X-Bytes',
      `a${anyBytes}b`,
      'x-twice',
      '1',
      'x-twice',
      '2',
      'Cookie',
      'a=1; b=2',
    ];
    const ofConnection = ['connection', 'keep-alive', 'keep-alive', 'timeout=5', 'proxy-connection', 'close'];
    const more = ['transfer-encoding', 'chunked', 'upgrade', 'websocket', 'http2-settings', 'AA', 'te', 'gzip'];
    await send(sessions, { path: '/a?b=%20', headers: [...headers, ...ofConnection, ...more] }).response;
    assert.deepEqual(
      { ...received },
      {
        ':method': 'GET',
        ':scheme': 'http',
        ':authority': 'shop.example',
        ':path': '/a?b=%20',
        'x-bytes': `a${anyBytes}b`,
        'x-twice': '1, 2',
        cookie: 'a=1; b=2',
      },
    );
    await send(sessions, { headers: { te: 'trailers', 'x-list': ['1', '2'] } }).response;
    assert.deepEqual(received, {
      ':method': 'GET',
      ':scheme': 'http',
      ':authority': service.origin.slice('http://'.length),
      ':path': '/',
      te: 'trailers',
      'x-list': '1, 2',
    });
  });

  /** `options` that cannot be sent. */
  function checkInvalid(what: string, options: object, code = 'HTTP2_INVALID_REQUEST') {
    it(`is not sent with ${what}`, async () => {
      const { sessions, service } = await startSessions((stream) => respond(stream));
      await send(sessions).response;
      assert.equal(await codeOf(send(sessions, options)), code);
      assert.equal(service.streams.length, 1);
      assert.equal((await send(sessions).response).status, 200);
    });
  }

  it('does not show in its error what cannot be sent', async () => {
    const { sessions } = await startSessions((stream) => respond(stream));
    const sent = send(sessions, { headers: ['authorization', 'secret\n'] });
    await assert.rejects(sent.response, { message: 'the header authorization has invalid characters' });
  });

  checkInvalid('a space in its path', { path: '/a b' });
  checkInvalid('a line break in its path', { path: '/a\r\nb: c' });
  checkInvalid('a line break in a header', { headers: ['x-a', 'b\r\nc: d'] });
  checkInvalid('a zero byte in a header', { headers: ['x-a', 'b\0c'] });
  checkInvalid('a character of more than one byte in a header', { headers: ['x-a', '\u0100'] });
  checkInvalid('a pseudo-header among its headers', { headers: [':path', '/other'] });
  checkInvalid(
    'a body that is shorter than its length',
    { method: 'POST', headers: ['content-length', '9'], body: 'four' },
    'HTTP2_BODY_LENGTH',
  );

  it('sends a body in memory with its length, and no body in the header block alone', async () => {
    const received: unknown[] = [];
    const { sessions } = await startSessions(async (stream, headers) => {
      const body = stream.endAfterHeaders ? undefined : String(await buffer(stream));
      received.push([headers['content-length'], body]);
      respond(stream);
    });
    for (const body of ['héllo', Buffer.from('hello'), '', undefined])
      await send(sessions, { method: 'POST', ...(body !== undefined && { body }) }).response;
    assert.deepEqual(received, [
      ['6', 'héllo'],
      ['5', 'hello'],
      ['0', undefined],
      [undefined, undefined],
    ]);
  });

  it('sends its head before its body has begun, and streams the body', async () => {
    const { sessions, service } = await startSessions(async (stream) => {
      stream.respond({ ':status': 200 });
      for await (const chunk of stream) stream.write(chunk);
      stream.end();
    });
    const body = new Readable({ read() {} });
    const sent = send(sessions, { method: 'POST', body });
    await eventually(() => assert.equal(service.streams.length, 1));
    await sent.head;
    body.push('one');
    await eventually(() => assert.equal(sent.bytes(), 3));
    body.push('two');
    body.push(null);
    assert.equal(String((await sent.response).body), 'onetwo');
  });

  it('carries large bodies in both directions', async () => {
    const bytes = Buffer.alloc(8 * 1024 * 1024, 'frontdesk');
    const { sessions } = await startSessions((stream) => {
      stream.respond({ ':status': 200 });
      stream.pipe(stream);
    });
    const hash = (data: Buffer) => createHash('sha256').update(data).digest('hex');
    for (const body of [Readable.from([bytes.subarray(0, 5_000_000), bytes.subarray(5_000_000)]), bytes]) {
      const { body: echoed } = await send(sessions, { method: 'POST', body }).response;
      assert.equal(hash(echoed), hash(bytes));
    }
  });

  it('is not read on while the service does not read it', async () => {
    const { sessions, service } = await startSessions((stream) => void stream.pause());
    let read = 0;
    const body = new Readable({
      highWaterMark: 1,
      read() {
        read += 65_536;
        this.push(Buffer.alloc(65_536));
      },
    });
    const sent = send(sessions, { method: 'POST', body });
    await sent.started;
    await eventually(() => assert.ok(read > 65_536));
    // Another request takes its turns on the same session meanwhile.
    let before = -1;
    await eventually(() => {
      const isStill = read === before;
      before = read;
      assert.ok(isStill);
    }, 20);
    assert.ok(read < 1_000_000, String(read));
    sent.abort(new Error('enough'));
    await eventually(() => assert.equal(service.streams[0]?.destroyed, true));
    assert.equal(body.destroyed, true);
  });

  it('is reset when its body breaks off, is too long or too short', async () => {
    const { sessions, service } = await startSessions((stream) => void stream.resume());
    const broken = new Readable({ read() {} });
    const cut = send(sessions, { method: 'POST', body: broken });
    await cut.started;
    broken.push('some');
    broken.destroy(new Error('broken'));
    await assert.rejects(cut.response, { message: 'broken' });
    for (const text of ['hello!', 'four']) {
      const body = Readable.from([Buffer.from(text)]);
      const sent = send(sessions, { method: 'POST', headers: ['content-length', '5'], body });
      assert.equal(await codeOf(sent), 'HTTP2_BODY_LENGTH');
    }
    await eventually(() => assert.ok(service.streams.every(({ destroyed }) => destroyed)));
  });
});

describe('a response over HTTP/2', () => {
  it('has its status, headers and trailers byte for byte, in the order of arrival and with repeats', async () => {
    const { sessions } = await startSessions((stream) => {
      stream.respond(
        { ':status': 201, 'x-bytes': `a${anyBytes}b`, 'set-cookie': ['a=1', 'b=2'], date: 'now' },
        { waitForTrailers: true },
      );
      stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0', 'x-bytes': `a${anyBytes}b` }));
      stream.end('body');
    });
    const { status, headers, body, trailers, endsWithHead } = await send(sessions).response;
    assert.deepEqual([status, String(body), endsWithHead], [201, 'body', false]);
    assert.deepEqual(pairsOf(headers), [
      ['x-bytes', `a${anyBytes}b`],
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2'],
      ['date', 'now'],
    ]);
    assert.deepEqual(pairsOf(trailers), [
      ['grpc-status', '0'],
      ['x-bytes', `a${anyBytes}b`],
    ]);
  });

  it('that ends with its header block differs from one with an empty body', async () => {
    const { sessions } = await startSessions((stream, { ':path': path }) => {
      if (path === '/head') stream.respond({ ':status': 200, 'grpc-status': '5' }, { endStream: true });
      else respond(stream, '');
    });
    const ends = await Promise.all(
      ['/head', '/empty'].map(async (path) => (await send(sessions, { path }).response).endsWithHead),
    );
    assert.deepEqual(ends, [true, false]);
  });

  it('to a HEAD may have a length', async () => {
    const { sessions } = await startSessions((stream) =>
      stream.respond({ ':status': 200, 'content-length': '5' }, { endStream: true }),
    );
    const { status, body } = await send(sessions, { method: 'HEAD' }).response;
    assert.deepEqual([status, body.length], [200, 0]);
  });

  it('follows interim responses', async () => {
    const { sessions } = await startSessions((stream) => {
      stream.additionalHeaders({ ':status': 100 });
      stream.additionalHeaders({ ':status': 103, link: '</a.css>; rel=preload' });
      respond(stream);
    });
    const { interims, body } = await send(sessions).response;
    assert.deepEqual(interims, [
      [100, []],
      [103, ['link', '</a.css>; rel=preload']],
    ]);
    assert.equal(String(body), 'ok');
  });

  it('is not sent on while its receiver pauses, while other responses of the session go on', async () => {
    let written = 0;
    const { sessions, service } = await startSessions((stream, { ':path': path }) => {
      if (path === '/small') {
        respond(stream);
        return;
      }
      stream.respond({ ':status': 200 });
      const more = () => {
        while (stream.writable && stream.write(Buffer.alloc(16_384))) written += 16_384;
      };
      stream.on('drain', more);
      more();
    });
    const slow = send(sessions, { path: '/endless', isPaused: true });
    const controller = await slow.head;
    let before = -1;
    await eventually(async () => {
      assert.equal((await send(sessions, { path: '/small' }).response).status, 200);
      const isStill = written === before;
      before = written;
      assert.ok(isStill);
    }, 20);
    assert.ok(written < 1_500_000, String(written));
    assert.equal(service.sessions.length, 1);
    controller.resume();
    await eventually(() => assert.ok(slow.bytes() > before));
    slow.abort(new Error('enough'));
    await eventually(() => assert.equal(service.streams[0]?.destroyed, true));
  });

  it('arrives completely although its receiver pauses while the service ends the connection', async () => {
    const { sessions, service } = await startSessions((stream) => respond(stream, Buffer.alloc(100_000)));
    const sent = send(sessions, { isPaused: true });
    const controller = await sent.head;
    await eventually(() => assert.equal(service.streams[0]?.destroyed, true));
    const [socket] = service.sockets;
    const closed = closeOf(socket as NonNullable<typeof socket>);
    socket?.destroy();
    await closed;
    await eventually(() => assert.equal(sent.bytes(), 100_000));
    controller.resume();
    assert.equal((await sent.response).body.length, 100_000);
  });

  it('ends the request, even if the body is not complete', async () => {
    const { sessions, service } = await startSessions((stream) => respond(stream, 'early'));
    const body = new Readable({ read() {} });
    const sent = send(sessions, { method: 'POST', body });
    assert.equal(String((await sent.response).body), 'early');
    await eventually(() => assert.equal(service.streams[0]?.destroyed, true));
    assert.equal(body.destroyed, true);
  });

  function checkHeaders(what: string, bytes: number, names: number, expected: unknown) {
    it(`may have ${what}: ${expected}`, async () => {
      const headers: Record<string, string> = {};
      for (let index = 0; index < names; index += 1) headers[`x-${index}`] = 'x'.repeat(bytes / names);
      const service = await startHttp2(servers, (stream, { ':path': path }) => {
        stream.respond({ ':status': 200, ...(path === '/large' && headers) });
        stream.end();
      });
      const sessions = sessionsTo(servers, service, { headerBytesMax: 16_384 });
      assert.equal(await codeOf(send(sessions, { path: '/large' })), expected);
      assert.equal(await codeOf(send(sessions)), 200);
    });
  }

  checkHeaders('many headers', 300, 300, 200);
  checkHeaders('large headers', 15_000, 10, 200);
  checkHeaders('no larger headers', 20_000, 10, 'HTTP2_HEADERS_OVERFLOW');
  checkHeaders('no header that is much larger', 60_000, 1, 'HTTP2_HEADERS_OVERFLOW');
  checkHeaders('no more headers than fit', 600, 600, 'HTTP2_HEADERS_OVERFLOW');
});

function pairsOf(list: readonly string[]): string[][] {
  return list.flatMap((name, index) => (index % 2 === 0 ? [[name, list[index + 1] ?? '']] : []));
}

describe('the events of a response over HTTP/2', () => {
  it('begin with the head, although Node emits it after the data and the end that arrived with it', async () => {
    const sent = { writableEnded: true, writableLength: 0 };
    const stream = Object.assign(new Readable({ read() {} }), sent) as unknown as ClientHttp2Stream;
    const seen: unknown[] = [];
    const handler = {
      onResponseStart: (_controller: unknown, status: number) => void seen.push(status),
      onResponseData: (_controller: unknown, chunk: Buffer) => void seen.push(String(chunk)),
      onResponseEnd: () => void seen.push('end'),
      onResponseError: (_controller: unknown, cause: Error) => void seen.push(cause),
    };
    const session = {
      lastStreamId: 1,
      headerBytesMax: 1000,
      failure: undefined,
      hasEnded: () => false,
      onActivity() {},
      onClosed() {},
      onAborted() {},
    };
    const options = { path: '/', method: 'GET' as const };
    const request = { options, handler, isFresh: false, connection: undefined, openSocket: 0 };
    new Exchange(session, stream, request, 0, 0).send(null, undefined);
    // Node resumes the stream by now, if something listens for its data.
    await new Promise(setImmediate);
    for (const chunk of ['data', null]) stream.push(chunk);
    stream.emit('response', { ':status': 200 }, 0, [':status', '200']);
    await closeOf(stream);
    assert.deepEqual(seen, [200, 'data', 'end']);
  });
});

describe('a stream that the service resets', () => {
  function check(what: string, code: number, expected: unknown) {
    it(`before a response with ${what} fails with ${expected}, and its session goes on`, async () => {
      const { sessions, service } = await startSessions((stream, { ':path': path }) => {
        if (path === '/reset') stream.close(code);
        else respond(stream);
      });
      await send(sessions).response;
      await assert.rejects(send(sessions, { path: '/reset' }).response, { code: expected, isReused: false });
      await send(sessions).response;
      assert.equal(service.sessions.length, 1);
    });
  }

  check('REFUSED_STREAM', NGHTTP2_REFUSED_STREAM, 'HTTP2_REFUSED');
  check('INTERNAL_ERROR', NGHTTP2_INTERNAL_ERROR, 'HTTP2_RESET');
  check('CANCEL', NGHTTP2_CANCEL, 'HTTP2_RESET');
  check('NO_ERROR', NGHTTP2_NO_ERROR, 'HTTP2_RESET');

  /** A service that sends these frames after the header block of a request. */
  function startFraming(...frames: readonly Buffer[]) {
    return startMute(servers, (socket, data) => {
      if (framesIn(data, 1).length > 0) socket.write(Buffer.concat(frames));
    });
  }

  const length100 = [0x0f, 0x0d, 3, 0x31, 0x30, 0x30];
  const part = frame(0, 0, Buffer.from('part'));
  const reset = (code: number) => frame(3, 0, Buffer.from([0, 0, 0, code]));

  for (const code of [NGHTTP2_NO_ERROR, NGHTTP2_CANCEL, NGHTTP2_REFUSED_STREAM])
    for (const [what, ...fields] of [
      ['without', ok],
      ['with', ok, ...length100],
    ] as const)
      it(`within a body ${what} a length breaks it off, with code ${code}`, async () => {
        const service = await startFraming(frame(1, 4, Buffer.from(fields)), part, reset(code));
        const sent = send(sessionsTo(servers, service));
        await sent.head;
        assert.equal(await codeOf(sent), 'HTTP2_RESET');
      });
});

describe('a request that is aborted', () => {
  const endings: readonly (readonly [what: string, expected: number | string, response: readonly Buffer[]])[] = [
    ['a complete response', 200, [frame(1, 4, Buffer.from([ok])), frame(0, 1, Buffer.from('ok'))]],
    ['a part of a response', 'HTTP2_RESET', [frame(1, 4, Buffer.from([ok])), frame(0, 0, Buffer.from('ok'))]],
    ['no response', 'HTTP2_RESET', []],
  ];
  for (const [what, expected, response] of endings)
    it(`leaves nothing behind when ${what} and a reset with NO_ERROR end it within its body`, async () => {
      let hasAnswered = false;
      const mute = await startMute(servers, (socket) => {
        if (hasAnswered || socket.bytesRead < 65_535) return;
        hasAnswered = true;
        socket.write(Buffer.concat([...response, frame(3, 0, Buffer.alloc(4))]));
      });
      const sessions = sessionsTo(servers, mute);
      const sent = send(sessions, { method: 'POST', body: Readable.from([Buffer.alloc(200_000)]) });
      assert.equal(await codeOf(sent), expected);
      // Resolves when no request is left.
      await sessions.close();
    });

  it('is cancelled at the service, before and after the head of its response', async () => {
    const codes: number[] = [];
    const { sessions, service } = await startSessions((stream, { ':path': path }) => {
      stream.once('close', () => codes.push(stream.rstCode));
      if (path === '/head') stream.respond({ ':status': 200 });
    });
    const before = send(sessions);
    await eventually(() => assert.equal(service.streams.length, 1));
    const after = send(sessions, { path: '/head' });
    await after.head;
    const reason = new Error('not needed');
    for (const sent of [before, after]) {
      sent.abort(reason);
      sent.abort(new Error('again'));
      await assert.rejects(sent.response, reason);
    }
    await eventually(() => assert.deepEqual(codes, [NGHTTP2_CANCEL, NGHTTP2_CANCEL]));
    assert.equal(service.sessions.length, 1);
  });
});

describe('GOAWAY', () => {
  /** Sends ten requests, which wait, and lets the service announce that it has processed three of them. */
  async function sendTen(code: number) {
    const waiting = new Map<string, ServerHttp2Stream>();
    let goaways = 0;
    const service = await startHttp2(servers, (stream, { ':path': path }) => {
      if (stream.session === service.sessions[0]) waiting.set(String(path), stream);
      else respond(stream);
    });
    const sessions = sessionsTo(servers, service, {
      onGoaway() {
        goaways += 1;
      },
    });
    const sent = Array.from({ length: 10 }, (_, index) => send(sessions, { path: `/${index}` }));
    await eventually(() => assert.equal(waiting.size, 10));
    service.sessions[0]?.goaway(code, waiting.get('/2')?.id);
    return { service, sessions, sent, waiting, goaways: () => goaways };
  }

  it('fails the requests that were not processed, and finishes the others, while new ones use a new session', async () => {
    const { service, sessions, sent, waiting, goaways } = await sendTen(NGHTTP2_NO_ERROR);
    for (const one of sent.slice(3)) assert.equal(await codeOf(one), 'HTTP2_REFUSED');
    assert.equal(goaways(), 1);
    assert.equal((await send(sessions).response).status, 200);
    const closed = once(service.sessions[0] as NonNullable<(typeof service.sessions)[0]>, 'close');
    for (const stream of waiting.values()) if (!stream.destroyed) respond(stream, 'late');
    for (const { response } of sent.slice(0, 3)) assert.equal(String((await response).body), 'late');
    await closed;
  });

  it('with an error also fails those that may have been processed, but in another way', async () => {
    const { sent, sessions } = await sendTen(NGHTTP2_ENHANCE_YOUR_CALM);
    const codes = await Promise.all(sent.map(codeOf));
    assert.deepEqual(codes, [...Array(3).fill('HTTP2_RESET'), ...Array(7).fill('HTTP2_REFUSED')]);
    assert.equal((await send(sessions).response).status, 200);
  });

  it('closes the connection after the last request, even if the service leaves it open', async () => {
    const closed = createDeferred();
    const goaway = Buffer.from([0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
    const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => {}).once('close', closed.resolve);
      socket.write(settings);
      socket.on('data', (data) => {
        if (framesIn(data, 1).length > 0) socket.write(Buffer.concat([goaway, frame(1, 5, Buffer.from([ok]))]));
      });
      // The client resets the connection when it receives something although it has closed it.
      socket.on('end', () => {
        const timer = setInterval(() => socket.write(goaway), 5);
        socket.once('close', () => clearInterval(timer));
      });
    });
    const sessions = sessionsTo(servers, await servers.listen(server));
    assert.equal((await send(sessions).response).status, 200);
    await closed.promise;
  });
});
