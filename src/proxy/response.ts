/** Puts an upstream's response on Koa's context, so that outer middleware can still change it. */
import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { Context } from 'koa';
import {
  beforeHead,
  expectTrailers,
  giveUpClient,
  isDigest,
  nodeHttp,
  nominatedBy,
  type Problem,
  removeOwnNosniff,
  uncompressed,
} from '#http';
import { type PathRestoration, restoreCookie, restoreHeader } from '#routing';
import type { ResponseHead } from './attempt.ts';
import type { UpstreamResponse } from './call.ts';
import { CallAborted, clientPaused, clientSlow, timedOut } from './failures.ts';
import { firstValue, isEndToEnd, type RawText, textOf } from './headers.ts';
import { responseVia } from './request-headers.ts';
import { createIdleTimer, createPaceCheck } from './time-limits.ts';

export interface ResponseOptions {
  readonly restoration: PathRestoration;
  /** How long a body may pause, in milliseconds. 0 means no limit. */
  readonly idleTimeoutMs: number;
  /** The same limit for a server-sent event stream, which may pause for hours. */
  readonly eventsIdleTimeoutMs: number;
  /** Returns the bytes per second that the client must read while the service waits for it. */
  readonly paceMin: () => number;
  /** Returns the problem for a response that cannot be sent. */
  readonly toProblem: (cause: unknown) => Problem;
  /** Called when the service breaks off the body, or pauses for too long, while the client waits for the rest. */
  readonly onBreak: (ctx: Context, cause: unknown) => void;
}

/**
 * Koa sends a complete body in one write and any other as a stream. If the stream is cut off, Koa closes the client's
 * connection. Throws a Problem if the response cannot be sent.
 */
export function sendResponse(ctx: Context, response: UpstreamResponse, options: ResponseOptions): void {
  const { head, body } = response;
  const failure = body.failure();
  if (failure !== undefined) throw options.toProblem(failure);
  try {
    writeHead(ctx, head, options.restoration);
  } catch (cause) {
    body.discard();
    throw options.toProblem(cause);
  }
  if (ctx.req.method === 'HEAD' || isBodiless(head.status)) body.discard();
  else writeBody(ctx, response, options);
}

/** Koa sends these statuses without a body. */
function isBodiless(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}

/** Throws if a header cannot be sent. */
export function writeHead(
  ctx: Context,
  { status, message, rawHeaders }: ResponseHead,
  restoration: PathRestoration,
): void {
  copyResponseHeaders(ctx.res, rawHeaders, restoration);
  if (status === 426) requireUpgrade(ctx.res, firstValue(rawHeaders, 'upgrade'));
  if (status === 205) beforeHead(ctx.res, setEmptyLength);
  ctx.status = status;
  // undici decodes the reason phrase as UTF-8, but Node encodes it as Latin-1, so only ASCII is safe.
  if (message !== nodeHttp.STATUS_CODES[status] && visible.test(message)) ctx.res.statusMessage = message;
}

const visible = /^[\t\x20-\x7e]+$/;

/** A 426 lists the protocols that the service requires (RFC 9110 section 15.5.22). The connection closes after it. */
function requireUpgrade(res: ServerResponse, protocols = ''): void {
  if (!visible.test(protocols)) return;
  res.setHeader('Upgrade', protocols);
  res.setHeader('Connection', 'upgrade, close');
}

/**
 * Koa removes the length of a 205. Without it, Node ends the connection after the response, and so loses the responses
 * to the requests that the client has already sent (RFC 9112 section 6.3).
 */
function setEmptyLength(res: ServerResponse): void {
  if (res.statusCode === 205) res.setHeader('Content-Length', '0');
}

function writeBody(ctx: Context, response: UpstreamResponse, options: ResponseOptions): void {
  const { res } = ctx;
  const isTyped = res.hasHeader('content-type');
  ctx.body = response.body.whole() ?? streamFor(ctx, response, options);
  if (!isTyped) res.removeHeader('content-type');
}

