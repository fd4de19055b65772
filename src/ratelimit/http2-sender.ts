/** The half of an HTTP/2 connection that sends requests: as many at once, and as much of them, as the peer takes. */
import type { BlockEncoder } from './hpack-encoder.ts';
import {
  ConnectionError,
  errorCode,
  flag,
  formatFrame,
  formatNumberFrame,
  frameBytesMax,
  frameHeaderBytes,
  frameType,
  setting,
  writeFrameHeader,
} from './http2-frame.ts';
import type { Stream } from './http2-stream.ts';

export interface Http2Sender {
  /** Sends the request, or keeps it until the peer takes another. */
  submit(stream: Stream): void;
  /** Forgets a stream; `code` tells the peer so, if it still knows it. */
  drop(stream: Stream, code?: number): void;
  find(id: number): Stream | undefined;
  /** Whether there ever was such a stream. */
  hasBegun(id: number): boolean;
  /** No stream may begin any more: there are no numbers left. */
  isSpent(): boolean;
  /** Those that wait, then those that have begun. */
  all(): readonly Stream[];
  isIdle(): boolean;
  applySetting(id: number, value: number): void;
  /** Stream 0 is the connection. */
  widen(id: number, increment: number): void;
}

/** Section 6.5.2 and 6.9.2: what a peer takes that has said nothing yet. Of streams it is 100, as most say. */
const firstWindow = 65_535;
const firstStreamsMax = 100;
const windowMax = 0x7fff_ffff;
const idMax = 0x7fff_ffff;

export function createHttp2Sender(write: (bytes: Buffer) => void, encoder: BlockEncoder): Http2Sender {
  const streams = new Map<number, Stream>();
  const waiting = new Set<Stream>();
  /** The peer takes no more of them for now. */
  const stalled = new Set<Stream>();
  let nextId = 1;
  let streamsMax = firstStreamsMax;
  let streamWindow = firstWindow;
  let window = firstWindow;

  function begin(stream: Stream): void {
    stream.id = nextId;
    stream.window = streamWindow;
    nextId += 2;
    streams.set(stream.id, stream);
    const block = encoder.next();
    const { body } = stream;
    if (body.length > roomOf(stream)) {
      write(formatFrame(frameType.headers, flag.endHeaders, stream.id, block));
      stalled.add(stream);
      sendBody(stream);
      return;
    }
    // Nearly always: both frames at once.
    const bytes = Buffer.allocUnsafe(2 * frameHeaderBytes + block.length + body.length);
    writeFrameHeader(bytes, 0, block.length, frameType.headers, flag.endHeaders, stream.id);
    bytes.set(block, frameHeaderBytes);
    const dataAt = frameHeaderBytes + block.length;
    writeFrameHeader(bytes, dataAt, body.length, frameType.data, flag.endStream, stream.id);
    bytes.set(body, dataAt + frameHeaderBytes);
    take(stream, body.length);
    write(bytes);
  }

  function roomOf(stream: Stream): number {
    return Math.min(window, stream.window, frameBytesMax);
  }

  function take(stream: Stream, bytes: number): void {
    stream.sentBytes += bytes;
    stream.window -= bytes;
    window -= bytes;
  }

  function sendBody(stream: Stream): void {
    const { body, id } = stream;
    while (stream.sentBytes < body.length) {
      const bytes = Math.min(roomOf(stream), body.length - stream.sentBytes);
      if (bytes <= 0) return;
      const start = stream.sentBytes;
      take(stream, bytes);
      const flags = stream.sentBytes === body.length ? flag.endStream : 0;
      write(formatFrame(frameType.data, flags, id, body.subarray(start, start + bytes)));
    }
    stalled.delete(stream);
  }

  function beginWaiting(): void {
    for (const stream of waiting) {
      if (streams.size >= streamsMax || nextId > idMax) return;
      waiting.delete(stream);
      begin(stream);
    }
  }

  function applyWindow(value: number): void {
    if (value > windowMax) throw tooWide();
    for (const stream of streams.values()) stream.window += value - streamWindow;
    streamWindow = value;
    stalled.forEach(sendBody);
  }

  return Object.freeze({
    submit(stream: Stream): void {
      if (streams.size >= streamsMax || waiting.size > 0) waiting.add(stream);
      else begin(stream);
    },
    drop(stream: Stream, code?: number): void {
      waiting.delete(stream);
      // Who has the answer already and not the question must not wait for the rest of it.
      const isCut = stalled.delete(stream);
      if (!streams.delete(stream.id)) return;
      if (code !== undefined || isCut) write(formatNumberFrame(frameType.reset, stream.id, code ?? errorCode.cancel));
      beginWaiting();
    },
    find: (id: number) => streams.get(id),
    hasBegun: (id: number) => id % 2 === 1 && id < nextId,
    isSpent: () => nextId > idMax,
    all: () => [...waiting, ...streams.values()],
    isIdle: () => streams.size === 0 && waiting.size === 0,
    applySetting(id: number, value: number): void {
      if (id === setting.headerTableSize) encoder.setTableBytes(value);
      else if (id === setting.initialWindowSize) applyWindow(value);
      else if (id === setting.maxConcurrentStreams) {
        streamsMax = value;
        beginWaiting();
      }
    },
    widen(id: number, increment: number): void {
      if (id === 0) {
        window += increment;
        if (window > windowMax) throw tooWide();
        stalled.forEach(sendBody);
        return;
      }
      const stream = streams.get(id);
      if (stream === undefined) return;
      stream.window += increment;
      if (stream.window > windowMax) throw tooWide();
      if (stalled.has(stream)) sendBody(stream);
    },
  });
}

function tooWide(): ConnectionError {
  return new ConnectionError(errorCode.flowControl, 'it opened a window that is too wide');
}
