/** An upstream's answer put into Koa's hands, so that whoever stands around us may still have his say. */
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Readable } from 'node:stream';
import type { Context } from 'koa';
import type { PathRestoration } from '#routing';
import { copyAnswerHeaders, trailersFrom } from './answer-headers.ts';
import type { ResponseHead } from './attempt.ts';
import type { UpstreamResponse } from './call.ts';
import { timedOut, upstreamProblem } from './failures.ts';
import { createIdleTimer } from './idle-timer.ts';
import { firstValue } from './raw-headers.ts';

export interface AnswerOptions {
  readonly restoration: PathRestoration;
  /** How long a body may rest, in milliseconds; 0: without end. */
  readonly idleTimeoutMs: number;
  /** The same for a stream of events, which may be silent for hours and be well. */
  readonly eventsIdleTimeoutMs: number;
}

/**
 * Koa sends what it is given: a whole body in one write, everything else as a stream that breaks the client's connection
 * when the upstream breaks off. Throws the Problem of an answer that cannot be passed on.
 */
export function answerWith(ctx: Context, answer: UpstreamResponse, options: AnswerOptions): void {
  const { head, body } = answer;
  const failure = body.failure();
  if (failure !== undefined) throw upstreamProblem(failure);
  try {
    writeHead(ctx, head, options.restoration);
  } catch (cause) {
    body.discard();
    throw upstreamProblem(cause);
  }
  if (ctx.req.method === 'HEAD' || isBodiless(head.status)) body.discard();
  else writeBody(ctx, answer, options);
}

/** Koa ends these without a body. */
function isBodiless(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}

function writeHead(ctx: Context, { status, message, rawHeaders }: ResponseHead, restoration: PathRestoration): void {
  copyAnswerHeaders(ctx.res, rawHeaders, restoration);
  ctx.status = status;
  // undici reads it as UTF-8, and Node writes Latin-1.
  if (message !== STATUS_CODES[status] && /^[\t\x20-\x7e]+$/.test(message)) ctx.res.statusMessage = message;
}

function writeBody(ctx: Context, answer: UpstreamResponse, options: AnswerOptions): void {
  const { res } = ctx;
  const isTyped = res.hasHeader('content-type');
  ctx.body = answer.body.whole() ?? streamFor(ctx, answer, options);
  if (!isTyped) res.removeHeader('content-type');
}

function streamFor({ req, res }: Context, answer: UpstreamResponse, options: AnswerOptions): Readable {
  const { head, body } = answer;
  const isEvents = /^text\/event-stream\b/i.test(String(res.getHeader('content-type')));
  const idleTimeoutMs = isEvents ? options.eventsIdleTimeoutMs : options.idleTimeoutMs;
  const onIdle = () => stream.destroy(timedOut(`the body rested for ${idleTimeoutMs} ms`));
  const stream = body.stream(createIdleTimer(idleTimeoutMs, onIdle));
  // Koa destroys what it cannot send, as when the client has left.
  stream.on('error', ignore);
  res.once('pipe', (source) => {
    // A host app may have put another stream between, and then the rest is its own affair.
    if (source !== stream || res.headersSent) return;
    if (!res.hasHeader('content-length') && req.httpVersionMinor > 0) {
      announceTrailers(res, head);
      stream.once('end', () => res.addTrailers(trailersFrom(body.trailers())));
    }
    // The client of a body that is slow to begin learns at once that there will be one.
    if (body.isAwaited()) res.flushHeaders();
  });
  return stream;
}

function announceTrailers(res: ServerResponse, { rawHeaders }: ResponseHead): void {
  const announced = firstValue(rawHeaders, 'trailer');
  if (announced !== undefined) res.setHeader('Trailer', announced);
}

function ignore(): void {}
