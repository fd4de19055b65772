/** The client's body on its way to an upstream: streamed, bounded, and found again when a host's parser has read it. */
import { type Readable, Transform } from 'node:stream';
import type { Context } from 'koa';
import { problem } from '#http';

/** Null when the request has none. Throws `body-too-large` and `body-consumed`; a stream that grows too large fails with the former. */
export function upstreamBody(ctx: Context, bytesMax: number): Readable | Buffer | string | null {
  const { req } = ctx;
  const length = req.headers['content-length'];
  const chunked = req.headers['transfer-encoding'] !== undefined;
  if (!chunked && (length === undefined || length === '0')) return null;
  if (Number(length) > bytesMax) throw tooLarge(bytesMax);
  if (req.readableDidRead) return bodyReadBefore(ctx);
  return chunked ? req.pipe(boundedBy(bytesMax)) : req;
}

function boundedBy(bytesMax: number): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > bytesMax) done(tooLarge(bytesMax));
      else done(null, chunk);
    },
  });
}

function tooLarge(bytesMax: number) {
  return problem('body-too-large', {
    detail: `The body may have ${bytesMax} bytes at most.`,
    headers: { Connection: 'close' },
  });
}

/** koa-bodyparser and its successor keep what they read in `rawBody`; without it the bytes are gone. */
function bodyReadBefore(ctx: Context): string {
  const { rawBody } = ctx.request as { rawBody?: unknown };
  if (typeof rawBody === 'string') return rawBody;
  throw problem('body-consumed');
}
