/** The beginning of a request's body, read ahead and put back, so that whoever reads it next finds it unharmed. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { markBodyWhole } from '#http';

export interface PeekedBody {
  readonly bytes: Buffer;
  /** False: there is more. */
  readonly isWhole: boolean;
}

/**
 * Reads on until `bytesMax` are exceeded or the body is at its end; so `bytes` may be longer than that, by one chunk.
 * Undefined when the client breaks off.
 */
export async function peekBody(
  req: IncomingMessage,
  res: ServerResponse,
  bytesMax: number,
): Promise<PeekedBody | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  while (length <= bytesMax) {
    const chunk: Buffer | null = req.read();
    if (chunk !== null) {
      chunks.push(chunk);
      length += chunk.length;
    } else if (req.complete) break;
    else if (!(await hasMore(req))) return undefined;
  }
  const bytes = Buffer.concat(chunks);
  putBack(req, res, bytes);
  return { bytes, isWhole: length <= bytesMax };
}

/** Node drops what a handler leaves unread of a body, but not once it was begun to be read; the next request would wait behind it. */
function putBack(req: IncomingMessage, res: ServerResponse, bytes: Buffer): void {
  if (bytes.length > 0) req.unshift(bytes);
  markBodyWhole(req);
  res.once('finish', () => req.resume());
}

/** Waits for more, or for the end; false when there will be neither. */
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
