/** A request's body before anybody reads it: whether there is one, whether it is still there, and where a host's parser left it. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import { type Problem, problem } from './problem.ts';

const putBackKey = Symbol('put back');

interface Carrier {
  [putBackKey]?: true;
}

/** By its headers alone. Throws the Problem of a body that is refused unread. */
export function announcesBody(headers: IncomingHttpHeaders, bytesMax: number): boolean {
  const { 'content-length': length, 'transfer-encoding': coding } = headers;
  if (coding === undefined && (length === undefined || Number(length) === 0)) return false;
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') throw codedTransfer();
  if (Number(length) > bytesMax) throw bodyTooLarge(bytesMax);
  return true;
}

/** True unless the body was begun to be read by somebody who did not put it back. */
export function isBodyWhole(req: IncomingMessage): boolean {
  return !req.readableDidRead || (req as Carrier)[putBackKey] === true;
}

/** For whoever read ahead and has put back what he read. */
export function markBodyWhole(req: IncomingMessage): void {
  (req as Carrier)[putBackKey] = true;
}

/**
 * koa-bodyparser and its successor keep what they read in `rawBody`, unpacked and decoded; it stands in for the body
 * only where that is the same. Otherwise the bytes are gone: throws `body-consumed`, or `body-too-large`.
 */
export function bodyReadBefore(ctx: Context, bytesMax: number): Uint8Array | string {
  const { rawBody } = ctx.request as { rawBody?: unknown };
  const { 'content-length': length, 'content-encoding': encoding } = ctx.req.headers;
  if (!(typeof rawBody === 'string' || rawBody instanceof Uint8Array)) throw problem('body-consumed');
  const bytes = Buffer.byteLength(rawBody);
  if (encoding !== undefined || (length !== undefined && Number(length) !== bytes)) throw problem('body-consumed');
  if (bytes > bytesMax) throw bodyTooLarge(bytesMax);
  return rawBody;
}

export function bodyTooLarge(bytesMax: number): Problem {
  return problem('body-too-large', {
    detail: `The body may have ${bytesMax} bytes at most.`,
    headers: { Connection: 'close' },
  });
}

/** Node undoes `chunked` alone; what is packed inside it would reach the reader without a word of how. */
function codedTransfer(): Problem {
  return problem('bad-request', {
    detail: 'The only transfer coding that is understood is chunked.',
    headers: { Connection: 'close' },
  });
}
