/** The client's body on its way to an upstream: streamed, bounded, or taken from a host's parser that has read it. */
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { Context } from 'koa';
import { bodyFromHost, bodyTooLarge, hasBody, isBodyUnread, type Problem, problem } from '#http';
import { createIdleTimer } from './idle-timer.ts';

export interface BodyWatcher {
  /** All of it has arrived. */
  readonly onEnd: () => void;
  /** It pauses for too long; `isClients`: because of the client, not of the upstream. */
  readonly onIdle: (isClients: boolean) => void;
}

export interface RequestBody {
  /** As undici takes it. */
  readonly content: Readable | Uint8Array | string;
  /** True once a stream was read from: it cannot be sent again. */
  readonly hasBegun: () => boolean;
  /** True while the upstream wants more of it than the client has sent. */
  readonly awaitsClient: () => boolean;
  readonly watch: (watcher: BodyWatcher) => void;
  /** Reads on and drops it. */
  readonly drop: () => void;
}

export interface RequestBodyOptions {
  readonly bytesMax: number;
  /** How long a stream may pause, in milliseconds; 0: no limit. */
  readonly idleTimeoutMs: number;
}

/** Undefined when the request has no body. Throws `body-too-large` and `body-consumed`; a stream that grows too large fails with the former. */
export function createRequestBody(ctx: Context, options: RequestBodyOptions): RequestBody | undefined {
  const { req } = ctx;
  if (!hasBody(req.headers, options.bytesMax)) return undefined;
  return isBodyUnread(req) ? streamed(req, options) : wholeBody(bodyFromHost(ctx, options.bytesMax));
}

/**
 * Never the request itself: undici destroys the body of a call that fails, and destroying the request would close the
 * client's connection before the response. The rest of the body is then read and dropped: closing a connection with
 * unread bytes resets it, and a reset can overtake the response.
 */
function streamed(req: IncomingMessage, { bytesMax, idleTimeoutMs }: RequestBodyOptions): RequestBody {
  let bytes = 0;
  let state: 'unread' | 'awaited' | 'full' | 'over' = 'unread';
  let watcher: BodyWatcher | undefined;
  const idle = createIdleTimer(idleTimeoutMs, () => watcher?.onIdle(state === 'awaited'));

  function read(): void {
    if (state === 'over') return;
    // An empty body that was read ahead has ended already.
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
    // Reading would make Node ask the client for the body.
    if (!isAwaitingUs) req.resume();
    done(cause);
  }

  const body = new Readable({ highWaterMark: 64 * 1024, read, destroy });
  // undici handles errors only while the request runs.
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

/** The client has stopped in the middle of its body. */
export function uploadTimedOut(): Problem {
  return problem('request-timeout', { headers: { Connection: 'close' } });
}
