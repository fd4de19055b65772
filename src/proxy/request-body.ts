/** The request body for an upstream: streamed from the client, or already read by the host application. */
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { Context } from 'koa';
import { bodyFromHost, bodyTooLarge, createByteQueue, hasBody, isBodyUnread, type Problem, problem } from '#http';
import { createIdleTimer } from './idle-timer.ts';

export interface BodyWatcher {
  /** Called when the whole body has arrived. */
  readonly onEnd: () => void;
  /** Called when the body pauses for too long. `isClientIdle` is true if the client caused it, not the upstream. */
  readonly onIdle: (isClientIdle: boolean) => void;
  /** Called when the body exceeds its size limit. */
  readonly onTooLarge: (reason: Problem) => void;
  /** True while the slots of the upstream are scarce, so that slow bodies must not occupy them. */
  readonly isCrowded: () => boolean;
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
  /** Reads the rest and drops it. */
  readonly discard: () => void;
}

export interface RequestBodyOptions {
  /** @default no limit */
  readonly bytesMax?: number | undefined;
  /** How long a stream may pause, in milliseconds. 0 means no limit. */
  readonly idleTimeoutMs: number;
  /** While `isCrowded`, a body must average 1 KiB per second over this period, in milliseconds. @default 10_000 */
  readonly slowAfterMs?: number;
}

type StreamOptions = RequestBodyOptions & { readonly bytesMax: number };

/**
 * Returns undefined when the request has no body. Throws `body-too-large` or `body-consumed`. If a stream exceeds the
 * limit later, `onTooLarge` is called.
 */
export function createRequestBody(ctx: Context, options: RequestBodyOptions): RequestBody | undefined {
  const { req } = ctx;
  const { bytesMax = Number.POSITIVE_INFINITY } = options;
  if (!hasBody(req.headers, bytesMax)) return undefined;
  return isBodyUnread(req) ? streamed(req, { ...options, bytesMax }) : wholeBody(bodyFromHost(ctx, bytesMax));
}

/** How much is read before a slot is acquired. Most bodies are then complete and can be sent again. */
const bufferedBytesMax = 64 * 1024;

/** Limits the wait, because a client may expect part of the response before it sends more. */
const bufferingMs = 200;

/**
 * Copies the request into a stream, because undici destroys the body of a failed call, and destroying the request
 * itself would close the client's connection before the response. After a failure the rest of the body is read and
 * dropped: closing a connection with unread bytes resets it, and the reset can overtake the response.
 */
