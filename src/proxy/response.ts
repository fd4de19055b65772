/** An upstream's response on Koa's context: status, headers, early hints, body and trailers, so that outer middleware can still change it. */
import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { Context } from 'koa';
import { nodeHttp, takeBackNosniff } from '#http';
import { type PathRestoration, restoreCookie, restoreLocation } from '#routing';
import type { ResponseHead } from './attempt.ts';
import type { UpstreamResponse } from './call.ts';
import { timedOut, upstreamProblem } from './failures.ts';
import { crossesHops, firstValue, nominatedBy, textOf } from './hop-by-hop.ts';
import { createIdleTimer } from './idle-timer.ts';
import { responseVia } from './request-headers.ts';

export interface ResponseOptions {
  readonly restoration: PathRestoration;
  /** How long a body may pause, in milliseconds; 0: no limit. */
  readonly idleTimeoutMs: number;
  /** The same for a stream of events, which may well be silent for hours. */
  readonly eventsIdleTimeoutMs: number;
}

/**
 * Koa sends a whole body in one write and everything else as a stream, which breaks the client's connection when the
 * upstream breaks off. Throws the Problem of a response that cannot be sent.
 */
export function sendResponse(ctx: Context, response: UpstreamResponse, options: ResponseOptions): void {
  const { head, body } = response;
  const failure = body.failure();
  if (failure !== undefined) throw upstreamProblem(failure);
  try {
    writeHead(ctx, head, options.restoration);
  } catch (cause) {
    body.discard();
    throw upstreamProblem(cause);
  }
  if (ctx.req.method === 'HEAD' || isBodiless(head.status)) body.discard();
  else writeBody(ctx, response, options);
}

/** Koa ends these without a body. */
function isBodiless(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}

function writeHead(ctx: Context, { status, message, rawHeaders }: ResponseHead, restoration: PathRestoration): void {
  copyResponseHeaders(ctx.res, rawHeaders, restoration);
  if (status === 426) requireUpgrade(ctx.res, firstValue(rawHeaders, 'upgrade'));
  ctx.status = status;
  // undici reads it as UTF-8, and Node writes Latin-1.
  if (message !== nodeHttp.STATUS_CODES[status] && visible.test(message)) ctx.res.statusMessage = message;
}

const visible = /^[\t\x20-\x7e]+$/;

/** A 426 names the protocols that the service wants (RFC 9110 section 15.5.22), and is the last answer of its connection. */
function requireUpgrade(res: ServerResponse, protocols = ''): void {
  if (!visible.test(protocols)) return;
  res.setHeader('Upgrade', protocols);
  res.setHeader('Connection', 'upgrade, close');
}

function writeBody(ctx: Context, response: UpstreamResponse, options: ResponseOptions): void {
  const { res } = ctx;
  const isTyped = res.hasHeader('content-type');
  ctx.body = response.body.whole() ?? streamFor(ctx, response, options);
  if (!isTyped) res.removeHeader('content-type');
}

function streamFor({ req, res }: Context, { head, body }: UpstreamResponse, options: ResponseOptions): Readable {
  const isEvents = /^text\/event-stream\b/i.test(String(res.getHeader('content-type')));
  const idleTimeoutMs = isEvents ? options.eventsIdleTimeoutMs : options.idleTimeoutMs;
  const onIdle = () => stream.destroy(timedOut(`the body paused for ${idleTimeoutMs} ms`));
  const stream = body.stream(createIdleTimer(idleTimeoutMs, onIdle));
  // Koa destroys what it cannot send, for example when the client has gone.
  stream.on('error', ignore);
  res.once('pipe', (source) => {
    // A host app may have put another stream between, and then has to care for the rest.
    if (source !== stream || res.headersSent) return;
    if (!res.hasHeader('content-length') && req.httpVersionMinor > 0) {
      announceTrailers(res, head);
      stream.once('end', () => res.addTrailers(trailersFrom(body.trailers())));
    }
    // With a body that is slow to begin, the client gets the headers at once.
    if (body.isAwaited()) res.flushHeaders();
  });
  return stream;
}

function announceTrailers(res: ServerResponse, { rawHeaders }: ResponseHead): void {
  const announced = firstValue(rawHeaders, 'trailer');
  if (announced !== undefined) res.setHeader('Trailer', announced);
}

function ignore(): void {}

/**
 * All headers but those of the connection and those that the gateway or its host has set already. `Vary`, `Via` and
 * `Set-Cookie` are lists and get the values of both; the service's `X-Request-Id` wins over ours, and `nosniff` is for it
 * to say. Throws for a transfer coding that is not undone here, and for bytes
 * that no header may have.
 */
