/** Bounds what a client of HTTP/2 may send besides requests and bodies, and how many of its requests it may reset. */
import type { Socket } from 'node:net';
import { http2Codes } from '../../http2-codes.ts';
import type { StreamSocket } from './messages.ts';

/**
 * Requests that a client may reset at once, and per second after that. Each has started its work. A proxy in front puts
 * the requests of many clients on one connection, and gRPC clients reset each call that is too late.
 */
const resetBurst = 100;
const resetRate = 100;

/**
 * What a client may send at once, and per second after that, in frames that carry no request and no body. Bodies count as
 * well until they are read, which can be half of it.
 */
const overheadBurst = 2_097_152;
const overheadRate = 16_384;
/** What such frames may weigh for each byte of requests and responses, as in nginx: window updates, small frames. */
const overheadFactor = 8;

export interface MisuseOptions {
  /** The streams that a client may have at a time. */
  readonly streamsMax: number;
  /** What a client may still send of a body when its stream ends early. */
  readonly windowBytes: number;
}

export interface Misuse {
  /** Call it with the number of streams whose requests may still run. */
  readonly onStreamOpen: (openCount: number) => void;
  /** Call it when a stream has closed. */
  readonly onStreamClose: (stream: StreamSocket) => void;
  /** Counts the bytes since the last call. Call it at least once a second. */
  readonly onSweep: (open: Iterable<StreamSocket>) => void;
}

/** Calls `onExcess` with the reason when the client has exceeded a bound. */
export function watchMisuse(
  socket: Socket,
  { streamsMax, windowBytes }: MisuseOptions,
  onExcess: (reason: string) => void,
): Misuse {
  const resets = createLeakyBucket(resetBurst, resetRate);
  const overhead = createLeakyBucket(overheadBurst, overheadRate);
  /** What streams that have closed justify. */
  let closedBytes = 0;
  let lastExcess = 0;

  return Object.freeze({
    onStreamOpen(openCount: number) {
      if (openCount > streamsMax + resetBurst) onExcess(tooManyResets);
    },
    onStreamClose(stream: StreamSocket) {
      closedBytes += justifiedBy(stream) + (stream._httpMessage?.req.complete === false ? windowBytes : 0);
      if (isReset(stream) && !resets.add(1)) onExcess(tooManyResets);
    },
    onSweep(open: Iterable<StreamSocket>) {
      let justified = closedBytes;
      for (const stream of open) justified += justifiedBy(stream);
      const excess = socket.bytesRead - justified;
      const isWithin = overhead.add(excess - lastExcess);
      lastExcess = excess;
      if (!isWithin) onExcess('the client sends too many frames without a request or a body');
    },
  } satisfies Misuse);
}

const tooManyResets = 'the client resets too many requests';

function justifiedBy({ bytesRead, bytesWritten }: StreamSocket): number {
  return overheadFactor * (bytesRead + bytesWritten);
}

/** By the client, or because of a frame that is not allowed. A response that the server cuts off is destroyed before. */
function isReset({ rstCode, _httpMessage: response }: StreamSocket): boolean {
  return (rstCode !== http2Codes.NO_ERROR || response?.writableEnded === false) && response?.destroyed !== true;
}

/** `add` returns false if there is too much in the bucket. */
function createLeakyBucket(max: number, leakPerSecond: number): { readonly add: (amount: number) => boolean } {
  let level = 0;
  let atMs = performance.now();
  return {
    add(amount) {
      const nowMs = performance.now();
      level = Math.max(0, level + amount - ((nowMs - atMs) / 1000) * leakPerSecond);
      atMs = nowMs;
      return level <= max;
    },
  };
}
