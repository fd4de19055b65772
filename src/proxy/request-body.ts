/** The request body for an upstream: streamed from the client, or already read by the host application. */
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { Context } from 'koa';
import { ByteQueue, bodyFromHost, bodyTooLarge, hasBody, isBodyUnread, type Problem, problem } from '#http';
import { createIdleTimer, createPaceCheck } from './time-limits.ts';

export interface BodyWatcher {
  /** Called when the whole body has arrived. */
  readonly onEnd: () => void;
  /** Called when the body pauses for too long. `isClientIdle` is true if the client caused it, not the upstream. */
  readonly onIdle: (isClientIdle: boolean) => void;
  /** Called when the body exceeds its size limit, or cannot be decoded. */
  readonly onRefused: (reason: Problem) => void;
  /** True while the slots of the upstream are scarce, so that slow bodies must not occupy them. */
  readonly isCrowded: () => boolean;
  /** Returns the bytes per second that the client must send while the upstream waits for it. */
  readonly paceMin: () => number;
}

export interface RequestBody {
  /**
   * Calls `done` once, as soon as there is enough to send: the whole body or its first 64 KiB. After 200 ms less is
   * enough, unless the upstream is crowded. Call it once, before `open`.
   */
  readonly buffer: (done: () => void) => void;
  /** Returns the body for one attempt, in a form that undici accepts. */
  readonly open: () => Readable | Uint8Array | string;
  /** True while it can be opened again: it is in memory, or no attempt has started to read it. */
  readonly isRepeatable: () => boolean;
  /** True when the whole body is in memory. */
  readonly isWhole: () => boolean;
  /** True when the client has sent the whole body. */
  readonly hasArrived: () => boolean;
  readonly watch: (watcher: BodyWatcher) => void;
  /** Frees what only another attempt would need. Call it when there will be none. */
  readonly forget: () => void;
  /** Reads the rest and drops it. */
  readonly discard: () => void;
}

export interface RequestBodyOptions {
  /** @default no limit */
  readonly bytesMax?: number | undefined;
  /** How long a stream may pause, in milliseconds. 0 means no limit. */
  readonly idleTimeoutMs: number;
  /** The period over which a body must reach `paceMin`, in milliseconds. @default that of `PaceOptions` */
  readonly slowAfterMs?: number;
}

export type StreamOptions = RequestBodyOptions & { readonly bytesMax: number };

/**
 * Returns undefined when the request has no body. `createStream` is called for one that arrives. Throws `body-too-large`
 * or `body-consumed`. If a stream exceeds the limit later, `onRefused` is called.
 */
export function createRequestBody(
  ctx: Context,
  options: RequestBodyOptions,
  createStream = streamed,
): RequestBody | undefined {
  const { req } = ctx;
  const { bytesMax = Number.POSITIVE_INFINITY } = options;
  if (!hasBody(req, bytesMax)) return undefined;
  return isBodyUnread(req) ? createStream(req, { ...options, bytesMax }) : wholeBody(bodyFromHost(ctx, bytesMax));
}

/** How much is read ahead, also before a slot is acquired. Most bodies are then complete and can be sent again. */
const bufferedBytesMax = 64 * 1024;

/** Limits the wait, because a client may expect part of the response before it sends more. */
const bufferingMs = 200;

/**
 * - `reading`: waits for the client.
 * - `paused`: waits for the upstream, because enough is in the queue.
 * - `done`: the whole body has arrived, or the rest is dropped.
 */
type ClientState = 'reading' | 'paused' | 'done';

/**
 * - `buffering`: no attempt has opened the body.
 * - `open`: an attempt has opened it, but none has read from it.
 * - `waiting`: the reader wants the next chunk immediately.
 * - `full`: the reader will ask for the queue when it is ready.
 */
type ReaderState = 'buffering' | 'open' | 'waiting' | 'full';

/**
 * Copies the request into a stream, because undici destroys the body of a failed call, and destroying the request
 * itself would close the client's connection before the response. After a failure the rest of the body is read and
 * dropped: closing a connection with unread bytes resets it, and the reset can overtake the response.
 */
