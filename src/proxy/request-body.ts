/** The client's body on its way to an upstream: streamed, bounded, or taken from a host's parser that has read it. */
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { Context } from 'koa';
import { bodyFromHost, bodyTooLarge, createByteQueue, hasBody, isBodyUnread, type Problem, problem } from '#http';
import { createIdleTimer } from './idle-timer.ts';

export interface BodyWatcher {
  /** All of it has arrived. */
  readonly onEnd: () => void;
  /** It pauses for too long; `isClients`: because of the client, not of the upstream. */
  readonly onIdle: (isClients: boolean) => void;
  /** It has more bytes than it may. */
  readonly onTooLarge: (because: Problem) => void;
  /** True while slow bodies have to leave the places of the upstream to others. */
  readonly isCrowded: () => boolean;
}

export interface RequestBody {
  /**
   * Calls `done` once, when there is enough to send: all of it, or its first 64 KiB; less of one that pauses, while
   * the upstream is not crowded. To be called once, before `open`.
   */
  readonly gather: (done: () => void) => void;
  /** What one attempt sends, as undici takes it. */
  readonly open: () => Readable | Uint8Array | string;
  /** True while it can be opened once more: it is in memory, or no attempt has read of it. */
  readonly isRepeatable: () => boolean;
  /** True when all of it is in memory. */
  readonly isWhole: () => boolean;
  /** True when the client has sent all of it. */
  readonly hasArrived: () => boolean;
  readonly watch: (watcher: BodyWatcher) => void;
  /** Reads on and drops it. */
  readonly drop: () => void;
}

export interface RequestBodyOptions {
  /** @default no limit */
  readonly bytesMax?: number | undefined;
  /** How long a stream may pause, in milliseconds; 0: no limit. */
  readonly idleTimeoutMs: number;
  /** Over this time a body must bring 1 KiB a second while `isCrowded`. @default 10 s */
  readonly slowAfterMs?: number;
}

type StreamOptions = RequestBodyOptions & { readonly bytesMax: number };

/** Undefined when the request has no body. Throws `body-too-large` and `body-consumed`; a stream that grows too large is reported. */
export function createRequestBody(ctx: Context, options: RequestBodyOptions): RequestBody | undefined {
  const { req } = ctx;
  const { bytesMax = Number.POSITIVE_INFINITY } = options;
  if (!hasBody(req.headers, bytesMax)) return undefined;
  return isBodyUnread(req) ? streamed(req, { ...options, bytesMax }) : wholeBody(bodyFromHost(ctx, bytesMax));
}

/** So much is read before an upstream's place is taken: most bodies are whole then, and can be sent again. */
const gatheredBytesMax = 64 * 1024;

/** A client may wait for the beginning of the response before it sends more. */
const gatheringMs = 200;

/**
 * Never the request itself: undici destroys the body of a call that fails, and destroying the request would close the
 * client's connection before the response. The rest of the body is then read and dropped: closing a connection with
 * unread bytes resets it, and a reset can overtake the response.
 */
