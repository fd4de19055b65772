/** The client's body on its way to an upstream: streamed, bounded, and found again when a host's parser has read it. */
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { Context } from 'koa';
import { bodyFromHost, bodyTooLarge, hasBody, isBodyUnread, type Problem, problem } from '#http';
import { createIdleTimer } from './idle-timer.ts';

export interface BodyWatcher {
  /** All of it has come. */
  readonly onEnd: () => void;
  /** It rests for too long; `isClients`: it is the client who is waited for, not the upstream. */
  readonly onIdle: (isClients: boolean) => void;
}

export interface RequestBody {
  /** As undici takes it. */
  readonly content: Readable | Uint8Array | string;
  /** True once any of a stream was asked for: it cannot be sent again. */
  readonly hasBegun: () => boolean;
  /** True while the upstream wants more of it than the client has sent. */
  readonly awaitsClient: () => boolean;
  readonly watch: (watcher: BodyWatcher) => void;
  /** Reads on and drops it. */
  readonly drop: () => void;
}

export interface RequestBodyOptions {
  readonly bytesMax: number;
  /** How long a stream may rest, in milliseconds; 0: without end. */
  readonly idleTimeoutMs: number;
}

/** Undefined when the request has no body. Throws `body-too-large` and `body-consumed`; a stream that grows too large fails with the former. */
export function createRequestBody(ctx: Context, options: RequestBodyOptions): RequestBody | undefined {
  const { req } = ctx;
  if (!hasBody(req.headers, options.bytesMax)) return undefined;
  return isBodyUnread(req) ? streamed(req, options) : wholeBody(bodyFromHost(ctx, options.bytesMax));
}

/**
 * Never the request itself: undici destroys the body of an exchange that fails, and with the request would go the
 * client's connection and the answer. What is left of the body then is read and dropped: a connection that is closed
 * over unread bytes is reset, and a reset can overtake the answer.
 */
function streamed(req: IncomingMessage, { bytesMax, idleTimeoutMs }: RequestBodyOptions): RequestBody {
  let bytes = 0;
  let state: 'unread' | 'awaited' | 'full' | 'over' = 'unread';
  let watcher: BodyWatcher | undefined;
  const idle = createIdleTimer(idleTimeoutMs, () => watcher?.onIdle(state === 'awaited'));

  function read(): void {
    if (state === 'over') return;
    // One that was read ahead and is empty has ended before anybody listened.
    if (req.readableEnded) {
      onEnd();
      return;
    }
    if (state === 'unread') begin();
    else if (state === 'full') req.resume();
    state = 'awaited';
    idle.touch();
  }

  function begin(): void {
    req.on('data', onData).on('end', onEnd).resume();
  }

  function onData(chunk: Buffer): void {
    bytes += chunk.length;
    if (bytes > bytesMax) {
      body.destroy(bodyTooLarge(bytesMax));
      return;
    }
    idle.touch();
    if (body.push(chunk)) return;
    state = 'full';
    req.pause();
  }

  function onEnd(): void {
    state = 'over';
    idle.stop();
    body.push(null);
    watcher?.onEnd();
  }

  function destroy(cause: Error | null, done: (cause: Error | null) => void): void {
    const isAwaitingUs = state === 'unread' && req.headers.expect !== undefined;
    state = 'over';
    idle.stop();
    req.removeListener('data', onData).removeListener('end', onEnd);
    // To read would be to ask for a body that is not wanted any more.
    if (!isAwaitingUs) req.resume();
    done(cause);
  }

  const body = new Readable({ highWaterMark: 64 * 1024, read, destroy });
  // It is told to undici, which listens only for as long as the exchange lasts.
  body.on('error', ignore);
  return {
    content: body,
    hasBegun: () => state !== 'unread',
    awaitsClient: () => state === 'awaited',
    watch(given) {
      watcher = given;
    },
    drop: () => void body.destroy(),
  };
}

/** A body that is in memory already. */
export function wholeBody(content: Uint8Array | string): RequestBody {
  const no = () => false;
  return { content, hasBegun: no, awaitsClient: no, watch: ignore, drop: ignore };
}

function ignore(): void {}

/** For a client that stops in the middle of its body. */
export function uploadTimedOut(): Problem {
  return problem('request-timeout', { headers: { Connection: 'close' } });
}
