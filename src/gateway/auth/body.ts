/** Reads the beginning of a request body for the auth service, and puts it back for the next reader. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context } from 'koa';
import type { AuthService } from '#config';
import { createByteQueue, markBodyRestored, problem } from '#http';

export interface AuthBody {
  readonly bytes: Buffer;
  /** False when the body has more bytes, which the auth service does not see. */
  readonly isWhole: boolean;
}

const noBody: AuthBody = Object.freeze({ bytes: Buffer.alloc(0), isWhole: true });

/** Leaves the body readable. Returns undefined when the client disconnects. Throws `body-too-large`. */
export async function readAuthBody(
  { req, res }: Context,
  { maxBytes, allowPartial }: NonNullable<AuthService['includeBody']>,
): Promise<AuthBody | undefined> {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = req.headers;
  if (coding === undefined && Number(length) === 0) return noBody;
  if (!allowPartial && Number(length) > maxBytes) throw tooLarge(maxBytes);
  const peeked = await peekBody(req, res, maxBytes);
  if (peeked === undefined || peeked.isWhole) return peeked;
  if (!allowPartial) throw tooLarge(maxBytes);
  return { bytes: peeked.bytes.subarray(0, maxBytes), isWhole: false };
}

function tooLarge(maxBytes: number) {
  return problem('body-too-large', {
    detail: `The body must not exceed ${maxBytes} bytes, because the auth service inspects it.`,
    headers: { Connection: 'close' },
  });
}

/**
 * Reads until the body ends or exceeds `bytesMax`, so `bytes` may be longer by up to one chunk. Returns undefined when
 * the client disconnects.
 */
async function peekBody(req: IncomingMessage, res: ServerResponse, bytesMax: number): Promise<AuthBody | undefined> {
  const queue = createByteQueue();
  while (queue.length() <= bytesMax) {
    const chunk: Buffer | null = req.read();
    if (chunk !== null) queue.add(chunk);
    else if (req.complete) break;
    else if (!(await hasMore(req))) return undefined;
  }
  const bytes = Buffer.concat(queue.take());
  putBack(req, res, bytes);
  return { bytes, isWhole: bytes.length <= bytesMax };
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

/** Waits for more bytes or the end of the body. Resolves to false when the connection closes first. */
function hasMore(req: IncomingMessage): Promise<boolean> {
  if (req.destroyed) return Promise.resolve(false);
  return new Promise((resolve) => {
    const settle = () => {
      req.removeListener('readable', settle).removeListener('close', settle).removeListener('error', settle);
      resolve(!req.destroyed || req.complete);
    };
    req.once('readable', settle).once('close', settle).once('error', settle);
  });
}
