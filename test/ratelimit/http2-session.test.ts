/** Our half of HTTP/2 against node:http2, and against a peer that says what no library would. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import * as http2 from 'node:http2';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import fc from 'fast-check';
import type { Field } from '../../src/ratelimit/hpack-static-table.ts';
import {
  createFrameReader,
  type Frame,
  flag,
  formatFrame,
  formatNumberFrame,
  formatSettings,
  frameType,
  preface,
} from '../../src/ratelimit/http2-frame.ts';
import { type Http2Session, openHttp2Session } from '../../src/ratelimit/http2-session.ts';
import type { StreamEnd } from '../../src/ratelimit/http2-stream.ts';

const headers: readonly Field[] = [
  { name: ':method', value: 'POST' },
  { name: ':scheme', value: 'http' },
  { name: ':authority', value: 'example' },
  { name: ':path', value: `/${'p'.repeat(300)}` },
  { name: 'te', value: 'trailers' },
];

describe('a connection over HTTP/2', () => {
  const servers: (Server | http2.Http2Server)[] = [];
  const sockets = new Set<Socket>();
  const sessions: Http2Session[] = [];

  afterEach(async () => {
    await Promise.all(sessions.splice(0).map((session) => session.close()));
    for (const socket of sockets) socket.destroy();
    sockets.clear();
    await Promise.all(servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve))));
  });

  async function listen(server: Server | http2.Http2Server): Promise<Http2Session & { gone: () => boolean }> {
    servers.push(server);
    server.on('connection', (socket: Socket) => sockets.add(socket.on('error', () => {})));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    let gone = false;
    const session = openHttp2Session({
      host: '127.0.0.1',
      port: (server.address() as AddressInfo).port,
      timeoutMs: 5_000,
      headers,
      onGone: () => {
        gone = true;
      },
    });
    sessions.push(session);
    return { ...session, gone: () => gone };
  }

  function serve(onStream: (stream: http2.ServerHttp2Stream) => void, settings: http2.Settings = {}) {
    const server = http2.createServer({ settings, maxDeflateDynamicTableSize: 4_096 });
    server.on('sessionError', () => {});
    server.on('stream', (stream) => onStream(stream.on('error', () => {})));
    return listen(server);
  }

  interface Answered {
    readonly end: StreamEnd;
    readonly headers: readonly Field[] | undefined;
    readonly trailers: readonly Field[] | undefined;
    readonly body: Buffer;
  }

  function ask(session: Http2Session, body: Buffer = Buffer.from('body')): Promise<Answered> {
    const chunks: Buffer[] = [];
    return new Promise((resolve) => {
      session.request(body, {
        onData: (chunk) => chunks.push(chunk),
        onEnd: (end, stream) =>
          resolve({ end, headers: stream.headers, trailers: stream.trailers, body: Buffer.concat(chunks) }),
      });
    });
  }

  describe('with node:http2', () => {
    it('reads every header that another encoder writes, however it writes it', async () => {
      const sent: http2.OutgoingHttpHeaders[] = [];
      const session = await serve((stream) => stream.respond({ ':status': 200, ...sent.shift() }, { endStream: true }));
      const name = fc.stringMatching(/^x-[a-z0-9-]{1,12}$/);
      // Visible, and so often alike that tables are worth it; long ones push others out.
      const value = fc.oneof(
        fc.constantFrom('a', 'application/grpc', '12:00'),
        fc.stringMatching(/^[!-~]{1,60}$/),
        fc.stringMatching(/^[!-~\x80-\xff]{1,20}$/),
        fc.nat(3_000).map((length) => `l${'o'.repeat(length)}ng`),
      );
      await fc.assert(
        fc.asyncProperty(fc.dictionary(name, value, { maxKeys: 8, noNullPrototype: true }), async (fields) => {
          sent.push(fields);
          const answered = await ask(session);
          const read = Object.fromEntries((answered.headers ?? []).map((field) => [field.name, field.value]));
          const { ':status': status, date, ...rest } = read;
          assert.equal(status, '200');
          assert.ok(date);
          assert.deepEqual(rest, fields);
        }),
      );
    });

    for (const headerTableSize of [undefined, 0, 100, 65_536]) {
      it(`sends the same headers each time to a peer whose table has ${headerTableSize ?? 'the usual'} bytes`, async () => {
        const seen: object[] = [];
        const server = http2.createServer(headerTableSize === undefined ? {} : { settings: { headerTableSize } });
        server.on('stream', (stream, received) => {
          seen.push(Object.fromEntries(Object.entries(received)));
          stream.respond({ ':status': 200 }, { endStream: true });
        });
        const session = await listen(server);
        for (let count = 0; count < 3; count += 1) await ask(session);
        const expected = Object.fromEntries(headers.map(({ name, value }) => [name, value]));
        for (const received of seen) assert.deepEqual(received, expected);
        assert.equal(seen.length, 3);
      });
    }

    it('sends what is larger than the windows of the peer, as they open', async () => {
      const session = await serve(
        (stream) => {
          stream.respond({ ':status': 200 });
          stream.pipe(stream);
        },
        { initialWindowSize: 1_000 },
      );
      const bodies = [1, 999, 1_000, 1_001, 20_000, 120_000].map((length) => Buffer.alloc(length, `${length}`));
      for (const answered of await Promise.all(bodies.map((body) => ask(session, body)))) {
        assert.deepEqual(answered.end, { kind: 'complete' });
        assert.ok(bodies.some((body) => body.equals(answered.body)));
      }
    });

    it('reads more than its own windows, all answers together', async () => {
      const session = await serve((stream) => {
        stream.respond({ ':status': 200 });
        stream.end(Buffer.alloc(60_000));
      });
      const answers = await Promise.all(Array.from({ length: 60 }, () => ask(session)));
      for (const { body } of answers) assert.equal(body.length, 60_000);
    });

    it('has no more requests at once than the peer takes, and forgets none', async () => {
      let running = 0;
      let most = 0;
      const session = await serve(
        (stream) => {
          running += 1;
          most = Math.max(most, running);
          setImmediate(() => {
            running -= 1;
            stream.respond({ ':status': 200 }, { endStream: true });
          });
        },
        { maxConcurrentStreams: 2 },
      );
      // The peer says so only after the first ones are there.
      await ask(session);
      most = 0;
      const answers = await Promise.all(Array.from({ length: 20 }, () => ask(session)));
      assert.equal(most, 2);
      assert.ok(answers.every(({ end }) => end.kind === 'complete'));
    });

    it('tells the peer which request is cancelled', async () => {
      let cancel = () => {};
      let closed: Promise<unknown> | undefined;
      const session = await serve((stream) => {
        closed = once(stream, 'close').then(() => stream.rstCode);
        cancel();
      });
      const reached = new Promise<void>((resolve) => {
        cancel = resolve;
      });
      const stream = session.request(Buffer.from('x'), {
        onData: () => {},
        onEnd: () => assert.fail('it was cancelled'),
      });
      await reached;
      session.cancel(stream);
      assert.equal(await closed, http2.constants.NGHTTP2_CANCEL);
    });
  });

  /** A peer that sends `bytes` as soon as a request is there, and keeps the frames that it gets. */
  async function peer(greeting: Buffer = formatSettings([])) {
    const frames = new EventEmitter();
    const seen: Frame[] = [];
    let socket: Socket | undefined;
    const server = createServer((accepted) => {
      socket = accepted;
      accepted.write(greeting);
      const read = createFrameReader((frame) => {
        seen.push({ ...frame, payload: Buffer.from(frame.payload) });
        frames.emit('frame');
      });
      let skip = preface.length;
      accepted.on('data', (chunk) => {
        const rest = chunk.subarray(Math.min(skip, chunk.length));
        skip -= chunk.length - rest.length;
        read(rest);
      });
    });
    const session = await listen(server);
    async function frame(wanted: (frame: Frame) => boolean): Promise<Frame> {
      for (;;) {
        const found = seen.find(wanted);
        if (found !== undefined) return found;
        await once(frames, 'frame');
      }
    }
    const requested = (id: number) => frame(({ type, stream }) => type === frameType.data && stream === id);
    return { session, frame, requested, send: (...bytes: readonly Buffer[]) => socket?.write(Buffer.concat(bytes)) };
  }

  const block = (hex: string) => Buffer.from(hex, 'hex');
  /** `:status: 200`, and a literal `a: b`. */
  const status200 = block('88');
  const aIsB = block('000161' + '0162');
  const respond = (id: number, flags = flag.endHeaders | flag.endStream, bytes = status200) =>
    formatFrame(frameType.headers, flags, id, bytes);

  describe('with a peer of few words', () => {
    it('reads padding, priorities, informational headers, and a block in parts', async () => {
      const { session, requested, send } = await peer();
      const answer = ask(session);
      await requested(1);
      const padded = Buffer.concat([block('02' + '0000000010'), status200, Buffer.alloc(2)]);
      send(
        respond(1, flag.endHeaders, block('080331303' + '3')),
        formatFrame(frameType.headers, flag.padded | flag.priority, 1, padded),
        formatFrame(frameType.continuation, 0, 1, aIsB.subarray(0, 2)),
        formatFrame(frameType.continuation, flag.endHeaders, 1, aIsB.subarray(2)),
        formatFrame(frameType.data, flag.padded, 1, block('01' + '6869' + '00')),
        formatFrame(frameType.data, flag.endStream, 1, block('21')),
      );
      assert.deepEqual(await answer, {
        end: { kind: 'complete' },
        headers: [
          { name: ':status', value: '200' },
          { name: 'a', value: 'b' },
        ],
        trailers: undefined,
        body: Buffer.from('hi!'),
      });
    });

    it('reads an answer that arrives byte by byte', async () => {
      const { session, requested, send } = await peer();
      const answer = ask(session);
      await requested(1);
      const bytes = Buffer.concat([
        respond(1, flag.endHeaders),
        formatFrame(frameType.data, 0, 1, block('6869')),
        respond(1, flag.endHeaders | flag.endStream, aIsB),
      ]);
      for (const byte of bytes) {
        send(Buffer.from([byte]));
        await new Promise(setImmediate);
      }
      const { body, trailers } = await answer;
      assert.equal(body.toString(), 'hi');
      assert.deepEqual(trailers, [{ name: 'a', value: 'b' }]);
    });

    it('knows fields by number as long as the table has room for them', async () => {
      const { session, requested, send } = await peer();
      const answer = ask(session);
      await requested(1);
      // Both together fill it to the last byte.
      send(respond(1, undefined, block(`8840016101624001637fbe1e${'61'.repeat(4_029)}bf`)));
      assert.deepEqual((await answer).headers?.at(-1), { name: 'a', value: 'b' });
    });

    it('answers pings and settings, and skips what nobody knows', async () => {
      const { session, requested, frame, send } = await peer();
      const answer = ask(session);
      await requested(1);
      await frame(({ type, flags }) => type === frameType.settings && flags === flag.ack);
      send(
        formatFrame(0x42, 0xff, 1, Buffer.alloc(100)),
        formatFrame(frameType.ping, 0, 0, Buffer.from('abcdefgh')),
        formatFrame(frameType.ping, flag.ack, 0, Buffer.from('--------')),
        respond(1),
      );
      const { payload } = await frame(({ type, flags }) => type === frameType.ping && flags === flag.ack);
      assert.equal(payload.toString(), 'abcdefgh');
      assert.deepEqual((await answer).end, { kind: 'complete' });
    });

    it('takes an answer to half a question for an answer, and takes the rest back', async () => {
      const { session, frame, send } = await peer(formatSettings([[4, 10]]));
      const first = ask(session);
      await frame(({ type, flags }) => type === frameType.settings && flags === flag.ack);
      send(respond(1));
      await first;
      const answer = ask(session, Buffer.alloc(5_000));
      const half = await frame(({ type, stream }) => type === frameType.data && stream === 3);
      assert.deepEqual([half.payload.length, half.flags], [10, 0]);
      send(respond(3));
      assert.deepEqual((await answer).end, { kind: 'complete' });
      const { payload } = await frame(({ type, stream }) => type === frameType.reset && stream === 3);
      assert.equal(payload.readUInt32BE(0), http2.constants.NGHTTP2_CANCEL);
    });

    it('after a GOAWAY loses only the requests that the peer has not seen, and ends when the others have', async () => {
      const { session, requested, send } = await peer();
      const [first, second] = [ask(session), ask(session)];
      await requested(3);
      send(formatFrame(frameType.goAway, 0, 0, block('00000001' + '00000000')));
      assert.equal((await second).end.kind, 'lost');
      assert.equal(session.gone(), true);
      send(respond(1));
      assert.deepEqual((await first).end, { kind: 'complete' });
      assert.equal((await ask(session)).end.kind, 'lost');
    });

    it('does not mind what is said of a request that has ended', async () => {
      const { session, requested, send } = await peer();
      const stream = session.request(Buffer.from('x'), {
        onData: () => {},
        onEnd: () => assert.fail('it was cancelled'),
      });
      await requested(1);
      session.cancel(stream);
      const answer = ask(session);
      await requested(3);
      send(
        respond(1, flag.endHeaders, block('40' + '0161' + '0162')),
        formatFrame(frameType.data, flag.endStream, 1, block('00')),
        formatNumberFrame(frameType.windowUpdate, 1, 9),
        formatNumberFrame(frameType.reset, 1, 0),
        // The block that nobody waited for is known all the same.
        respond(3, flag.endHeaders | flag.endStream, block('88' + 'be')),
      );
      assert.deepEqual((await answer).headers?.at(-1), { name: 'a', value: 'b' });
    });
  });

  describe('gives a stream up, and no more than that, for', () => {
    const check = (what: string, ...frames: readonly Buffer[]) =>
      it(what, async () => {
        const { session, requested, frame, send } = await peer();
        const answer = ask(session);
        await requested(1);
        send(...frames);
        assert.equal((await answer).end.kind, 'reset');
        const { payload } = await frame(({ type, stream }) => type === frameType.reset && stream === 1);
        assert.equal(payload.readUInt32BE(0), 1);
        const next = ask(session);
        await requested(3);
        send(respond(3));
        assert.deepEqual((await next).end, { kind: 'complete' });
      });

    check('a body before its headers', formatFrame(frameType.data, 0, 1, block('00')));
    check('headers in the middle', respond(1, flag.endHeaders), respond(1, flag.endHeaders));
    check('an informational end', respond(1, flag.endHeaders | flag.endStream, block('0803313033')));
  });

  describe('ends, and says why, for', () => {
    const check = (what: string, code: number, frames: readonly Buffer[], greeting?: Buffer) =>
      it(what, async () => {
        const { session, frame, requested, send } = await peer(greeting);
        const answer = ask(session);
        if (greeting === undefined) await requested(1);
        send(...frames);
        const { end } = await answer;
        assert.equal(end.kind, 'lost');
        const { payload } = await frame(({ type }) => type === frameType.goAway);
        assert.equal(payload.readUInt32BE(4), code);
        assert.equal(session.gone(), true);
      });
    const { constants } = http2;
    const protocol = constants.NGHTTP2_PROTOCOL_ERROR;
    const size = constants.NGHTTP2_FRAME_SIZE_ERROR;
    const compression = constants.NGHTTP2_COMPRESSION_ERROR;
    const flow = constants.NGHTTP2_FLOW_CONTROL_ERROR;
    const frameOf = (type: number, stream: number, hex: string, flags = 0) =>
      formatFrame(type, flags, stream, block(hex));

    check('a frame that is too long', size, [formatFrame(frameType.data, 0, 1, Buffer.alloc(16_385))]);
    check('no settings first', protocol, [], frameOf(frameType.ping, 0, '00'.repeat(8)));
    check('a stream that never was', protocol, [respond(3)]);
    check('a body for a stream of its own', protocol, [frameOf(frameType.data, 2, '00')]);
    check('a reset of a stream that never was', protocol, [formatNumberFrame(frameType.reset, 5, 0)]);
    check('a push', protocol, [frameOf(frameType.pushPromise, 1, '00000002' + '88', flag.endHeaders)]);
    check('settings for a stream', protocol, [frameOf(frameType.settings, 1, '')]);
    check('settings of a wrong size', size, [frameOf(frameType.settings, 0, '0001')]);
    check('an acknowledgement that says something', size, [frameOf(frameType.settings, 0, '000100000000', flag.ack)]);
    check('a ping of a wrong size', size, [frameOf(frameType.ping, 0, '00')]);
    check('a reset of a wrong size', size, [frameOf(frameType.reset, 1, '00')]);
    check('a GOAWAY of a wrong size', size, [frameOf(frameType.goAway, 0, '00')]);
    check('a window opened by nothing', protocol, [formatNumberFrame(frameType.windowUpdate, 0, 0)]);
    check('a window that is too wide', flow, [formatNumberFrame(frameType.windowUpdate, 0, 0x7fff_ffff)]);
    check('a first window that is too wide', flow, [formatSettings([[4, 0x8000_0000]])]);
    check('more padding than there is', protocol, [frameOf(frameType.data, 1, '05' + '00', flag.padded)]);
    check('a CONTINUATION of nothing', protocol, [frameOf(frameType.continuation, 1, '88', flag.endHeaders)]);
    check('a header block that is interrupted', protocol, [respond(1, 0), frameOf(frameType.ping, 0, '00'.repeat(8))]);
    check('a header block without end', constants.NGHTTP2_ENHANCE_YOUR_CALM, [
      respond(1, 0),
      ...Array.from({ length: 40 }, () => frameOf(frameType.continuation, 1, '')),
    ]);
    check('a header block that is too long', constants.NGHTTP2_ENHANCE_YOUR_CALM, [
      respond(1, 0),
      formatFrame(frameType.continuation, flag.endHeaders, 1, Buffer.alloc(16_384, 0x88)),
    ]);
    const badBlock = (what: string, hex: string) => check(what, compression, [respond(1, flag.endHeaders, block(hex))]);
    badBlock('a field without a number', '80');
    badBlock('a field that is not in the table', 'be');
    // Both together are one byte more than the table.
    badBlock('a field that was pushed out', `40016101624001637fbf1e${'61'.repeat(4_030)}bf`);
    badBlock('a header block that is cut short', '0005' + '61');
    badBlock('a number that is too large', 'ff'.repeat(6));
    badBlock('a table that is too large', '3fe21f');
    badBlock('a text that is not padded with ones', '0001' + '61' + '81' + '18');
    badBlock('a text that is padded with a whole byte', '000161' + '82' + '1fff');
    badBlock('a text with the end-of-string code', '000161' + '84' + 'ffffffff');
  });
});
