/** Sends a value: 200 or 304 with its entity tag, a stored response, a redirect, 405 and OPTIONS. */
import type { Context } from 'koa';
import type { PageFile } from './html/files.ts';
import { digestTag, noneMatchFails } from './precondition.ts';
import { problem } from './problem.ts';
import type { Formatter } from './representations.ts';

export interface RepresentOptions {
  /** Heads the page for people. */
  readonly title: string;
  /** Changes whenever the value or the selection from it does; without quotes. @default a digest of the body */
  readonly version?: string | undefined;
}

/** Sets status 200 or 304, the entity tag, `Vary` and the body. `formatter` is the one that negotiation chose. */
export function represent(ctx: Context, formatter: Formatter, value: unknown, options: RepresentOptions): void {
  const { res } = ctx;
  if (res.hasHeader('Vary')) ctx.vary('Accept');
  else res.setHeader('Vary', 'Accept');
  if (!res.hasHeader('Cache-Control')) res.setHeader('Cache-Control', 'private, no-cache');
  const { title, version } = options;
  // A known version is compared before the body is made.
  if (version !== undefined && answerNotModified(ctx, `"${version}-${formatter.tag}"`)) return;
  const body = formatter.format(value, title);
  if (version === undefined && answerNotModified(ctx, digestTag(body))) return;
  res.setHeader('Content-Type', formatter.contentType);
  if (formatter.headers !== undefined) ctx.set({ ...formatter.headers });
  ctx.body = body;
}

/** A browser that has the file gets 304. */
export function sendPageFile(ctx: Context, { contentType, body, version }: PageFile): void {
  represent(ctx, { type: contentType, contentType, tag: 'file', format: () => body }, body, { title: '', version });
}

/** Sets the tag. When the client has that representation already, the response is 304 and complete. */
function answerNotModified(ctx: Context, tag: string): boolean {
  ctx.res.setHeader('ETag', tag);
  const ifNoneMatch = ctx.req.headers['if-none-match'];
  // For other methods a failed If-None-Match is 412, and too late to check after the change (RFC 9110 section 13.1.2).
  const isGet = ctx.method === 'GET' || ctx.method === 'HEAD';
  if (ifNoneMatch === undefined || !isGet || !noneMatchFails(ifNoneMatch, tag)) return false;
  ctx.status = 304;
  ctx.body = null;
  return true;
}

/** A whole response as plain data, to be kept and sent again. Survives `JSON.stringify` and `JSON.parse`. */
export interface StoredResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface ResponseOptions {
  /** Heads the page for people. */
  readonly title: string;
  /** As in `RepresentOptions`. */
  readonly version: string | undefined;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** The response that represents `value`, with its entity tag. */
export function renderResponse(formatter: Formatter, value: unknown, options: ResponseOptions): StoredResponse {
  const { title, version, status, headers } = options;
  const body = formatter.format(value, title);
  const tag = version === undefined ? digestTag(body) : `"${version}-${formatter.tag}"`;
  const ofBody = { ETag: tag, 'Content-Type': formatter.contentType, ...formatter.headers };
  return { status, headers: { ...headers, ...ofBody }, body };
}

/** `isReplayed`: an earlier request did the work, and had the same response. */
export function sendStoredResponse(ctx: Context, { status, headers, body }: StoredResponse, isReplayed: boolean): void {
  ctx.status = status;
  ctx.vary('Accept');
  ctx.set({ 'Cache-Control': 'private, no-cache', ...headers });
  if (isReplayed) ctx.set('Idempotent-Replayed', 'true');
  ctx.body = body;
}

/**
 * The permanent redirect that keeps the method (RFC 9110 section 15.4.9). `location`: path-absolute, with the mount path
 * and the query. It cannot lead to another host.
 */
export function redirectTo(ctx: Context, location: string): void {
  ctx.set('Location', location.replace(/^\/[/\\]+/, '/'));
  ctx.body = null;
  ctx.status = 308;
}

/**
 * For a method that the resource does not handle itself: 204 with `Allow` for OPTIONS, or throws `method-not-allowed`
 * (RFC 9110 section 15.5.6). `allowed` includes OPTIONS.
 */
export function answerOtherMethod(ctx: Context, allowed: readonly string[]): void {
  const allow = allowed.join(', ');
  if (ctx.method !== 'OPTIONS') {
    throw problem('method-not-allowed', { detail: `This resource takes ${allow}.`, headers: { Allow: allow } });
  }
  ctx.set('Allow', allow);
  if (allowed.includes('PATCH')) ctx.set('Accept-Patch', 'application/json');
  ctx.status = 204;
}

const readMethods = Object.freeze(['GET', 'HEAD', 'OPTIONS']);

/**
 * For a resource with exactly one path that can only be read. True: answer it. False: the request was OPTIONS, and has
 * its response. Throws `not-found` for another path, `method-not-allowed` for another method.
 */
export function isRead(ctx: Context, path: string): boolean {
  if (ctx.path !== path) throw problem('not-found');
  if (ctx.method === 'GET' || ctx.method === 'HEAD') return true;
  answerOtherMethod(ctx, readMethods);
  return false;
}
