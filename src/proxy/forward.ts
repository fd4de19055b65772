/** Forwards a request to a service over HTTP: prepares the request, calls the service and sends its response. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Context } from 'koa';
import type { Mapping } from '#config';
import type { Logger } from '#foundation';
import {
  createWebTextReader,
  disableBodyTimeout,
  grpcWebCallOf,
  isBodyUnread,
  Problem,
  problem,
  requestContext,
  type TracedCall,
  traceOf,
} from '#http';
import { type PathRestoration, rewritePrefixes } from '#routing';
import { createRetryRules } from './attempt-rules.ts';
import { type CallOptions, callUpstream, clientIsGone, type UpstreamRequest, type UpstreamResponse } from './call.ts';
import type { Cluster } from './cluster/cluster.ts';
import { countFailure, createUpstreamCounts, type UpstreamCounts, upstreamProblem } from './failures.ts';
import { callHeaders, grpcCallOf, isGrpcCall } from './grpc/call.ts';
import { createCallBody } from './grpc/call-body.ts';
import { sendCallResponse } from './grpc/response.ts';
import { callProblem } from './grpc/status.ts';
import type { HeaderEdits } from './headers.ts';
import { createMappingHints } from './mapping-hints.ts';
import { createRequestBody } from './request-body.ts';
import type { HeadOfRequest, RequestHead } from './request-headers.ts';
import { forwardEarlyHints, sendResponse } from './response.ts';
import { bufferedBytesMax } from './response-body.ts';
import { type Handshake, handshakeOf, rejectRequiredUpgrade, switchProtocols } from './upgrade.ts';

export interface ForwardOptions {
  readonly mapping: Mapping;
  readonly cluster: Cluster;
  /** Prepended to every path: `''` or, for example, `/base`. */
  readonly path: string;
  /** Builds the path and the headers of the request to the service. */
  readonly headOf: HeadOfRequest;
  /** Applies the mapping's rules to the headers of a 101, which the gateway cannot edit afterwards. */
  readonly editResponse: HeaderEdits['editResponse'] | undefined;
  /** Milliseconds from the end of the request to the response headers, including all attempts. 0 means no limit. */
  readonly timeoutMs: number;
  /**
   * How long a body may pause in either direction, in milliseconds. 0 means no limit. A server-sent event stream is
   * limited only by the mapping's own `idle_timeout_ms`.
   */
  readonly idleTimeoutMs: number;
  /** Undefined if there is no limit. */
  readonly bodyBytesMax: number | undefined;
  readonly logger: Logger;
  /** Updated in place. @default not counted */
  readonly counts?: UpstreamCounts;
  /** Returns a number from 0 up to, but not including, 1. */
  readonly random?: () => number;
  /** Returns the time in milliseconds. */
  readonly clock?: () => number;
}

/** Longer than for bodies, because a WebSocket often has no traffic for minutes. */
const switchedIdleTimeoutMsDefault = 300_000;

