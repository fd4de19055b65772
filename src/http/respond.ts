/** Sends the standard responses: representations with entity tags, stored responses, redirects, 405 and OPTIONS. */
import type { Context } from 'koa';
import { markStored } from './compression/stored-body.ts';
import type { TaggedBody } from './html/html.ts';
import { type PageRoute, placeOf } from './html/places.ts';
import { patchTypes } from './json-body.ts';
import { digestTag, matchFails, noneMatchFails, preconditionFailed } from './precondition.ts';
import { problem } from './problem.ts';
import { type Formatter, isPage } from './representations.ts';

export interface RepresentOptions {
  /** The heading of the HTML page. */
  readonly title: string;
  /** The entity tag begins with it. @default the tag is only a digest of the body */
  readonly version?: number | undefined;
}

export interface PageOptions extends RepresentOptions {
  /** The pages of the app around this one. @default the page is no part of an app */
  readonly page?: PageRoute | undefined;
}

/** Responds with the value, like `sendTagged`. `formatter` is the result of content negotiation. */
export function represent(ctx: Context, formatter: Formatter, value: unknown, options: PageOptions): void {
  const { contentType, headers } = formatter;
  const place = isPage(formatter) ? placeOf(ctx, options.page) : undefined;
  const body = formatter.format(value, options.title, undefined, place);
  sendTagged(ctx, { contentType, headers, body, tag: digestTag(body, options.version) });
}

/**
 * Responds with 200 or 304, an entity tag, `Vary` and the body. Throws `precondition-failed` for a GET whose `If-Match`
 * does not contain the tag.
 */
function sendTagged(ctx: Context, { contentType, headers, body, tag }: TaggedBody): void {
  const { res } = ctx;
  if (res.hasHeader('Vary')) ctx.vary('Accept');
  else res.setHeader('Vary', 'Accept');
  if (!res.hasHeader('Cache-Control')) res.setHeader('Cache-Control', 'private, no-cache');
  if (sendNotModified(ctx, tag)) return;
  res.setHeader('Content-Type', contentType);
  if (headers !== undefined) ctx.set({ ...headers });
  ctx.body = body;
}

/** Like `sendTagged`, for a file that is kept: it is compressed only once. */
export function sendStoredFile(ctx: Context, file: TaggedBody): void {
  markStored(ctx, file);
  sendTagged(ctx, file);
}

/**
 * Sets the tag, and checks the preconditions in the order of RFC 9110 section 13.2.2. Responds with 304 and returns true
 * if the client already has that representation.
 */
function sendNotModified(ctx: Context, tag: string): boolean {
  ctx.res.setHeader('ETag', tag);
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = ctx.req.headers;
  if (ifMatch === undefined && ifNoneMatch === undefined) return false;
  // For other methods, a failed precondition would have to be found before the change is made (sections 13.1.1, 13.1.2).
  if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return false;
  if (ifMatch !== undefined && matchFails(ifMatch, tag)) throw preconditionFailed(ctx);
  if (ifNoneMatch === undefined || !noneMatchFails(ifNoneMatch, tag)) return false;
  ctx.status = 304;
  ctx.body = null;
  return true;
}

/** A complete response as plain data that can be stored as JSON and sent again. */
export interface StoredResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface ResponseOptions extends RepresentOptions {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** Renders `value` as a response with an entity tag. */
export function renderResponse(formatter: Formatter, value: unknown, options: ResponseOptions): StoredResponse {
  const { title, version, status, headers } = options;
  const body = formatter.format(value, title);
  const bodyHeaders = { ETag: digestTag(body, version), 'Content-Type': formatter.contentType, ...formatter.headers };
  return { status, headers: { ...headers, ...bodyHeaders }, body };
}

/** `isReplayed` means that an earlier request did the work and got the same response. */
export function sendStoredResponse(ctx: Context, { status, headers, body }: StoredResponse, isReplayed: boolean): void {
  ctx.status = status;
  ctx.vary('Accept');
  ctx.set({ 'Cache-Control': 'private, no-cache', ...headers });
  if (isReplayed) ctx.set('Idempotent-Replayed', 'true');
  ctx.body = body;
}

/**
 * Redirects permanently and preserves the method (RFC 9110 section 15.4.9). `location` is an absolute path, including
 * the mount path and the query. It cannot point to another host.
 */
export function redirectTo(ctx: Context, location: string): void {
  ctx.set('Location', location.replace(/^\/[/\\]+/, '/'));
  ctx.body = null;
  ctx.status = 308;
}

/**
 * Handles the methods that the resource does not handle itself. Responds to OPTIONS with 204 and `Allow`, and throws
 * `method-not-allowed` for all others (RFC 9110 section 15.5.6). `allowed` includes OPTIONS.
 */
export function handleOtherMethod(ctx: Context, allowed: readonly string[]): void {
  const allow = allowed.join(', ');
  if (ctx.method !== 'OPTIONS') {
    throw problem('method-not-allowed', { detail: `This resource supports ${allow}.`, headers: { Allow: allow } });
  }
  ctx.set('Allow', allow);
  if (allowed.includes('PATCH')) ctx.set('Accept-Patch', patchTypes.join(', '));
  ctx.status = 204;
}

export const readMethods: readonly string[] = Object.freeze(['GET', 'HEAD', 'OPTIONS']);

/**
 * Checks a request for a read-only resource at exactly one path. Returns true for GET and HEAD, which the caller
 * responds to. Returns false for OPTIONS, which has been responded to here. Throws `not-found` for another path and
 * `method-not-allowed` for another method.
 */
export function acceptRead(ctx: Context, path: string): boolean {
  if (ctx.path !== path) throw problem('not-found');
  if (ctx.method === 'GET' || ctx.method === 'HEAD') return true;
  handleOtherMethod(ctx, readMethods);
  return false;
}
