/** To a service across HTTP: streamed both ways, bounded in time, and silent about why it failed. */
import type { Context } from 'koa';
import type { Mapping } from '#config';
import { type Logger, Problem, requestContext, type TracedCall, traceOf } from '#http';
import { rewritePrefixes } from '#routing';
import { answerWith } from './answer.ts';
import { type CallOptions, callUpstream, clientIsGone, type UpstreamRequest, type UpstreamResponse } from './call.ts';
import type { Cluster } from './cluster/cluster.ts';
import { passOnHints } from './early-hints.ts';
import { upstreamProblem } from './failures.ts';
import { createHandshakes, switchOver } from './forward-upgrade.ts';
import { createHeaderRules } from './header-rules.ts';
import { createRequestBody } from './request-body.ts';
import { createRetryRules } from './retry.ts';
import type { IdentityNames } from './upstream-headers.ts';
import { createRequestHead } from './upstream-request.ts';
import { countFailure, createUpstreamCounts, type UpstreamCounts } from './upstream-tally.ts';

export interface ForwardOptions {
  readonly mapping: Mapping;
  readonly cluster: Cluster;
  /** Put before every path: `''`, or `/base`. */
  readonly path: string;
  /** From the end of the request until the response headers, in milliseconds, all attempts included; 0: without end. */
  readonly timeoutMs: number;
  /** How long a body may rest, either way, in milliseconds; 0: without end. A stream of events may for ever, unless the mapping says so itself. */
  readonly idleTimeoutMs: number;
  readonly bodyBytesMax: number;
  readonly identity: IdentityNames;
  readonly logger: Logger;
  /** Counted up. @default nobody counts */
  readonly counts?: UpstreamCounts;
  /** From 0 up to 1. */
  readonly random?: () => number;
  /** Milliseconds. */
  readonly clock?: () => number;
}

/** Throws the Problem of what fails before there are response headers; what fails later breaks the client's connection. */
export function createForward(options: ForwardOptions): (ctx: Context) => Promise<void> {
  const { mapping, idleTimeoutMs, bodyBytesMax, random = Math.random, clock = now } = options;
  const { cluster, timeoutMs, logger } = options;
  const { counts = createUpstreamCounts() } = options;
  function onRetry(pauseMs: number, because: unknown): void {
    counts.retries += 1;
    logger.debug?.({ mapping: mapping.name, pauseMs, because }, 'a request is tried again');
  }
  const retries = { rules: createRetryRules(mapping.retryPolicy), random, clock, onRetry };
  const callOptions: CallOptions = { timeoutMs, repeat: 'idempotent', retries };
  const headOf = createRequestHead(options);
  const innerPrefix = options.path + rewritePrefixes(mapping).replacement;
  const answerRules = createHeaderRules(mapping.responseHeaders);
  const bodyOptions = { bytesMax: bodyBytesMax, idleTimeoutMs };
  const handshakeOf = createHandshakes(mapping.allowUpgrade);
  const eventsIdleTimeoutMs = mapping.idleTimeoutMs ?? 0;

  return async function forwardRemote(ctx) {
    const call = traceOf(ctx).startCall?.(ctx.req.method ?? 'GET');
    const { request, handshake, publicPrefix } = prepare(ctx, call);
    const answer = await ask(ctx, request, call);
    if (answer === undefined) return;
    const restoration = { publicPrefix, innerPrefix, upstreamOrigin: answer.origin };
    if (handshake !== undefined && answer.connection !== undefined) {
      const edit = answerRules.editAnswer;
      switchOver(ctx, handshake, answer.head, answer.connection, { restoration, edit, idleTimeoutMs });
      return;
    }
    answerWith(ctx, answer, { restoration, idleTimeoutMs, eventsIdleTimeoutMs });
    answerRules.editAnswer(ctx);
  };

  /** A call that cannot be made ends here. */
  function prepare(ctx: Context, call: TracedCall | undefined) {
    try {
      const { path, headers, publicPrefix } = headOf(ctx, call?.trace);
      const body = createRequestBody(ctx, bodyOptions);
      const handshake = handshakeOf(ctx.req);
      const request: UpstreamRequest = {
        method: ctx.req.method ?? 'GET',
        path,
        headers,
        body,
        upgrade: handshake?.protocol,
        client: ctx.res,
        onInterim: (status, rawHeaders) => passOnHints(ctx, status, rawHeaders),
      };
      return { request, handshake, publicPrefix };
    } catch (cause) {
      call?.failed(cause);
      throw cause;
    }
  }

  /** Undefined when the client has left: then there is nobody to answer, and no fault of the upstream's to tell. */
  async function ask(
    ctx: Context,
    request: UpstreamRequest,
    call: TracedCall | undefined,
  ): Promise<UpstreamResponse | undefined> {
    const startedAtMs = clock();
    try {
      const answer = await callUpstream(cluster, request, callOptions);
      call?.answered(answer.head.status, answer.origin);
      return answer;
    } catch (cause) {
      call?.failed(cause);
      if (clientIsGone(ctx)) return undefined;
      const found = cause instanceof Problem ? cause : upstreamProblem(cause);
      countFailure(counts, found);
      throw found;
    } finally {
      requestContext(ctx).upstreamMs = clock() - startedAtMs;
      closeUnlessReceived(ctx);
    }
  }
}

function now(): number {
  return performance.now();
}

/** What a client is still sending when it is answered would be read as its next request. */
function closeUnlessReceived({ req, res }: Context): void {
  if (!req.complete && !res.headersSent) res.setHeader('Connection', 'close');
}