export function copyResponseHeaders(
  res: ServerResponse,
  rawHeaders: readonly Buffer[],
  restoration: PathRestoration,
): void {
  const ours = res.getHeaderNames();
  try {
    copyAll(res, ours, rawHeaders, restoration);
    const requestId = firstValue(rawHeaders, 'x-request-id');
    if (requestId !== undefined) res.setHeader('X-Request-Id', requestId);
    const types = firstValue(rawHeaders, 'x-content-type-options');
    if (takeBackNosniff(res) && types !== undefined) res.setHeader('X-Content-Type-Options', types);
  } catch (cause) {
    // They do not belong to the error that is sent instead.
    for (const name of res.getHeaderNames()) if (!ours.includes(name)) res.removeHeader(name);
    throw cause;
  }
  res.appendHeader('Via', responseVia);
}

function copyAll(
  res: ServerResponse,
  ours: readonly string[],
  rawHeaders: readonly Buffer[],
  restoration: PathRestoration,
): void {
  const nominated = nominatedIn(rawHeaders);
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const spelt = textOf(rawHeaders[index]);
    const name = spelt.toLowerCase();
    if (crossesHops(name, nominated)) copy(res, ours, spelt, name, textOf(rawHeaders[index + 1]), restoration);
    else if (name === 'transfer-encoding') requireChunked(textOf(rawHeaders[index + 1]));
  }
}

function copy(
  res: ServerResponse,
  ours: readonly string[],
  spelt: string,
  name: string,
  value: string,
  restoration: PathRestoration,
): void {
  if (name === 'set-cookie') res.appendHeader(spelt, restoreCookie(value, restoration));
  else if (name === 'vary') res.appendHeader(spelt, value);
  else if (ours.includes(name)) return;
  else if (res.hasHeader(name)) res.appendHeader(spelt, value);
  else res.setHeader(spelt, name === 'location' ? restoreLocation(value, restoration) : value);
}

/** Compares only names of the right length, since every header of every response comes through here. */
function nominatedIn(rawHeaders: readonly Buffer[]): ReadonlySet<string> {
  let nominating: string | undefined;
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length !== 'connection'.length || textOf(name).toLowerCase() !== 'connection') continue;
    const value = textOf(rawHeaders[index + 1]);
    nominating = nominating === undefined ? value : `${nominating},${value}`;
  }
  return nominatedBy(nominating);
}

/** undici undoes only `chunked`; the client could not undo another coding, of which it has no header. */
function requireChunked(coding: string): void {
  if (coding.trim().toLowerCase() === 'chunked') return;
  throw Object.assign(new Error(`the response has the transfer coding ${coding}`), { code: 'HPE_TRANSFER_CODING' });
}

/** Not in trailers: framing, routing and authentication (RFC 9110 section 6.5.1). */
const blockedTrailers = new Set([
  'authorization',
  'content-length',
  'content-type',
  'content-encoding',
  'host',
  'set-cookie',
]);

/** The trailers that may follow the body, as names and values in pairs. */
function trailersFrom(rawTrailers: readonly Buffer[]): [string, string][] {
  const pairs: [string, string][] = [];
  for (let index = 0; index + 1 < rawTrailers.length; index += 2) {
    const name = textOf(rawTrailers[index]);
    const known = name.toLowerCase();
    if (crossesHops(known) && !blockedTrailers.has(known)) pairs.push([name, textOf(rawTrailers[index + 1])]);
  }
  return pairs;
}

const earlyHints = 103;

/**
 * Of the interim responses only the links of Early Hints (RFC 8297) are forwarded: the others concern the connection or
 * have no content. A client of HTTP/1.0 would take them for the response.
 */
export function forwardEarlyHints({ req, res }: Context, status: number, rawHeaders: readonly Buffer[]): void {
  if (status !== earlyHints || req.httpVersionMinor === 0 || res.headersSent || res.destroyed) return;
  // A service may send hints without end, and nothing holds it back for a client that does not take them.
  if (res.writableLength >= res.writableHighWaterMark) return;
  const links = rawHeaders.flatMap((name, index) => (isLink(name, index) ? linksIn(rawHeaders[index + 1]) : []));
  // Hints in another form are dropped; the response repeats them anyway.
  if (links.length > 0 && links.every((link) => sendableLink.test(link))) res.writeEarlyHints({ link: links });
}

/**
 * The only form of link that Node sends. Checked here, because Node's own check takes exponential time for the parameters
 * of a link in another form.
 */
const sendableLink = /^<[^>]*>(?:\s*;\s*[^;"\s]+(?:(?<=[^;"\s]=)"[^;"\s]*")?)*$/;

function isLink(name: Buffer, index: number): boolean {
  return index % 2 === 0 && textOf(name).toLowerCase() === 'link';
}

function linksIn(value: Buffer | undefined): string[] {
  return textOf(value).split(/,\s*(?=<)/);
}
