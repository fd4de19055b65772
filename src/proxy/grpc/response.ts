/** Puts the response of a gRPC call on Koa's context: each message as it comes, and a status at the end in any case. */
import type { Readable } from 'node:stream';
import type { Context } from 'koa';
import { countAs, expectTrailers, giveUpClient, httpStatusOfGrpc, requestContext } from '#http';
import type { UpstreamResponse } from '../call.ts';
import { CallAborted, clientPaused, clientSlow, timedOut } from '../failures.ts';
import type { RawText } from '../headers.ts';
import { type ResponseOptions, trailersFrom, writeHead } from '../response.ts';
import { createIdleTimer, createPaceCheck } from '../time-limits.ts';
import { callProblem, statusInHead, statusInTrailers, trailersOf } from './status.ts';

/**
 * Koa sends a complete response in one write and any other as a stream. If the service breaks it off, it ends with the
 * status that stands for that, because gRPC clients read nothing else. Throws a Problem if the response cannot be sent.
 */
export function sendCallResponse(ctx: Context, response: UpstreamResponse, options: ResponseOptions): void {
  const { head, body } = response;
  const failure = body.failure();
  if (failure !== undefined) throw options.toProblem(failure);
  try {
    writeHead(ctx, head, options.restoration);
  } catch (cause) {
    body.discard();
    throw options.toProblem(cause);
  }
  const inHead = statusInHead(head.status, head.headers);
  if (inHead !== 'in-trailers') setStatus(ctx, inHead);
  const hasTrailers = inHead === 'in-trailers';
  if (body.hasArrived()) sendWhole(ctx, response, hasTrailers);
  else ctx.body = streamOf(ctx, response, hasTrailers, options);
}

/** Without a length, a response of headers alone is a single frame. */
function sendWhole(ctx: Context, { body }: UpstreamResponse, hasTrailers: boolean): void {
  ctx.body = body.takeWhole();
  ctx.res.removeHeader('content-length');
  if (hasTrailers) addTrailers(ctx, body.trailers());
}

function streamOf(
  ctx: Context,
  { body }: UpstreamResponse,
  hasTrailers: boolean,
  { eventsIdleTimeoutMs: idleTimeoutMs, paceMin, onBreak }: ResponseOptions,
): Readable {
  const { res } = ctx;
  const pace = createPaceCheck({ paceMin, onSlow: () => stopFor(clientSlow()) });
  const stream = body.stream(createIdleTimer(idleTimeoutMs, onIdle), pace);
  body.endInsteadOfFailing(trailersAfter);

  function onIdle(): void {
    if (body.awaitsUpstream()) body.giveUp(timedOut(`the call paused for ${idleTimeoutMs} ms`));
    else stopFor(clientPaused(idleTimeoutMs));
  }

  function stopFor(fault: CallAborted): void {
    giveUpClient(res);
    stream.destroy(fault);
  }

  /** A client that has left reads no trailers. */
  function trailersAfter(cause: Error): readonly RawText[] {
    if (cause instanceof CallAborted && cause.code === 'ECONNRESET') return [];
    onBreak(ctx, cause);
    return trailersOf(callProblem(cause));
  }

  res.once('pipe', () => {
    stream.once('end', () => {
      if (hasTrailers || body.failure() !== undefined) addTrailers(ctx, body.trailers());
    });
    // A response of headers alone ends with them.
    if (!hasTrailers) return;
    expectTrailers(res);
    if (!body.hasArrived()) res.flushHeaders();
  });
  return stream;
}

function addTrailers(ctx: Context, rawTrailers: readonly RawText[]): void {
  setStatus(ctx, statusInTrailers(rawTrailers));
  ctx.res.addTrailers(trailersFrom(rawTrailers, () => true));
}

function setStatus(ctx: Context, code: number): void {
  requestContext(ctx).grpcStatus = code;
  countAs(ctx.res, httpStatusOfGrpc(code));
}
