/** Puts the response of a gRPC call on Koa's context: each message as it comes, and a status at the end in any case. */
import type { Readable } from 'node:stream';
import type { Context } from 'koa';
import {
  countAs,
  expectTrailers,
  type GrpcWebCall,
  giveUpClient,
  grpcWebCallOf,
  httpStatusOfGrpc,
  isGrpcType,
  requestContext,
  webTypeFromGrpc,
} from '#http';
import type { UpstreamResponse } from '../call.ts';
import { type CallAborted, clientPaused, clientSlow, timedOut } from '../failures.ts';
import { firstValue } from '../headers.ts';
import { type ResponseOptions, sendResponse, trailersFrom, writeHead } from '../response.ts';
import { createIdleTimer, createPaceCheck } from '../time-limits.ts';
import { statusInHead, statusInTrailers } from './status.ts';
import { encodeForWeb, streamForWeb, type Trailers } from './web.ts';

/**
 * Koa sends a complete response in one write and any other as a stream. If the service breaks it off, its body ends with
 * trailers all the same, because gRPC clients read nothing else. Throws a Problem if the response cannot be sent.
 */
export function sendCallResponse(ctx: Context, response: UpstreamResponse, options: ResponseOptions): void {
  const { head, body } = response;
  const found = statusInHead(head.status, head.headers);
  if (found !== 'in-trailers') setStatus(ctx, found);
  if (!isGrpcType(head.headers['content-type'])) {
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
  const web = grpcWebCallOf(ctx.req);
  if (web !== undefined) sendToWeb(ctx, response, web, hasTrailers, options);
  else if (!body.hasArrived()) ctx.body = streamOf(ctx, response, hasTrailers, options);
  else {
    ctx.body = body.takeWhole();
    // Without a length, a response of headers alone is a single frame.
    ctx.res.removeHeader('content-length');
    if (hasTrailers) ctx.res.addTrailers(readTrailers(ctx, response, options));
  }
}

/** A browser sees no trailers, so they are the end of the body. */
function sendToWeb(
  ctx: Context,
  response: UpstreamResponse,
  web: GrpcWebCall,
  hasTrailers: boolean,
  options: ResponseOptions,
): void {
  const { head, body } = response;
  const trailersAtEnd = () => (hasTrailers ? readTrailers(ctx, response, options) : undefined);
  ctx.set('Content-Type', webTypeFromGrpc(String(head.headers['content-type']), web));
  if (body.hasArrived()) {
    ctx.body = encodeForWeb(web, body.takeWhole(), trailersAtEnd());
    return;
  }
  ctx.res.removeHeader('content-length');
  ctx.body = streamForWeb(web, readerOf(ctx, response, options), trailersAtEnd);
  if (hasTrailers) flushWhenPiped(ctx, response);
}

function streamOf(ctx: Context, response: UpstreamResponse, hasTrailers: boolean, options: ResponseOptions): Readable {
  const { res } = ctx;
  const stream = readerOf(ctx, response, options);
  // A response of headers alone ends with them.
  if (!hasTrailers) return stream;
  res.once('pipe', () => {
    stream.once('end', () => res.addTrailers(readTrailers(ctx, response, options)));
    expectTrailers(res);
  });
  flushWhenPiped(ctx, response);
  return stream;
}

/** Sends the headers at once if the first message is slow to come. */
function flushWhenPiped({ res }: Context, { body }: UpstreamResponse): void {
  res.once('pipe', () => {
    if (!body.hasArrived()) res.flushHeaders();
  });
}

function readerOf(ctx: Context, response: UpstreamResponse, options: ResponseOptions): Readable {
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

  return stream;
}

/** Reads the status, and adds one if the service has sent none. */
function readTrailers(ctx: Context, { body }: UpstreamResponse, { onBreak }: ResponseOptions): Trailers {
  const failure = body.failure();
  if (failure !== undefined) onBreak(ctx, failure);
  const code = statusInTrailers(body.trailers());
  setStatus(ctx, code);
  const trailers = trailersFrom(body.trailers(), () => true);
  if (firstValue(body.trailers(), 'grpc-status') === undefined) trailers.push(['grpc-status', String(code)]);
  return trailers;
}

function setStatus(ctx: Context, code: number): void {
  requestContext(ctx).grpcStatus = code;
  countAs(ctx.res, httpStatusOfGrpc(code));
}