function streamed(req: IncomingMessage, options: StreamOptions): RequestBody {
  const { bytesMax, idleTimeoutMs, slowAfterMs } = options;
  let bytes = 0;
  let state: 'unread' | 'reading' | 'paused' | 'done' = 'unread';
  /** The bytes that the upstream is not ready to read. */
  const queue = createByteQueue();
  let isReaderReady = false;
  let whole: Buffer | undefined;
  let isOpen = false;
  let onBuffered: (() => void) | undefined;
  let partialTimer: NodeJS.Timeout | undefined;
  let reader: Readable | undefined;
  let watcher: BodyWatcher | undefined;
  const idle = createIdleTimer(idleTimeoutMs, () => watcher?.onIdle(state === 'reading'));
  const pace = createPaceCheck({ bytes: () => bytes, isReading: () => state === 'reading', onSlow, slowAfterMs });

  function onSlow(): void {
    if (watcher?.isCrowded()) watcher.onIdle(true);
  }

  function buffer(done: () => void): void {
    onBuffered = done;
    // An empty body may already have ended.
    if (req.readableEnded) {
      onEnd();
      return;
    }
    req.on('data', onData).on('end', onEnd);
    readMore();
    pace.start();
    partialTimer = setTimeout(sendPartial, bufferingMs);
  }

  function sendPartial(): void {
    if (bytes === 0 || watcher?.isCrowded()) partialTimer?.refresh();
    else endBuffering();
  }

  function readMore(): void {
    state = 'reading';
    req.resume();
    idle.touch();
  }

  function onData(chunk: Buffer): void {
    bytes += chunk.length;
    if (bytes > bytesMax) {
      watcher?.onTooLarge(bodyTooLarge(bytesMax));
      return;
    }
    idle.touch();
    if (isReaderReady && reader !== undefined) {
      isReaderReady = reader.push(chunk);
      return;
    }
    queue.add(chunk);
    if (queue.length() < bufferedBytesMax) return;
    state = 'paused';
    pace.pause();
    req.pause();
    if (reader === undefined) endBuffering();
  }

  function endBuffering(): void {
    clearTimeout(partialTimer);
    onBuffered?.();
    onBuffered = undefined;
  }

  function onEnd(): void {
    stop();
    if (!isOpen) whole = Buffer.concat(queue.take());
    if (queue.length() === 0) reader?.push(null);
    watcher?.onEnd();
    endBuffering();
  }

  function stop(): void {
    state = 'done';
    clearTimeout(partialTimer);
    idle.stop();
    pace.stop();
  }

  /** Reads the queue only on demand: until then, another attempt can still use its contents. */
  function openStream(): Readable {
    isOpen = true;
    const stream: Readable = new Readable({
      // Makes the stream read one batch at a time. The rest stays in the queue.
      highWaterMark: 1,
      read() {
        reader ??= stream;
        if (reader === stream) fillReader(stream);
      },
      destroy(cause, done) {
        if (reader === stream) discard();
        done(cause);
      },
    });
    // undici listens for errors only while the request is running.
    return stream.on('error', ignore);
  }

  function fillReader(stream: Readable): void {
    isReaderReady = true;
    for (const chunk of queue.take()) isReaderReady = stream.push(chunk);
    if (state === 'done') stream.push(null);
    else if (state === 'paused') readMore();
  }

  function discard(): void {
    const isAwaitingContinue = state === 'unread' && req.headers.expect !== undefined;
    stop();
    queue.take();
    req.removeListener('data', onData).removeListener('end', onEnd);
    // Reading would make Node send `100 Continue`, which asks the client for the body.
    if (!isAwaitingContinue) req.resume();
  }

  return {
    buffer,
    open: () => whole ?? openStream(),
    isRepeatable: () => reader === undefined,
    isWhole: () => whole !== undefined,
    hasArrived: () => state === 'done',
    watch(listener) {
      watcher = listener;
    },
    discard,
  };
}

const bytesPerSecondMin = 1024;

interface PaceOptions {
  readonly bytes: () => number;
  readonly isReading: () => boolean;
  readonly onSlow: () => void;
  readonly slowAfterMs: number | undefined;
}

/** Reports a body that averages less than 1 KiB per second. Skips periods in which the upstream was the slow side. */
function createPaceCheck({ bytes, isReading, onSlow, slowAfterMs = 10_000 }: PaceOptions) {
  const bytesMin = (bytesPerSecondMin * slowAfterMs) / 1000;
  let timer: NodeJS.Timeout | undefined;
  let bytesBefore = 0;
  let wasPaused = false;

  function check(): void {
    const isSlow = isReading() && !wasPaused && bytes() - bytesBefore < bytesMin;
    bytesBefore = bytes();
    wasPaused = !isReading();
    timer?.refresh();
    if (isSlow) onSlow();
  }

  return {
    start() {
      timer = setTimeout(check, slowAfterMs);
    },
    pause() {
      wasPaused = true;
    },
    stop() {
      clearTimeout(timer);
      timer = undefined;
    },
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
    discard: ignore,
  };
}

function ignore(): void {}

/** The problem for a client that stopped sending in the middle of its body. */
export function uploadTimedOut(): Problem {
  return problem('request-timeout', { headers: { Connection: 'close' } });
}
