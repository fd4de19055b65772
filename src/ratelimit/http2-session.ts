/** A connection to an HTTP/2 server (RFC 9113) for one kind of request: as little of the protocol as that takes, and all of its rules. */
import { connect, type LookupFunction } from 'node:net';
import { createBlockEncoder } from './hpack-encoder.ts';
import type { Field } from './hpack-static-table.ts';
import {
  ConnectionError,
  createFrameReader,
  errorCode,
  formatFrame,
  formatNumberFrame,
  formatSettings,
  frameType,
  preface,
  setting,
} from './http2-frame.ts';
import { createHttp2Receiver } from './http2-receiver.ts';
import { createHttp2Sender } from './http2-sender.ts';
import { createStream, type Stream, type StreamEnd, type StreamListener } from './http2-stream.ts';

export interface Http2SessionOptions {
  readonly host: string;
  readonly port: number;
  readonly lookup?: LookupFunction | undefined;
  /** For the connect. */
  readonly timeoutMs: number;
  /** Of every request. */
  readonly headers: readonly Field[];
  /** Called once, as soon as the session takes no more requests: those that run may still finish. */
  readonly onGone: () => void;
}

export interface Http2Session {
  request(body: Buffer, listener: StreamListener): Stream;
  /** The listener hears nothing more. */
  cancel(stream: Stream): void;
  isConnecting(): boolean;
  destroy(error: Error): void;
  /** Ends the requests that run; resolves when the connection is gone. */
  close(): Promise<void>;
}

/** Of one answer; more than its reader takes, so that no stream needs a window opened. */
const streamWindow = 131_072;
/** Of all answers together; opened again when half of it is used. */
const connectionWindow = 1_048_576;
const firstConnectionWindow = 65_535;
/** Of what the peer does not read. */
const unsentBytesMax = 8_388_608;
const readBytes = 65_536;

/** Does not keep the process alive. */
export function openHttp2Session(options: Http2SessionOptions): Http2Session {
  const { host, port, lookup, timeoutMs, headers, onGone } = options;
  // One buffer for the whole connection, in place of one for each read.
  const inbox = Buffer.allocUnsafe(readBytes);
  const socket = connect({
    host,
    port,
    noDelay: true,
    ...(lookup && { lookup }),
    onread: { buffer: inbox, callback: (length) => read(inbox.subarray(0, length)) },
  });
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const sender = createHttp2Sender(write, createBlockEncoder(headers));
  const receiver = createHttp2Receiver({ sender, write, finish, goAway });
  const readFrames = createFrameReader(receiver.take);
  let queue: Buffer[] = [];
  let isGone = false;
  let failure: Error | undefined;

  /** Everything that is to be sent in one turn of the event loop is sent at once. */
  function write(bytes: Buffer): void {
    if (queue.push(bytes) === 1) setImmediate(flush);
  }

  function flush(): void {
    const bytes = queue.length === 1 ? queue[0] : Buffer.concat(queue);
    queue = [];
    if (failure !== undefined || bytes === undefined) return;
    socket.write(bytes);
    if (socket.writableLength > unsentBytesMax) destroy(new Error('it does not read what it is sent'));
  }

  function read(bytes: Buffer): boolean {
    try {
      if (failure === undefined) readFrames(bytes);
    } catch (error) {
      destroy(error instanceof Error ? error : new Error(String(error)));
    }
    return true;
  }

  function finish(stream: Stream, end: StreamEnd, code?: number): void {
    sender.drop(stream, code);
    stream.listener.onEnd(end, stream);
    endIfIdle();
  }

  /** The peer has seen the streams up to `last`, and will see no other. */
  function goAway(last: number, error: Error): void {
    gone();
    for (const stream of sender.all()) if (stream.id === 0 || stream.id > last) finish(stream, { kind: 'lost', error });
    endIfIdle();
  }

  function gone(): void {
    if (isGone) return;
    isGone = true;
    onGone();
  }

  function endIfIdle(): void {
    if (isGone && failure === undefined && sender.isIdle()) destroy(new Error('the connection ended'));
  }

  function destroy(error: Error): void {
    if (failure !== undefined) return;
    failure = error;
    clearTimeout(timer);
    if (!socket.connecting && socket.writable) socket.write(goAwayFrame(error));
    socket.destroy();
    gone();
    for (const stream of sender.all()) {
      sender.drop(stream);
      stream.listener.onEnd({ kind: 'lost', error }, stream);
    }
  }

  const timer = setTimeout(() => destroy(new Error(`no connection within ${timeoutMs} ms`)), timeoutMs);
  timer.unref();
  socket.unref();
  socket.resume();
  socket.once('connect', () => clearTimeout(timer));
  socket.on('error', destroy);
  socket.once('end', () => destroy(new Error('the connection ended')));
  socket.once('close', () => destroy(new Error('the connection ended')));
  write(opening());

  return Object.freeze({
    request(body: Buffer, listener: StreamListener): Stream {
      const stream = createStream(body, listener);
      if (failure !== undefined) listener.onEnd({ kind: 'lost', error: failure }, stream);
      else sender.submit(stream);
      if (sender.isSpent()) gone();
      return stream;
    },
    cancel(stream: Stream): void {
      if (failure !== undefined) return;
      sender.drop(stream, errorCode.cancel);
      endIfIdle();
    },
    isConnecting: () => socket.connecting,
    destroy,
    close(): Promise<void> {
      destroy(new Error('the client is closed'));
      return closed;
    },
  });
}

function opening(): Buffer {
  return Buffer.concat([
    Buffer.from(preface, 'latin1'),
    formatSettings([
      [setting.enablePush, 0],
      [setting.initialWindowSize, streamWindow],
    ]),
    formatNumberFrame(frameType.windowUpdate, 0, connectionWindow - firstConnectionWindow),
  ]);
}

function goAwayFrame(error: Error): Buffer {
  const payload = Buffer.alloc(8);
  payload.writeUInt32BE(error instanceof ConnectionError ? error.code : errorCode.none, 4);
  return formatFrame(frameType.goAway, 0, 0, payload);
}