/** Throws a Problem if the call fails before the response headers. A later failure closes the client's connection. */
export function createForward(options: ForwardOptions): (ctx: Context) => Promise<void> {
  const { mapping, cluster, headOf, editResponse, timeoutMs, idleTimeoutMs, bodyBytesMax, logger } = options;
  const { counts = createUpstreamCounts(), random = Math.random, clock = () => performance.now() } = options;
  function onRetry(pauseMs: number, because: unknown): void {
    counts.retries += 1;
    logger.debug?.({ mapping: mapping.name, pauseMs, because }, 'retrying a request');
  }
  const retries = { rules: createRetryRules(mapping.retryPolicy), random, clock, onRetry };
  const callOptions: CallOptions = { timeoutMs, repeat: 'idempotent', retries };
  // The time-out of a mapping is that of the whole call.
  const grpcOptions: CallOptions = {
    timeoutMs: mapping.timeoutMs === undefined ? timeoutMs : 0,
    repeat: 'grpc',
    retries,
  };
  const innerPrefix = options.path + rewritePrefixes(mapping).replacement;
  const hints = createMappingHints(mapping, logger);
  const problemOf = mapping.grpc ? callProblem : problemOfFailure;
  const bodyOptions = { bytesMax: bodyBytesMax, idleTimeoutMs };
  const eventsIdleTimeoutMs = mapping.idleTimeoutMs ?? 0;
  const callBodyOptions = { bytesMax: bodyBytesMax, idleTimeoutMs: eventsIdleTimeoutMs };
  const switchedIdleTimeoutMs = mapping.idleTimeoutMs ?? switchedIdleTimeoutMsDefault;

  return async function forward(ctx) {
    const span = traceOf(ctx).startCall?.(ctx.req.method ?? 'GET');
    const prepared = prepare(ctx, span);
    const startedAtMs = clock();
    let response: UpstreamResponse;
    try {
      const options = prepared.request.grpc === undefined ? callOptions : grpcOptions;
      response = await callUpstream(cluster, prepared.request, options);
    } catch (cause) {
      span?.failed(cause);
      // The client has disconnected, which is not the upstream's fault.
      if (clientIsGone(ctx)) return;
      throw countedFailure(cause);
    } finally {
      requestContext(ctx).upstreamMs = clock() - startedAtMs;
      closeUnlessComplete(ctx);
    }
    requestContext(ctx).isAnswered = true;
    span?.responded(response.head.status, response.origin);
    if (endsSoon(response, prepared)) await nextTurn();
    respond(ctx, response, prepared);
  };

  /** Ends the span if the request cannot be sent. */
  function prepare(ctx: Context, span: TracedCall | undefined): PreparedRequest {
    try {
      const head = headOf(ctx, span?.trace);
      if (head.host !== undefined) head.headers.push('host', head.host);
      const handshake = handshakeOf(ctx.req, mapping.allowUpgrade);
      const request: UpstreamRequest = {
        ...contentOf(ctx, head),
        method: ctx.req.method ?? 'GET',
        path: head.path,
        upgrade: handshake?.protocol,
        client: ctx.res,
        onAttempt(origin) {
          requestContext(ctx).upstream = origin;
        },
        onInterim: (status, rawHeaders) =>
          forwardEarlyHints(ctx, status, rawHeaders, restorationOf(head, requestContext(ctx).upstream ?? '')),
      };
      disableBodyTimeout(ctx.req);
      if (handshake === undefined) {
        hints.onPlainRequest(ctx);
        rejectRequiredUpgrade(ctx.req);
      }
      return { request, handshake, head };
    } catch (cause) {
      span?.failed(cause);
      throw cause;
    }
  }

  function contentOf(ctx: Context, { headers }: RequestHead): Pick<UpstreamRequest, 'headers' | 'body' | 'grpc'> {
    if (!isGrpcCall(mapping, ctx.req)) return { headers, body: createRequestBody(ctx, bodyOptions) };
    const elapsedMs = performance.now() - requestContext(ctx).arrivedAtMs;
    const grpc = grpcCallOf(ctx.req, mapping.timeoutMs, clock() - elapsedMs);
    const body = createRequestBody(ctx, callBodyOptions, createBodyOf(ctx));
    return { headers: callHeaders(grpc, headers, ctx.req), body, grpc };
  }

  function createBodyOf({ req }: Context): typeof createCallBody {
    if (grpcWebCallOf(req)?.isRequestText !== true) return createCallBody;
    // A body that the host application has read is sent as it is.
    if (!isBodyUnread(req)) throw problem('body-consumed');
    return (_, options) => createCallBody(req, { ...options, text: createWebTextReader() });
  }

  function countedFailure(cause: unknown): Problem {
    const failure = problemOf(cause);
    countFailure(counts, failure);
    return failure;
  }

  function respond(ctx: Context, response: UpstreamResponse, prepared: PreparedRequest): void {
    const { handshake, head: sent, request } = prepared;
    const { head, connection, origin } = response;
    const restoration = restorationOf(sent, origin);
    if (handshake !== undefined && connection !== undefined) {
      const switching = { restoration, editResponse, idleTimeoutMs: switchedIdleTimeoutMs };
      switchProtocols(ctx, handshake, head, connection, switching);
    } else if (!clientIsGone(ctx)) {
      const send = request.grpc === undefined ? sendResponse : sendCallResponse;
      send(ctx, response, {
        restoration,
        idleTimeoutMs,
        eventsIdleTimeoutMs,
        paceMin: cluster.createPaceMin(),
        toProblem: countedFailure,
        onBreak,
      });
      hints.onResponse(ctx, sent.path);
    }
  }

  function restorationOf(sent: RequestHead, upstreamOrigin: string): PathRestoration {
    return {
      publicPrefix: sent.publicPrefix,
      innerPrefix,
      publicScheme: sent.publicScheme,
      publicHost: sent.publicHost,
      sentHost: sent.host,
      upstreamOrigin,
      cookiePath: mapping.cookiePath,
      rewriteLinks: mapping.rewriteLinks,
    };
  }

  function onBreak(ctx: Context, cause: unknown): void {
    if (clientIsGone(ctx)) return;
    requestContext(ctx).reportBreak?.(ctx, countedFailure(cause));
  }
}

function problemOfFailure(cause: unknown): Problem {
  return cause instanceof Problem ? cause : upstreamProblem(cause);
}

interface PreparedRequest {
  readonly request: UpstreamRequest;
  readonly handshake: Handshake | undefined;
  readonly head: RequestHead;
}

/** A short body is often complete one turn of the event loop later, and is then sent in a single write. */
function endsSoon({ head, body, connection }: UpstreamResponse, { request: { grpc } }: PreparedRequest): boolean {
  if (connection !== undefined || body.hasArrived()) return false;
  return grpc !== undefined || Number(head.headers['content-length']) <= bufferedBytesMax;
}

/** Closes the connection after the response if the request is incomplete: the rest would be parsed as a request. */
function closeUnlessComplete({ req, res }: Context): void {
  if (!req.complete && !res.headersSent) res.setHeader('Connection', 'close');
}
