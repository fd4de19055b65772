/** The messages of a gRPC call on their way to the service: sent as they arrive, and kept for another attempt at first. */
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { ByteQueue, bodyTooLarge, type WebTextReader } from '#http';
import type { BodyWatcher, RequestBody, StreamOptions } from '../request-body.ts';
import { createIdleTimer } from '../time-limits.ts';
import { badWebText } from './web.ts';

export interface CallBodyOptions extends StreamOptions {
  /** Decodes a body in base64. */
  readonly text?: WebTextReader | undefined;
}

/** How much is kept for another attempt, and how much is read ahead of the service. */
const keptBytesMax = 64 * 1024;

/**
 * Unlike other bodies it does not wait for the client, which may expect a response before its first message, and it can
 * be sent again although an attempt has read from it, as long as it has at most 64 KiB. A client may pause for as long
 * as it likes, so it is not measured.
 */
export function createCallBody(req: IncomingMessage, { bytesMax, idleTimeoutMs, text }: CallBodyOptions): RequestBody {
  /** All that has arrived. Undefined when it is too much, or no other attempt will follow. */
  let kept: Buffer[] | undefined = [];
  /** What has arrived and the reader has not got yet. */
  const queue = new ByteQueue();
  let bytes = 0;
  let hasEnded = false;
  let isDropped = false;
  /** The stream of the last attempt. Those of earlier ones get nothing more. */
  let reader: Readable | undefined;
  let isReaderWaiting = false;
  let watcher: BodyWatcher | undefined;
  const idle = createIdleTimer(idleTimeoutMs, () => watcher?.onIdle(!req.isPaused()));

  function onData(received: Buffer): void {
    bytes += received.length;
    const chunk = text === undefined ? received : text.read(received);
    if (bytes > bytesMax || chunk === undefined) {
      watcher?.onRefused(bytes > bytesMax ? bodyTooLarge(bytesMax) : badWebText());
      return;
    }
    idle.touch();
    if (chunk.length > 0) add(chunk);
  }

  function add(chunk: Buffer): void {
    if (bytes > keptBytesMax) kept = undefined;
    kept?.push(chunk);
    if (isReaderWaiting && reader !== undefined) isReaderWaiting = reader.push(chunk);
    else queue.add(chunk);
    if (queue.length() >= keptBytesMax) req.pause();
  }

  function onEnd(): void {
    if (text?.isComplete() === false) {
      watcher?.onRefused(badWebText());
      return;
    }
    hasEnded = true;
    idle.stop();
    if (queue.length() === 0) reader?.push(null);
    watcher?.onEnd();
  }

  function openStream(): Readable {
    if (kept !== undefined) {
      queue.take();
      for (const chunk of kept) queue.add(chunk);
    }
    isReaderWaiting = false;
    const stream: Readable = new Readable({
      // Makes the stream read one batch at a time. The rest stays in the queue.
      highWaterMark: 1,
      read() {
        if (reader === stream) fill(stream);
      },
      destroy(cause, done) {
        // The next attempt gets it from the start.
        if (reader === stream && kept === undefined) discard();
        done(cause);
      },
    });
    reader = stream;
    return stream.on('error', ignore);
  }

  function fill(stream: Readable): void {
    isReaderWaiting = true;
    for (const chunk of queue.take()) isReaderWaiting = stream.push(chunk);
    if (hasEnded) stream.push(null);
    else if (req.isPaused()) {
      idle.touch();
      req.resume();
    }
  }

  function discard(): void {
    if (isDropped) return;
    isDropped = true;
    kept = undefined;
    idle.stop();
    queue.take();
    req.removeListener('data', onData).removeListener('end', onEnd);
    req.resume();
  }

  return {
    /** Waits for one turn of the event loop, in which a short call often arrives whole. */
    buffer(done) {
      const start = (): void => {
        clearImmediate(turn);
        req.removeListener('end', start);
        done();
      };
      const turn = setImmediate(start);
      req.on('data', onData).on('end', onEnd).on('end', start);
      if (req.readableEnded) onEnd();
      else idle.touch();
    },
    open: () => (hasEnded && kept !== undefined ? Buffer.concat(kept) : openStream()),
    isRepeatable: () => kept !== undefined,
    isWhole: () => hasEnded && kept !== undefined,
    hasArrived: () => hasEnded || isDropped,
    watch(listener) {
      watcher = listener;
    },
    forget() {
      kept = undefined;
    },
    discard,
  };
}

function ignore(): void {}
