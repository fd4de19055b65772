/** Sends a value in its negotiated representation, or says that the client has it already. */
import type { Context } from 'koa';
import { digestTag, noneMatchFails } from './conditional.ts';
import type { Formatter } from './formatters.ts';

export interface RepresentOptions {
  /** Heads the page for people. */
  readonly title: string;
  /** What changes whenever the value or the selection from it does, free of quotes. @default a digest of the body */
  readonly version?: string | undefined;
}

/** Sets status 200 or 304, the entity tag, `Vary` and the body. `formatter` is the one that negotiation chose. */
export function represent(ctx: Context, formatter: Formatter, value: unknown, options: RepresentOptions): void {
  const { res } = ctx;
  if (res.hasHeader('Vary')) ctx.vary('Accept');
  else res.setHeader('Vary', 'Accept');
  if (!res.hasHeader('Cache-Control')) res.setHeader('Cache-Control', 'private, no-cache');
  const { title, version } = options;
  if (version !== undefined && tagIsKnown(ctx, `"${version}-${formatter.tag}"`)) return;
  const body = formatter.format(value, title);
  if (version === undefined && tagIsKnown(ctx, digestTag(body))) return;
  res.setHeader('Content-Type', formatter.contentType);
  if (formatter.headers !== undefined) ctx.set({ ...formatter.headers });
  ctx.body = body;
}

/** Tells the client the tag; when it has that representation already, the answer is 304 and complete. */
function tagIsKnown(ctx: Context, tag: string): boolean {
  ctx.res.setHeader('ETag', tag);
  const ifNoneMatch = ctx.req.headers['if-none-match'];
  if (ifNoneMatch === undefined || !isRead(ctx.method) || !noneMatchFails(ifNoneMatch, tag)) return false;
  ctx.status = 304;
  ctx.body = null;
  return true;
}

/** For any other method a failed `If-None-Match` is 412, and not for us to say after the deed (RFC 9110 section 13.1.2). */
function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}