function streamFor(ctx: Context, { head, body }: UpstreamResponse, options: ResponseOptions): Readable {
  const { req, res } = ctx;
  const isEvents = /^text\/event-stream\b/i.test(String(res.getHeader('content-type')));
  const idleTimeoutMs = isEvents ? options.eventsIdleTimeoutMs : options.idleTimeoutMs;
  let pause: Error | undefined;
  const onSlow = () => stopFor(clientSlow());
  const pace = createPaceCheck({ paceMin: options.paceMin, onSlow });
  const stream = body.stream(createIdleTimer(idleTimeoutMs, onIdle), pace);

  function onIdle(): void {
    if (!body.awaitsUpstream()) stopFor(clientPaused(idleTimeoutMs));
    else {
      pause = timedOut(`the response body paused for ${idleTimeoutMs} ms`);
      stream.destroy(pause);
    }
  }

  function stopFor(fault: CallAborted): void {
    giveUpClient(res);
    stream.destroy(fault);
  }

  // Koa destroys the stream if it cannot send it, and the call is aborted when the client disconnects. Neither is the
  // fault of the service.
  stream.on('error', (cause) => {
    const isBroken = cause === body.failure() && !(cause instanceof CallAborted);
    if (isBroken || cause === pause) options.onBreak(ctx, cause);
  });
  res.once('pipe', (source) => {
    // The host application may have wrapped the stream. Trailers and flushing are then its responsibility.
    if (uncompressed(source) !== stream || res.headersSent) return;
    if (!res.hasHeader('content-length') && req.httpVersion !== '1.0') {
      const isTrue = source === stream ? () => true : (name: string) => !isDigest(name);
      expectTrailers(res);
      announceTrailers(res, head, isTrue);
      stream.once('end', () => res.addTrailers(trailersFrom(body.trailers(), isTrue)));
    }
    // Sends the headers immediately if the body is slow to start.
    if (body.isWaiting()) res.flushHeaders();
  });
  return stream;
}

/** Whether a trailer with this name in lower case holds for the body as it is sent. */
type IsTrue = (lowerName: string) => boolean;

function announceTrailers(res: ServerResponse, { rawHeaders }: ResponseHead, isTrue: IsTrue): void {
  const announced = fieldsOf(firstValue(rawHeaders, 'trailer') ?? '').filter((name) => isTrue(name.toLowerCase()));
  if (announced.join('') !== '') res.setHeader('Trailer', announced.join(', '));
}

/**
 * Copies all headers except hop-by-hop ones and those that the gateway or its host application has already set. `Vary`,
 * `Via` and `Set-Cookie` are merged. The service's `X-Request-Id` replaces ours, and only the service decides about
 * `Content-Type` and `X-Content-Type-Options`. Throws if the response has a transfer coding other than `chunked`, or a
 * header with invalid bytes.
 */
export function copyResponseHeaders(
  res: ServerResponse,
  rawHeaders: readonly RawText[],
  restoration: PathRestoration,
): void {
  res.removeHeader('Content-Type');
  const ours = res.getHeaderNames();
  try {
    copyAll(res, ours, rawHeaders, restoration);
    const requestId = firstValue(rawHeaders, 'x-request-id');
    if (requestId !== undefined) res.setHeader('X-Request-Id', requestId);
    const typeOptions = firstValue(rawHeaders, 'x-content-type-options');
    if (removeOwnNosniff(res) && typeOptions !== undefined) res.setHeader('X-Content-Type-Options', typeOptions);
  } catch (cause) {
    // The copied headers do not belong to the error response that is sent instead.
    for (const name of res.getHeaderNames()) if (!ours.includes(name)) res.removeHeader(name);
    throw cause;
  }
  res.appendHeader('Via', responseVia);
}

function copyAll(
  res: ServerResponse,
  ours: readonly string[],
  rawHeaders: readonly RawText[],
  restoration: PathRestoration,
): void {
  const nominated = nominatedIn(rawHeaders);
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const rawName = textOf(rawHeaders[index]);
    const name = rawName.toLowerCase();
    if (isEndToEnd(name, nominated)) copy(res, ours, rawName, name, textOf(rawHeaders[index + 1]), restoration);
    else if (name === 'transfer-encoding') requireChunked(textOf(rawHeaders[index + 1]));
  }
}

