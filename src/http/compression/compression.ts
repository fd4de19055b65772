/** Compresses responses for clients that accept it: small bodies at once, stored ones once, others while they are sent. */
import { Readable } from 'node:stream';
import type { Context } from 'koa';
import { beforeHead } from '../server/node-fixes.ts';
import { createChooseCoding } from './accept-encoding.ts';
import { addOwnTags, hasPrecondition, restoreKnownTag } from './coding-tags.ts';
import { type Coding, coders } from './codings.ts';
import { compressStream } from './compressed-stream.ts';
import { describeCoding, forbidsTransform, mayCompress, type ResponseRule } from './response-rules.ts';
import { type StoredBody, storedBody } from './stored-body.ts';

/** Compressing more at once would keep other requests waiting. */
const bytesAtOnceMax = 32 * 1024;

/** Each takes up to 2 MiB. */
export const compressedStreamsMaxDefault = 64;

export interface CompressionOptions {
  /** How many responses may be compressed while they are sent. Others are then sent as they are. */
  readonly streamsMax?: number;
}

export interface CompressionCounts {
  /** Responses by coding. */
  readonly responses: Readonly<Record<Coding, number>>;
  /** How many bytes shorter their bodies became. */
  readonly savedBytes: number;
}

export interface Compression {
  readonly counts: CompressionCounts;
  /** Returns how many responses are being compressed while they are sent. */
  readonly openStreams: () => number;
  readonly createRule: (rule: ResponseRule) => CompressionRule;
}

/** What a route does with its responses. */
export interface CompressionRule {
  /** Call it before the service sees the request. */
  readonly prepare: (ctx: Context) => void;
  /** Call it when the response is complete on `ctx`, but not sent. Returns a promise only for a stored body. */
  readonly compress: (ctx: Context) => Promise<void> | undefined;
}

export function createCompression({ streamsMax = compressedStreamsMaxDefault }: CompressionOptions = {}): Compression {
  const chooseCoding = createChooseCoding();
  const counts = { responses: { zstd: 0, br: 0, gzip: 0 }, savedBytes: 0 };
  const stored = new WeakMap<StoredBody, Map<Coding, Promise<Buffer>>>();
  let open = 0;

  /** Undefined if the client does not want a coding. Ranges are those of the uncompressed body. */
  function codingFor({ req: { headers } }: Context): Coding | undefined {
    const { 'accept-encoding': accepted, 'cache-control': cacheControl = '', range } = headers;
    if (range !== undefined || forbidsTransform(cacheControl)) return undefined;
    return chooseCoding(accepted);
  }

  function createRule(rule: ResponseRule): CompressionRule {
    return {
      prepare(ctx) {
        if (rule.isOwn && hasPrecondition(ctx)) addOwnTags(ctx, codingFor(ctx));
      },
      compress(ctx) {
        if (ctx.headerSent || ctx.respond === false) return undefined;
        if (ctx.res.statusCode === 304) answerNotModified(ctx, rule);
        else if (mayCompress(ctx.res, rule)) return compressFor(ctx, rule);
        return undefined;
      },
    };
  }

  function answerNotModified(ctx: Context, { isOwn }: ResponseRule): void {
    ctx.vary('Accept-Encoding');
    restoreKnownTag(ctx, codingFor(ctx), isOwn);
  }

  /** The length of a HEAD may be unknown. It then does not say whether the body of a GET would be compressed. */
  function compressFor(ctx: Context, rule: ResponseRule): Promise<void> | undefined {
    ctx.vary('Accept-Encoding');
    const coding = codingFor(ctx);
    if (coding === undefined) return undefined;
    if (ctx.method !== 'HEAD') return compressBody(ctx, coding, rule);
    if (ctx.res.hasHeader('content-length')) describeHead(ctx, coding, rule);
    return undefined;
  }

  function compressBody(ctx: Context, coding: Coding, rule: ResponseRule): Promise<void> | undefined {
    const body: unknown = ctx.body;
    const file = storedBody(ctx);
    if (file !== undefined) return compressStored(ctx, file, coding, rule);
    if (typeof body !== 'string' && !Buffer.isBuffer(body)) streamBody(ctx, readableOf(body), coding, rule);
    else if (Buffer.byteLength(body) > bytesAtOnceMax) streamBody(ctx, Readable.from([body]), coding, rule);
    else replaceBody(ctx, coders[coding].compressNow(body), coding, rule);
    return undefined;
  }

  async function compressStored(ctx: Context, file: StoredBody, coding: Coding, rule: ResponseRule): Promise<void> {
    const known = stored.get(file) ?? new Map<Coding, Promise<Buffer>>();
    stored.set(file, known);
    const compressed = known.get(coding) ?? coders[coding].compressWell(file.body);
    known.set(coding, compressed);
    // Lets the next request try again.
    compressed.catch(() => known.delete(coding));
    replaceBody(ctx, await compressed, coding, rule);
  }

  function replaceBody(ctx: Context, compressed: Buffer, coding: Coding, rule: ResponseRule): void {
    const saved = ctx.response.length - compressed.length;
    // Random text does not get shorter.
    if (saved <= 0) return;
    describeCoding(ctx.res, coding, rule);
    ctx.body = compressed;
    counts.responses[coding] += 1;
    counts.savedBytes += saved;
  }

  function streamBody(ctx: Context, source: Readable | undefined, coding: Coding, rule: ResponseRule): void {
    if (source === undefined || open >= streamsMax) return;
    const { res } = ctx;
    const compressed = compressStream(source, coding);
    let bytes = 0;
    open += 1;
    // Not earlier: the listener starts the stream.
    res.once('pipe', () =>
      compressed.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      }),
    );
    compressed.once('close', () => {
      open -= 1;
      counts.responses[coding] += 1;
      counts.savedBytes += Math.max(0, compressed.bytesWritten - bytes);
    });
    ctx.body = compressed;
    describeCoding(res, coding, rule);
  }

  return Object.freeze({ counts, openStreams: () => open, createRule });
}

/** A GET would have these headers. Koa would add the length of the uncompressed body. */
function describeHead({ res }: Context, coding: Coding, rule: ResponseRule): void {
  describeCoding(res, coding, rule);
  beforeHead(res, () => res.removeHeader('Content-Length'));
}

/** Undefined for a body that Koa does not stream. */
function readableOf(body: unknown): Readable | undefined {
  if (body instanceof Blob) return Readable.from(body.stream());
  if (body instanceof ReadableStream) return Readable.from(body);
  if (body instanceof Response) return body.body === null ? undefined : Readable.from(body.body);
  return body instanceof Readable ? body : undefined;
}
