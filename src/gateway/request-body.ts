/** The client's body on its way to an upstream: streamed, bounded, and found again when a host's parser has read it. */
import type { IncomingMessage } from 'node:http';
import { type Readable, Transform } from 'node:stream';
import type { Context } from 'koa';
import { problem } from '#http';

/** Null when the request has none. Throws `body-too-large` and `body-consumed`; a stream that grows too large fails with the former. */
export function upstreamBody(ctx: Context, bytesMax: number): Readable | Uint8Array | string | null {
  const { req } = ctx;
  const { 'content-length': length, 'transfer-encoding': coding } = req.headers;
  if (coding === undefined && (length === undefined || Number(length) === 0)) return null;
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') throw codedTransfer();
  if (Number(length) > bytesMax) throw tooLarge(bytesMax);
  return req.readableDidRead ? bodyReadBefore(ctx, bytesMax) : bounded(req, bytesMax);
}

/**
 * Never the request itself: undici destroys the body of an exchange that fails, and with the request would go the
 * client's connection and the answer. What is left of the body then is read and dropped: a connection that is closed
 * over unread bytes is reset, and a reset can overtake the answer.
 */
function bounded(req: IncomingMessage, bytesMax: number): Transform {
  let bytes = 0;
  const body = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > bytesMax) done(tooLarge(bytesMax));
      else done(null, chunk);
    },
  });
  body.once('close', () => {
    req.unpipe(body);
    req.resume();
  });
  return req.pipe(body);
}

function tooLarge(bytesMax: number) {
  return problem('body-too-large', {
    detail: `The body may have ${bytesMax} bytes at most.`,
    headers: { Connection: 'close' },
  });
}

/** Node undoes `chunked` alone; what is packed inside it would reach the upstream without a word of how. */
function codedTransfer() {
  return problem('bad-request', {
    detail: 'The only transfer coding that is understood is chunked.',
    headers: { Connection: 'close' },
  });
}

/**
 * koa-bodyparser and its successor keep what they read in `rawBody`, unpacked and decoded; it stands in for the body
 * only where that is the same. Otherwise the bytes are gone.
 */
function bodyReadBefore(ctx: Context, bytesMax: number): Uint8Array | string {
  const { rawBody } = ctx.request as { rawBody?: unknown };
  const { 'content-length': length, 'content-encoding': encoding } = ctx.req.headers;
  if (!(typeof rawBody === 'string' || rawBody instanceof Uint8Array)) throw problem('body-consumed');
  const bytes = Buffer.byteLength(rawBody);
  if (encoding !== undefined || (length !== undefined && Number(length) !== bytes)) throw problem('body-consumed');
  if (bytes > bytesMax) throw tooLarge(bytesMax);
  return rawBody;
}
