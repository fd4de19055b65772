/** The half of an HTTP/2 connection that reads answers: each frame to its stream, and every breach of the rules to its end. */
import { createHpackDecoder } from './hpack-decoder.ts';
import type { Field } from './hpack-static-table.ts';
import {
  ConnectionError,
  contentOf,
  errorCode,
  type Frame,
  flag,
  formatFrame,
  formatNumberFrame,
  frameType,
} from './http2-frame.ts';
import type { Http2Sender } from './http2-sender.ts';
import { fieldValue, type Stream, type StreamEnd } from './http2-stream.ts';

export interface Http2ReceiverOptions {
  readonly sender: Http2Sender;
  readonly write: (bytes: Buffer) => void;
  /** With `code` the peer is told that the stream is given up. */
  readonly finish: (stream: Stream, end: StreamEnd, code?: number) => void;
  readonly goAway: (last: number, error: Error) => void;
}

export interface Http2Receiver {
  /** Throws a `ConnectionError` for what no peer may send. */
  take(frame: Frame): void;
}

/** A header block that is longer is a breach, whatever it says. */
const blockBytesMax = 16_384;
const blockFramesMax = 32;

/** So much is read before the connection's window is opened again. */
const windowStep = 524_288;

export function createHttp2Receiver({ sender, write, finish, goAway }: Http2ReceiverOptions): Http2Receiver {
  const decode = createHpackDecoder();
  let isGreeted = false;
  /** A header block whose rest is still to come. */
  let block: { readonly stream: number; readonly endStream: boolean; bytes: Buffer; frames: number } | undefined;
  let readBytes = 0;

  function streamOf({ stream, type }: Frame): Stream | undefined {
    // A stream that has ended may have had frames under way.
    if (!sender.hasBegun(stream)) throw breach(`a frame of type ${type} for a stream that never was`);
    return sender.find(stream);
  }

  function takeData(frame: Frame): void {
    const stream = streamOf(frame);
    readBytes += frame.payload.length;
    if (readBytes >= windowStep) {
      write(formatNumberFrame(frameType.windowUpdate, 0, readBytes));
      readBytes = 0;
    }
    const content = contentOf(frame);
    if (stream?.headers === undefined) {
      if (stream !== undefined) malformed(stream);
      return;
    }
    if (content.length > 0) stream.listener.onData(Buffer.from(content));
    if ((frame.flags & flag.endStream) !== 0) complete(stream);
  }

  /** Unless its reader has cancelled it meanwhile. */
  function complete(stream: Stream): void {
    if (sender.find(stream.id) === stream) finish(stream, { kind: 'complete' });
  }

  function malformed(stream: Stream): void {
    finish(stream, { kind: 'reset', code: errorCode.protocol }, errorCode.protocol);
  }

  function takeHeaders(frame: Frame): void {
    streamOf(frame);
    const endStream = (frame.flags & flag.endStream) !== 0;
    block = { stream: frame.stream, endStream, bytes: contentOf(frame), frames: 1 };
    if ((frame.flags & flag.endHeaders) !== 0) endBlock();
    // The frame's bytes are not ours to keep.
    else block.bytes = Buffer.from(block.bytes);
  }

  function takeContinuation({ stream, flags, payload }: Frame): void {
    if (block === undefined || block.stream !== stream) throw breach('a CONTINUATION that continues nothing');
    block.bytes = Buffer.concat([block.bytes, payload]);
    block.frames += 1;
    if (block.bytes.length > blockBytesMax || block.frames > blockFramesMax)
      throw new ConnectionError(errorCode.enhanceYourCalm, 'it sent a header block that is too long');
    if ((flags & flag.endHeaders) !== 0) endBlock();
  }

  function endBlock(): void {
    if (block === undefined) return;
    const { stream: id, endStream, bytes } = block;
    block = undefined;
    const fields = decoded(bytes);
    const stream = sender.find(id);
    if (stream === undefined) return;
    if (!keep(stream, fields, endStream)) malformed(stream);
    else if (endStream) complete(stream);
  }

  /** Informational headers come before those that count, and trailers end the stream; false for anything else. */
  function keep(stream: Stream, fields: readonly Field[], endStream: boolean): boolean {
    if (stream.headers !== undefined) {
      stream.trailers = fields;
      return endStream;
    }
    if (fieldValue(fields, ':status')?.startsWith('1')) return !endStream;
    stream.headers = fields;
    return true;
  }

  function decoded(bytes: Buffer): readonly Field[] {
    try {
      return decode(bytes);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new ConnectionError(errorCode.compression, `it sent a header block that cannot be read: ${reason}`);
    }
  }

  function takeReset(frame: Frame): void {
    requireBytes(frame, 4);
    const stream = streamOf(frame);
    if (stream !== undefined) finish(stream, { kind: 'reset', code: frame.payload.readUInt32BE(0) });
  }

  function takeSettings({ flags, payload }: Frame): void {
    const isAck = (flags & flag.ack) !== 0;
    if (payload.length % 6 !== 0 || (isAck && payload.length > 0)) throw wrongSize('SETTINGS');
    if (isAck) return;
    for (let at = 0; at < payload.length; at += 6)
      sender.applySetting(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
    write(formatFrame(frameType.settings, flag.ack, 0, nothing));
  }

  function takePing(frame: Frame): void {
    requireBytes(frame, 8);
    if ((frame.flags & flag.ack) === 0) write(formatFrame(frameType.ping, flag.ack, 0, frame.payload));
  }

  function takeGoAway({ payload }: Frame): void {
    if (payload.length < 8) throw wrongSize('GOAWAY');
    const last = payload.readUInt32BE(0) & 0x7fff_ffff;
    goAway(last, new Error(`it said that it goes away (${payload.readUInt32BE(4)})`));
  }

  function takeWindowUpdate(frame: Frame): void {
    requireBytes(frame, 4);
    if (frame.stream !== 0) streamOf(frame);
    const increment = frame.payload.readUInt32BE(0) & 0x7fff_ffff;
    if (increment === 0) throw breach('a WINDOW_UPDATE of nothing');
    sender.widen(frame.stream, increment);
  }

  /** A type that nobody knows is skipped (RFC 9113 section 4.1). */
  const takers: Readonly<Record<number, (frame: Frame) => void>> = Object.freeze({
    [frameType.data]: takeData,
    [frameType.headers]: takeHeaders,
    [frameType.reset]: takeReset,
    [frameType.settings]: takeSettings,
    [frameType.pushPromise]: () => {
      throw breach('a push, which it was asked not to');
    },
    [frameType.ping]: takePing,
    [frameType.goAway]: takeGoAway,
    [frameType.windowUpdate]: takeWindowUpdate,
    [frameType.continuation]: takeContinuation,
  });

  return Object.freeze({
    take(frame: Frame): void {
      const { type, stream, flags } = frame;
      if (!isGreeted && (type !== frameType.settings || (flags & flag.ack) !== 0)) throw breach('no SETTINGS first');
      isGreeted = true;
      if (block !== undefined && type !== frameType.continuation)
        throw breach('a frame in the middle of a header block');
      if (connectionFrames.has(type) && stream !== 0) throw breach(`a frame of type ${type} for a stream`);
      takers[type]?.(frame);
    },
  });
}

const nothing = new Uint8Array(0);

const connectionFrames: ReadonlySet<number> = new Set([frameType.settings, frameType.ping, frameType.goAway]);

function requireBytes({ payload, type }: Frame, bytes: number): void {
  if (payload.length !== bytes) throw wrongSize(`a frame of type ${type}`);
}

function wrongSize(what: string): ConnectionError {
  return new ConnectionError(errorCode.frameSize, `it sent ${what} of a wrong size`);
}

function breach(what: string): ConnectionError {
  return new ConnectionError(errorCode.protocol, `it sent ${what}`);
}
