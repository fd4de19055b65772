/** The body of an upstream's response: held until it is wanted, then taken whole, streamed, read to a bound, or dropped. */
import { Readable } from 'node:stream';
import { createByteQueue } from '#http';
import { timedOut } from './failures.ts';
import { createIdleTimer, type IdleTimer } from './idle-timer.ts';

/** What the attempt does with it. */
export interface ResponseSink {
  /** False: no more, until `resume` is called. */
  readonly take: (chunk: Buffer) => boolean;
  /** Names and values in turn. */
  readonly end: (trailers: readonly Buffer[]) => void;
  readonly fail: (cause: Error) => void;
}

/** What the caller does with it: it is taken once, in one of the first five ways. */
export interface ResponseBody {
  /** All of it, when it has come already and no trailers with it. */
  readonly whole: () => Buffer | undefined;
  /** True when all of it has come. */
  readonly hasArrived: () => boolean;
  /** What has come and what will come. An idle body is destroyed, and destroying it ends the attempt. */
  readonly stream: (idle: IdleTimer) => Readable;
  /** Rejects when it breaks off, has more than `bytesMax` bytes or has not come within `timeoutMs` (0: no limit). */
  readonly read: (limits: { readonly bytesMax: number; readonly timeoutMs: number }) => Promise<Buffer>;
  /** Reads it to its end and drops it, however long it is. Rejects when it breaks off or has not come within `timeoutMs`. */
  readonly drain: (timeoutMs: number) => Promise<void>;
  /** Reads on and drops it; after 64 KiB, or a second without a byte, the connection is closed instead. */
  readonly discard: () => void;
  /** True while the stream has nothing to read yet, but will have. */
  readonly isAwaited: () => boolean;
  /** Known when the stream has ended. */
  readonly trailers: () => readonly Buffer[];
  /** Why it broke off before it was taken. */
  readonly failure: () => Error | undefined;
}

/** So much is read before it is wanted. */
export const heldBytesMax = 64 * 1024;
const droppedBytesMax = 64 * 1024;
const droppedIdleMs = 1000;
const none: readonly Buffer[] = [];

/** `resume`: after `take` has returned false. `abandon`: the rest is not wanted. */
export function createResponseBody(resume: () => void, abandon: () => void): ResponseSink & ResponseBody {
  let heldBytes = 0;
  let isPaused = false;
  let isEnded = false;
  let isDropped = false;
  let failure: Error | undefined;
  let trailers = none;
  let reader: Readable | undefined;
  /** What is not taken yet; the reader would keep an object for each chunk. */
  const queue = createByteQueue();
  let taken: Buffer[] = [];
  let isReaderWaiting = false;
  let idleTimer: IdleTimer | undefined;

  function hold(chunk: Buffer): boolean {
    heldBytes += chunk.length;
    if (isDropped) {
      if (heldBytes > droppedBytesMax) abandon();
      return true;
    }
    queue.add(chunk);
    return heldBytes <= heldBytesMax;
  }

  function goOn(): void {
    idleTimer?.touch();
    if (!isPaused) return;
    isPaused = false;
    resume();
  }

  /** The reader asks only when it has nothing left, and gets one chunk: each one that a slow client takes shows that it reads. */
  function read(): void {
    if (!isEnded) idleTimer?.touch();
    if (taken.length === 0) taken = queue.take();
    const chunk = taken.shift();
    isReaderWaiting = chunk === undefined;
    if (chunk !== undefined) reader?.push(chunk);
    else if (isEnded) reader?.push(null);
    else goOn();
  }

  function pass(chunk: Buffer, to: Readable): boolean {
    if (isReaderWaiting) {
      isReaderWaiting = false;
      to.push(chunk);
    } else queue.add(chunk);
    return to.readableLength + queue.length() < heldBytesMax;
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

  /** What has come whole needs no stream. */
  async function readThrough(timeoutMs: number, onChunk: (chunk: Buffer) => void): Promise<void> {
    if (isEnded) for (const chunk of queue.take()) onChunk(chunk);
    else await readStream(stream(createIdleTimer(0, abandon)), timeoutMs, onChunk);
  }

  return {
    take(chunk) {
      idleTimer?.touch();
      isPaused = !(reader === undefined ? hold(chunk) : pass(chunk, reader));
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
      return chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, heldBytes);
    },
    hasArrived: () => isEnded,
    stream,
    async read({ bytesMax, timeoutMs }) {
      const chunks: Buffer[] = [];
      let bytes = 0;
      await readThrough(timeoutMs, (chunk) => {
        bytes += chunk.length;
        if (bytes > bytesMax) throw new RangeError(`the body has more than ${bytesMax} bytes`);
        chunks.push(chunk);
      });
      return Buffer.concat(chunks, bytes);
    },
    drain: (timeoutMs) => readThrough(timeoutMs, () => {}),
    discard() {
      if (isEnded || failure !== undefined) return;
      isDropped = true;
      queue.take();
      idleTimer = createIdleTimer(droppedIdleMs, abandon);
      goOn();
    },
    isAwaited: () => !isEnded && reader?.readableLength === 0 && taken.length + queue.length() === 0,
    trailers: () => trailers,
    failure: () => failure,
  };
}

async function readStream(body: Readable, timeoutMs: number, onChunk: (chunk: Buffer) => void): Promise<void> {
  const giveUp = () => void body.destroy(timedOut(`no whole response within ${timeoutMs} ms`));
  const timer = timeoutMs > 0 ? setTimeout(giveUp, timeoutMs) : undefined;
  try {
    for await (const chunk of body) onChunk(chunk);
  } finally {
    clearTimeout(timer);
  }
}