function streamed(req: IncomingMessage, options: StreamOptions): RequestBody {
  const { bytesMax, idleTimeoutMs, slowAfterMs } = options;
  let bytes = 0;
  let state: 'unread' | 'awaited' | 'full' | 'over' = 'unread';
  /** What the upstream does not take yet. */
  const queue = createByteQueue();
  let isWanted = false;
  let whole: Buffer | undefined;
  let isOpen = false;
  let onGathered: (() => void) | undefined;
  let patience: NodeJS.Timeout | undefined;
  let reader: Readable | undefined;
  let watcher: BodyWatcher | undefined;
  const idle = createIdleTimer(idleTimeoutMs, () => watcher?.onIdle(state === 'awaited'));
  const pace = createPaceCheck({ bytes: () => bytes, isAwaited: () => state === 'awaited', onSlow, slowAfterMs });

  function onSlow(): void {
    if (watcher?.isCrowded()) watcher.onIdle(true);
  }

  function gather(done: () => void): void {
    onGathered = done;
    // An empty body that was read ahead has ended already.
    if (req.readableEnded) {
      onEnd();
      return;
    }
    req.on('data', onData).on('end', onEnd);
    awaitMore();
    pace.start();
    patience = setTimeout(sendBeginning, gatheringMs);
  }

  function sendBeginning(): void {
    if (bytes === 0 || watcher?.isCrowded()) patience?.refresh();
    else endGathering();
  }

  function awaitMore(): void {
    state = 'awaited';
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
    if (isWanted && reader !== undefined) {
      isWanted = reader.push(chunk);
      return;
    }
    queue.add(chunk);
    if (queue.length() < gatheredBytesMax) return;
    state = 'full';
    pace.pause();
    req.pause();
    if (reader === undefined) endGathering();
  }

  function endGathering(): void {
    clearTimeout(patience);
    onGathered?.();
    onGathered = undefined;
  }

  function onEnd(): void {
    stop();
    if (reader === undefined && !isOpen) whole = Buffer.concat(queue.take());
    if (queue.length() === 0) reader?.push(null);
    watcher?.onEnd();
    endGathering();
  }

  function stop(): void {
    state = 'over';
    clearTimeout(patience);
    idle.stop();
    pace.stop();
  }

  /** Takes what was gathered only when it is read: until then another attempt may have it. */
  function openStream(): Readable {
    isOpen = true;
    const stream: Readable = new Readable({
      // The rest waits in the queue.
      highWaterMark: 1,
      read() {
        reader ??= stream;
        if (reader === stream) hand(stream);
      },
      destroy(cause, done) {
        if (reader === stream) drop();
        done(cause);
      },
    });
    // undici handles errors only while the request runs.
    return stream.on('error', ignore);
  }

  function hand(stream: Readable): void {
    isWanted = true;
    for (const chunk of queue.take()) isWanted = stream.push(chunk);
    if (state === 'over') stream.push(null);
    else if (state === 'full') awaitMore();
  }

  function drop(): void {
    const isAwaitingUs = state === 'unread' && req.headers.expect !== undefined;
    stop();
    queue.take();
    req.removeListener('data', onData).removeListener('end', onEnd);
    // Reading would make Node ask the client for the body.
    if (!isAwaitingUs) req.resume();
  }

  return {
    gather,
    open: () => whole ?? openStream(),
    isRepeatable: () => reader === undefined,
    isWhole: () => whole !== undefined,
    hasArrived: () => state === 'over',
    watch(given) {
      watcher = given;
    },
    drop,
  };
}

const slowBytesMin = 1024;

interface PaceOptions {
  readonly bytes: () => number;
  readonly isAwaited: () => boolean;
  readonly onSlow: () => void;
  readonly slowAfterMs: number | undefined;
}

/** Reports a body that brings less than 1 KiB a second, over times in which only the client had to act. */
function createPaceCheck({ bytes, isAwaited, onSlow, slowAfterMs = 10_000 }: PaceOptions) {
  const bytesMin = (slowBytesMin * slowAfterMs) / 1000;
  let timer: NodeJS.Timeout | undefined;
  let bytesBefore = 0;
  let wasPaused = false;

  function check(): void {
    const isSlow = isAwaited() && !wasPaused && bytes() - bytesBefore < bytesMin;
    bytesBefore = bytes();
    wasPaused = !isAwaited();
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

/** A body that is in memory already. */
export function wholeBody(content: Uint8Array | string): RequestBody {
  const yes = () => true;
  return {
    gather: (done) => done(),
    open: () => content,
    isRepeatable: yes,
    isWhole: yes,
    hasArrived: yes,
    watch: ignore,
    drop: ignore,
  };
}

function ignore(): void {}

/** The client has stopped in the middle of its body. */
export function uploadTimedOut(): Problem {
  return problem('request-timeout', { headers: { Connection: 'close' } });
}