function copy(
  res: ServerResponse,
  ours: readonly string[],
  rawName: string,
  name: string,
  value: string,
  restoration: PathRestoration,
): void {
  if (name === 'set-cookie') res.appendHeader(rawName, restoreCookie(value, restoration));
  else if (name === 'vary') appendVary(res, rawName, value);
  else if (name === 'via') res.appendHeader(rawName, value);
  else if (ours.includes(name)) return;
  else if (res.hasHeader(name)) res.appendHeader(rawName, restoreHeader(name, value, restoration));
  else res.setHeader(rawName, restoreHeader(name, value, restoration));
}

/** Leaves out what `Vary` lists already, such as the `Origin` of a CORS rule. */
function appendVary(res: ServerResponse, rawName: string, value: string): void {
  const present = fieldsOf(String(res.getHeader('vary') ?? '')).map((field) => field.toLowerCase());
  const given = fieldsOf(value);
  const added = given.filter((field) => !present.includes(field.toLowerCase()));
  if (added.length === given.length) res.appendHeader(rawName, value);
  else if (added.length > 0) res.appendHeader(rawName, added.join(', '));
}

function fieldsOf(list: string): readonly string[] {
  return list.split(',').map((field) => field.trim());
}

/** Compares lengths first, because this runs for every header of every response. */
function nominatedIn(rawHeaders: readonly RawText[]): ReadonlySet<string> {
  let nominating: string | undefined;
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length !== 'connection'.length || textOf(name).toLowerCase() !== 'connection') continue;
    const value = textOf(rawHeaders[index + 1]);
    nominating = nominating === undefined ? value : `${nominating},${value}`;
  }
  return nominatedBy(nominating);
}

/** undici decodes only `chunked`. The client could not decode another coding, because its header is not forwarded. */
function requireChunked(coding: string): void {
  if (coding.trim().toLowerCase() === 'chunked') return;
  throw Object.assign(new Error(`the response has the unsupported transfer coding ${coding}`), {
    code: 'HPE_TRANSFER_CODING',
  });
}

/** Fields that are not allowed in trailers: framing, routing and authentication (RFC 9110 section 6.5.1). */
const blockedTrailers = new Set([
  'authorization',
  'content-length',
  'content-type',
  'content-encoding',
  'host',
  'set-cookie',
]);

/** Returns the allowed trailers as pairs of name and value. */
export function trailersFrom(rawTrailers: readonly RawText[], isTrue: IsTrue): [string, string][] {
  const pairs: [string, string][] = [];
  for (let index = 0; index + 1 < rawTrailers.length; index += 2) {
    const name = textOf(rawTrailers[index]);
    const lowerName = name.toLowerCase();
    if (isEndToEnd(lowerName) && !blockedTrailers.has(lowerName) && isTrue(lowerName))
      pairs.push([name, textOf(rawTrailers[index + 1])]);
  }
  return pairs;
}

const earlyHints = 103;

/**
 * Forwards the links of Early Hints (RFC 8297). Other interim responses are dropped: they concern the connection or
 * have no content. An HTTP/1.0 client would mistake an interim response for the final one.
 */
export function forwardEarlyHints(
  { req, res }: Context,
  status: number,
  rawHeaders: readonly RawText[],
  restoration: PathRestoration,
): void {
  if (status !== earlyHints || req.httpVersion === '1.0' || res.headersSent || res.destroyed) return;
  // A pipelined response that waits for its turn has no socket. Node would send its hints after its head.
  if (res.socket === null) return;
  // Drops hints while the client is slow: interim responses have no backpressure, and a service could send any number.
  if (res.writableLength >= res.writableHighWaterMark) return;
  const given = rawHeaders.flatMap((name, index) => (isLink(name, index) ? linksIn(rawHeaders[index + 1]) : []));
  const links = given.map((link) => restoreHeader('link', link, restoration));
  // Drops hints in any other form. The response repeats them anyway.
  if (links.length > 0 && links.every((link) => sendableLink.test(link))) res.writeEarlyHints({ link: links });
}

/**
 * The only form of link that Node accepts. It is checked here because Node's own regular expression takes exponential
 * time on the parameters of other links.
 */
const sendableLink = /^<[^>]*>(?:\s*;\s*[^;"\s]+(?:(?<=[^;"\s]=)"[^;"\s]*")?)*$/;

function isLink(name: RawText, index: number): boolean {
  return index % 2 === 0 && textOf(name).toLowerCase() === 'link';
}

function linksIn(value: RawText | undefined): string[] {
  return textOf(value).split(/,\s*(?=<)/);
}