function streamed(req: IncomingMessage, { bytesMax, idleTimeoutMs, slowAfterMs }: StreamOptions): RequestBody {
  let clientState: ClientState = 'reading';
  let readerState: ReaderState = 'buffering';
  let bytes = 0;
  /** The bytes that the reader has not asked for. */
  const queue = new ByteQueue();
  let whole: Buffer | undefined;
  /** The stream of the first attempt that reads the body. No other can read it then. */
  let reader: Readable | undefined;
  let watcher: BodyWatcher | undefined;
  let onBuffered: (() => void) | undefined;
  let partialTimer: NodeJS.Timeout | undefined;
  const idle = createIdleTimer(idleTimeoutMs, () => watcher?.onIdle(clientState === 'reading'));
  const onSlow = () => watcher?.onIdle(true);
  const pace = createPaceCheck({ periodMs: slowAfterMs, paceMin: () => watcher?.paceMin() ?? 0, onSlow });

  function buffer(done: () => void): void {
    onBuffered = done;
    // An empty body may already have ended.
    if (req.readableEnded) {
      onEnd();
      return;
    }
    req.on('data', onData).on('end', onEnd);
    readMore();
    partialTimer = setTimeout(sendPartial, bufferingMs);
  }

  function sendPartial(): void {
    if (bytes === 0 || watcher?.isCrowded()) partialTimer?.refresh();
    else endBuffering();
  }

  function endBuffering(): void {
    clearTimeout(partialTimer);
    onBuffered?.();
    onBuffered = undefined;
  }

  function readMore(): void {
    clientState = 'reading';
    req.resume();
    idle.touch();
    pace.resume();
  }

  function onData(chunk: Buffer): void {
    bytes += chunk.length;
    if (bytes > bytesMax) {
      watcher?.onRefused(bodyTooLarge(bytesMax));
      return;
    }
    idle.touch();
    pace.count(chunk.length);
    if (readerState === 'waiting') {
      push(chunk);
      return;
    }
    queue.add(chunk);
    if (queue.length() < bufferedBytesMax) return;
    clientState = 'paused';
    pace.pause();
    req.pause();
    endBuffering();
  }

  function push(chunk: Buffer): void {
    readerState = reader?.push(chunk) ? 'waiting' : 'full';
  }

  function onEnd(): void {
    stop();
    if (readerState === 'buffering') whole = Buffer.concat(queue.take());
    if (queue.length() === 0) reader?.push(null);
    watcher?.onEnd();
    endBuffering();
  }

  function stop(): void {
    clientState = 'done';
    clearTimeout(partialTimer);
    idle.stop();
    pace.stop();
  }

  function openStream(): Readable {
    readerState = 'open';
    const stream: Readable = new Readable({
      // Makes the stream read one batch at a time. The rest stays in the queue.
      highWaterMark: 1,
      read() {
        reader ??= stream;
        if (reader === stream) fillReader();
      },
      destroy(cause, done) {
        if (reader === stream) discard();
        done(cause);
      },
    });
    // undici listens for errors only while the request is running.
    return stream.on('error', ignore);
  }

  /** Empties the queue only on demand: until then, another attempt can still use its contents. */
  function fillReader(): void {
    readerState = 'waiting';
    for (const chunk of queue.take()) push(chunk);
    if (clientState === 'done') reader?.push(null);
    else if (clientState === 'paused') readMore();
  }

  function discard(): void {
    stop();
    queue.take();
    req.removeListener('data', onData).removeListener('end', onEnd);
    req.resume();
  }

  return {
    buffer,
    open: () => whole ?? openStream(),
    isRepeatable: () => reader === undefined,
    isWhole: () => whole !== undefined,
    hasArrived: () => clientState === 'done',
    watch(listener) {
      watcher = listener;
    },
    forget: ignore,
    discard,
  };
}

/** Wraps a body that is already in memory. */
export function wholeBody(content: Uint8Array | string): RequestBody {
  const yes = () => true;
  return {
    buffer: (done) => done(),
    open: () => content,
    isRepeatable: yes,
    isWhole: yes,
    hasArrived: yes,
    watch: ignore,
    forget: ignore,
    discard: ignore,
  };
}

function ignore(): void {}

/** The problem for a client that stopped sending in the middle of its body. */
export function uploadTimedOut(): Problem {
  return problem('request-timeout', { headers: { Connection: 'close' } });
}
