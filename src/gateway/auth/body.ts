/** Reads the beginning of a request body for the auth service, and puts it back for the next reader. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context } from 'koa';
import type { AuthService } from '#config';
import { announcesBody, ByteQueue, markBodyRestored, problem } from '#http';

export interface AuthBody {
  readonly bytes: Buffer;
  /** False when the body has more bytes, which the auth service does not see. */
  readonly isWhole: boolean;
}

const noBody: AuthBody = Object.freeze({ bytes: Buffer.alloc(0), isWhole: true });

/** Bodies in memory for one auth service, until their responses are complete. */
export const heldBytesMax = 128 * 1024 * 1024;

/** Leaves the body readable. Resolves to undefined when the client disconnects. Rejects with a Problem. */
export type ReadAuthBody = (ctx: Pick<Context, 'req' | 'res'>) => Promise<AuthBody | undefined>;

/**
 * Reading happens before authentication, so anyone can fill the memory. Beyond `bytesMax`, across all requests, the
 * oldest body that is still arriving is rejected: an honest one arrives quickly.
 */
export function createAuthBodyReader(
  { maxBytes, allowPartial }: NonNullable<AuthService['includeBody']>,
  bytesMax = heldBytesMax,
): ReadAuthBody {
  const arriving = new Set<HeldBody>();
  let heldBytes = 0;

  function hold(body: HeldBody, bytes: number): void {
    body.bytes += bytes;
    heldBytes += bytes;
    const [oldest] = arriving;
    if (heldBytes <= bytesMax || oldest === undefined) return;
    release(oldest);
    oldest.isRejected = true;
    oldest.wake();
  }

  function release(body: HeldBody): void {
    arriving.delete(body);
    heldBytes -= body.bytes;
    body.bytes = 0;
  }

  return async function readAuthBody({ req, res }) {
    if (!announcesBody(req)) return noBody;
    if (!allowPartial && Number(req.headers['content-length']) > maxBytes) throw tooLarge(maxBytes);
    // The response has already emitted `close`, so the bytes would count forever.
    if (res.destroyed) return undefined;
    const body: HeldBody = { bytes: 0, isRejected: false, wake() {} };
    arriving.add(body);
    res.once('close', () => release(body));
    const bytes = await peekBody(req, body, maxBytes, hold);
    arriving.delete(body);
    if (bytes === undefined) return undefined;
    putBack(req, res, bytes);
    const isWhole = bytes.length <= maxBytes;
    if (!isWhole && !allowPartial) throw tooLarge(maxBytes);
    return { bytes: bytes.subarray(0, maxBytes), isWhole };
  };
}

interface HeldBody {
  bytes: number;
  isRejected: boolean;
  /** Ends the wait for more bytes. */
  wake: () => void;
}

function tooLarge(maxBytes: number) {
  return problem('body-too-large', {
    detail: `The body must not exceed ${maxBytes} bytes, because the auth service inspects it.`,
    headers: { Connection: 'close' },
  });
}

function overloaded() {
  return problem('overloaded', {
    detail: 'The bodies that await authentication fill the memory reserved for them.',
    headers: { Connection: 'close' },
  });
}

/**
 * Reads until the body ends or exceeds `bytesMax`, so the result may be longer by up to one chunk. Resolves to undefined
 * when the client disconnects. Throws `overloaded` when the body is rejected.
 */
async function peekBody(
  req: IncomingMessage,
  body: HeldBody,
  bytesMax: number,
  hold: (body: HeldBody, bytes: number) => void,
): Promise<Buffer | undefined> {
  const queue = new ByteQueue();
  while (queue.length() <= bytesMax) {
    const chunk: Buffer | null = req.read();
    if (chunk !== null) {
      queue.add(chunk);
      hold(body, chunk.length);
    } else if (req.complete) break;
    else if (!(await hasMore(req, body))) return undefined;
    if (body.isRejected) throw overloaded();
  }
  return Buffer.concat(queue.take());
}

/**
 * Also discards the rest of the body after the response. Node does this only for a body that has not been read at all,
 * and the unread rest would block the next request on the connection.
 */
function putBack(req: IncomingMessage, res: ServerResponse, bytes: Buffer): void {
  if (bytes.length > 0) req.unshift(bytes);
  markBodyRestored(req);
  res.once('finish', () => req.resume());
}

/** Waits for more bytes, the end or the rejection of the body. Resolves to false when the connection closes first. */
function hasMore(req: IncomingMessage, body: HeldBody): Promise<boolean> {
  if (req.destroyed) return Promise.resolve(false);
  return new Promise((resolve) => {
    const settle = () => {
      req.removeListener('readable', settle).removeListener('close', settle).removeListener('error', settle);
      resolve(!req.destroyed || req.complete);
    };
    req.once('readable', settle).once('close', settle).once('error', settle);
    body.wake = settle;
  });
}
