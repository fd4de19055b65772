/** Puts the response of a gRPC call on Koa's context: each message as it comes, and a status at the end in any case. */
import type { Readable } from 'node:stream';
import type { Context } from 'koa';
import { countAs, expectTrailers, giveUpClient, httpStatusOfGrpc, requestContext } from '#http';
import type { UpstreamResponse } from '../call.ts';
import { type CallAborted, clientPaused, clientSlow, timedOut } from '../failures.ts';
import { type ResponseOptions, sendResponse, trailersFrom, writeHead } from '../response.ts';
import { createIdleTimer, createPaceCheck } from '../time-limits.ts';
import { isGrpcResponse, statusInHead, statusInTrailers } from './status.ts';

/**
 * Koa sends a complete response in one write and any other as a stream. If the service breaks it off, its body ends with
 * trailers all the same, because gRPC clients read nothing else. Throws a Problem if the response cannot be sent.
 */
export function sendCallResponse(ctx: Context, response: UpstreamResponse, options: ResponseOptions): void {
  const { head, body } = response;
  const found = statusInHead(head.status, head.headers);
  if (found !== 'in-trailers') setStatus(ctx, found);
  if (!isGrpcResponse(head.headers)) {
    sendResponse(ctx, response, options);
    return;
  }
  try {
    writeHead(ctx, head, options.restoration);
  } catch (cause) {
    body.discard();
    throw options.toProblem(cause);
  }
  const hasTrailers = found === 'in-trailers';
  if (!body.hasArrived()) ctx.body = streamOf(ctx, response, hasTrailers, options);
  else {
    ctx.body = body.takeWhole();
    // Without a length, a response of headers alone is a single frame.
    ctx.res.removeHeader('content-length');
    if (hasTrailers) addTrailers(ctx, response, options);
  }
}

function streamOf(ctx: Context, response: UpstreamResponse, hasTrailers: boolean, options: ResponseOptions): Readable {
  const { res } = ctx;
  const { body } = response;
  const { eventsIdleTimeoutMs: idleTimeoutMs, paceMin } = options;
  const pace = createPaceCheck({ paceMin, onSlow: () => stopFor(clientSlow()) });
  const stream = body.stream(createIdleTimer(idleTimeoutMs, onIdle), pace);

  function onIdle(): void {
    if (body.awaitsUpstream()) body.giveUp(timedOut(`the call paused for ${idleTimeoutMs} ms`));
    else stopFor(clientPaused(idleTimeoutMs));
  }

  function stopFor(fault: CallAborted): void {
    giveUpClient(res);
    stream.destroy(fault);
  }

  if (hasTrailers)
    res.once('pipe', () => {
      stream.once('end', () => addTrailers(ctx, response, options));
      expectTrailers(res);
      if (!body.hasArrived()) res.flushHeaders();
    });
  return stream;
}

function addTrailers(ctx: Context, { body }: UpstreamResponse, { onBreak }: ResponseOptions): void {
  const failure = body.failure();
  if (failure !== undefined) onBreak(ctx, failure);
  setStatus(ctx, statusInTrailers(body.trailers()));
  ctx.res.addTrailers(trailersFrom(body.trailers(), () => true));
}

function setStatus(ctx: Context, code: number): void {
  requestContext(ctx).grpcStatus = code;
  countAs(ctx.res, httpStatusOfGrpc(code));
}
