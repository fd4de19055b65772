/** The body of an upstream's response: buffered up to a bound until the caller takes, streams, reads or discards it. */
import { Readable } from 'node:stream';
import { createByteQueue } from '#http';
import { timedOut } from './failures.ts';
import { createIdleTimer, type IdleTimer } from './time-limits.ts';

/** The writing side, which the attempt uses. */
export interface ResponseSink {
  /** Returns false to pause the upstream until `resume` is called. */
  readonly write: (chunk: Buffer) => boolean;
  /** `trailers` are alternating names and values. */
  readonly end: (trailers: readonly Buffer[]) => void;
  readonly fail: (cause: Error) => void;
}

/** The reading side. Consume the body once, by `whole`, `stream`, `read`, `drain` or `discard`. */
export interface ResponseBody {
  /** Returns the body if it is complete and has no trailers. */
  readonly whole: () => Buffer | undefined;
  /** True when the body is complete. */
  readonly hasArrived: () => boolean;
  /** Streams the body, and restarts `idle` with every chunk. Destroying the stream ends the attempt. */
  readonly stream: (idle: IdleTimer) => Readable;
  /**
   * Collects the body. Rejects if it is cut off, exceeds `bytesMax` or is not complete within `timeoutMs` (0 means no
   * limit).
   */
  readonly read: (limits: { readonly bytesMax: number; readonly timeoutMs: number }) => Promise<Buffer>;
  /** Reads and drops the whole body. Rejects if it is cut off or not complete within `timeoutMs`. */
  readonly drain: (timeoutMs: number) => Promise<void>;
  /** Drops the body, but closes the connection instead if it exceeds 64 KiB or takes longer than a second. */
  readonly discard: () => void;
  /** True while nothing has arrived that the stream could read. */
  readonly isWaiting: () => boolean;
  /** Alternating names and values. Empty until the stream has ended. */
  readonly trailers: () => readonly Buffer[];
  /** Returns the error if the body was cut off before it was consumed. */
  readonly failure: () => Error | undefined;
}

/** How much is buffered before the body is consumed. */
export const bufferedBytesMax = 64 * 1024;
const discardedBytesMax = 64 * 1024;
const discardMs = 1000;
const none: readonly Buffer[] = [];

/** Calls `resume` some time after `write` has returned false, and `abandon` if the rest of the body is not needed. */
export function createResponseBody(resume: () => void, abandon: () => void): ResponseSink & ResponseBody {
  let bufferedBytes = 0;
  let isPaused = false;
  let isEnded = false;
  let isDiscarded = false;
  let failure: Error | undefined;
  let trailers = none;
  let reader: Readable | undefined;
  /** Buffers here instead of in the reader, which would keep an object for each chunk. */
  const queue = createByteQueue();
  let unread: Buffer[] = [];
  let isReaderWaiting = false;
  let idleTimer: IdleTimer | undefined;

  function buffer(chunk: Buffer): boolean {
    bufferedBytes += chunk.length;
    if (isDiscarded) {
      if (bufferedBytes > discardedBytesMax) abandon();
      return true;
    }
    queue.add(chunk);
    return bufferedBytes <= bufferedBytesMax;
  }

  function resumeUpstream(): void {
    idleTimer?.touch();
    if (!isPaused) return;
    isPaused = false;
    resume();
  }

  /** Called when the reader is empty. Pushes a single chunk, so that each one a slow client reads restarts `idle`. */
  function read(): void {
    if (!isEnded) idleTimer?.touch();
    if (unread.length === 0) unread = queue.take();
    const chunk = unread.shift();
    isReaderWaiting = chunk === undefined;
    if (chunk !== undefined) reader?.push(chunk);
    else if (isEnded) reader?.push(null);
    else resumeUpstream();
  }

  function forward(chunk: Buffer, to: Readable): boolean {
    if (isReaderWaiting) {
      isReaderWaiting = false;
      to.push(chunk);
    } else queue.add(chunk);
    return to.readableLength + queue.length() < bufferedBytesMax;
  }

  function destroy(cause: Error | null, done: (cause: Error | null) => void): void {
    idleTimer?.stop();
    if (!isEnded) abandon();
    done(cause);
  }

  function stream(idle: IdleTimer): Readable {
    idleTimer = idle;
    reader = new Readable({ highWaterMark: 1, read, destroy });
    if (!isEnded) idle.touch();
    if (failure !== undefined) reader.destroy(failure);
    return reader;
  }

  /** Reads a complete body without a stream. */
  async function readThrough(timeoutMs: number, onChunk: (chunk: Buffer) => void): Promise<void> {
    if (isEnded) for (const chunk of queue.take()) onChunk(chunk);
    else await readStream(stream(createIdleTimer(0, abandon)), timeoutMs, onChunk);
  }

  return {
    write(chunk) {
      // For a body that is discarded, the timer is a deadline: a byte now and then must not extend it.
      if (!isDiscarded) idleTimer?.touch();
      isPaused = !(reader === undefined ? buffer(chunk) : forward(chunk, reader));
      return !isPaused;
    },
    end(found) {
      isEnded = true;
      trailers = found;
      idleTimer?.stop();
      if (isReaderWaiting) reader?.push(null);
    },
    fail(cause) {
      failure = cause;
      idleTimer?.stop();
      reader?.destroy(cause);
    },
    whole() {
      if (!isEnded || trailers.length > 0) return undefined;
      const chunks = queue.take();
      return chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, bufferedBytes);
    },
    hasArrived: () => isEnded,
    stream,
    async read({ bytesMax, timeoutMs }) {
      const chunks: Buffer[] = [];
      let bytes = 0;
      await readThrough(timeoutMs, (chunk) => {
        bytes += chunk.length;
        if (bytes > bytesMax) throw new RangeError(`the response body has more than ${bytesMax} bytes`);
        chunks.push(chunk);
      });
      return Buffer.concat(chunks, bytes);
    },
    drain: (timeoutMs) => readThrough(timeoutMs, () => {}),
    discard() {
      if (isEnded || failure !== undefined) return;
      isDiscarded = true;
      queue.take();
      idleTimer = createIdleTimer(discardMs, abandon);
      resumeUpstream();
    },
    isWaiting: () => queue.length() === 0,
    trailers: () => trailers,
    failure: () => failure,
  };
}

async function readStream(body: Readable, timeoutMs: number, onChunk: (chunk: Buffer) => void): Promise<void> {
  const giveUp = () => void body.destroy(timedOut(`the response was not complete within ${timeoutMs} ms`));
  const timer = timeoutMs > 0 ? setTimeout(giveUp, timeoutMs) : undefined;
  try {
    for await (const chunk of body) onChunk(chunk);
  } finally {
    clearTimeout(timer);
  }
}
