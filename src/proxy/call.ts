/** One call to a service across HTTP: attempts under one deadline, until one of them has a response. */
import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Context } from 'koa';
import type { Dispatcher } from 'undici';
import {
  type Abandon,
  type Attempt,
  type AttemptListener,
  type FailedProgress,
  type ResponseHead,
  startAttempt,
} from './attempt.ts';
import type { Cluster } from './cluster/cluster.ts';
import { clientGone, failureOf, timedOut } from './failures.ts';
import { firstValue } from './hop-by-hop.ts';
import { type RequestBody, uploadTimedOut } from './request-body.ts';
import type { ResponseBody } from './response-body.ts';
import { backOffMs, isIdempotent, type RetryRules, retryAfterMs } from './retry.ts';

export interface UpstreamRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  /** Names in lower case and values in turn. Without `host`, the host of the address is sent. */
  readonly headers: readonly string[];
  readonly body: RequestBody | undefined;
  /** The protocol that the service is asked to switch to. */
  readonly upgrade?: string | undefined;
  /** The call is aborted when this response to the client closes; so is the reading of the body. */
  readonly client?: ServerResponse;
  /** A place that was taken before the call; otherwise the cluster is asked for one. */
  readonly place?: Attempt;
  readonly onInterim?: AttemptListener['onInterim'];
  /** Called with the origin before each attempt. */
  readonly onAttempt?: (origin: string) => void;
}

/** What all calls of a mapping have in common. */
export interface CallOptions {
  /** From the end of the request until the response headers, in milliseconds, all attempts included; 0: no limit. */
  readonly timeoutMs: number;
  /**
   * Which requests may be sent again. `idempotent`: by their method, after a failure that the retry policy names, once
   * after a keep-alive race, and once at another address when the connection broke before there was a response.
   * `failover`: all, once, at another address or after a keep-alive race. With both, a request of which nothing was
   * written goes to each other address. Only retries of a policy need a place among the retries of the cluster.
   */
  readonly repeat: 'idempotent' | 'failover' | 'never';
  readonly retries?: Retries;
}

export interface Retries {
  readonly rules: RetryRules;
  /** From 0 up to 1. */
  readonly random: () => number;
  /** Milliseconds. */
  readonly clock: () => number;
  /** Another attempt follows after a pause; `because` of an error or a status. */
  readonly onRetry: (pauseMs: number, because: unknown) => void;
}

export interface UpstreamResponse {
  readonly head: ResponseHead;
  readonly body: ResponseBody;
  /** Of the address that gave it. */
  readonly origin: string;
  /** The connection that has switched protocols, if this is a 101. */
  readonly connection: Duplex | undefined;
}

/**
 * Rejects with the failure of the last attempt, with `CallAborted` at the deadline or when the client goes, or with the
 * Problem of the request's body.
 */
export function callUpstream(
  cluster: Cluster,
  request: UpstreamRequest,
  options: CallOptions,
): Promise<UpstreamResponse> {
  return new Promise((resolve, reject) => {
    const call: Call = {
      cluster,
      request,
      options,
      startedAtMs: options.retries?.clock() ?? 0,
      resolve,
      reject,
      tried: undefined,
      retryCount: 0,
      hasRaced: false,
      hasFailedOver: false,
      hasGoneRound: false,
      hasAbandoned: false,
      isSettled: false,
      abandon: undefined,
      releaseRetry: undefined,
      deadline: undefined,
      timer: undefined,
    };
    if (request.client?.destroyed === true) fail(call, clientGone());
    else begin(call);
  });
}

/** True when no client is left to read a response; the access log says 499 then. */
export function clientIsGone({ res }: Context): boolean {
  return res.destroyed;
}

interface Call {
  readonly cluster: Cluster;
  readonly request: UpstreamRequest;
  readonly options: CallOptions;
  readonly startedAtMs: number;
  readonly resolve: (response: UpstreamResponse) => void;
  readonly reject: (cause: unknown) => void;
  /** The origin of each attempt. */
  tried: readonly string[] | undefined;
  retryCount: number;
  hasRaced: boolean;
  /** A request that may have reached one address was sent to another. */
  hasFailedOver: boolean;
  /** All addresses were tried, and one of them once more. */
  hasGoneRound: boolean;
  /** An attempt was given up before it failed by itself. */
  hasAbandoned: boolean;
  /** It has a response or has failed: later events of an attempt do not matter. */
  isSettled: boolean;
  abandon: Abandon | undefined;
  releaseRetry: (() => void) | undefined;
  deadline: NodeJS.Timeout | undefined;
  /** Until the end of one attempt, or of the pause before it. */
  timer: NodeJS.Timeout | undefined;
}

function dispatchOptionsOf({ method, path, headers, body, upgrade }: UpstreamRequest): Dispatcher.DispatchOptions {
  return {
    method: method as Dispatcher.HttpMethod,
    path,
    headers: headers as string[],
    body: body?.open() ?? null,
    upgrade: upgrade ?? null,
  };
}

function begin(call: Call): void {
  const { request, options } = call;
  request.client?.once('close', () => abort(call, clientGone));
  if (options.timeoutMs > 0) call.deadline = setTimeout(onDeadline, options.timeoutMs, call);
  if (request.body === undefined) attemptOnce(call);
  else gatherBody(call, request.body);
}

/** A place of the upstream is taken only when there is something to send: slow clients would hold all of them. */
function gatherBody(call: Call, body: RequestBody): void {
  body.watch({
    onEnd: () => void (call.isSettled || call.deadline?.refresh()),
    onIdle: (isClients) => abort(call, isClients ? uploadTimedOut : () => timedOut('no progress with the body')),
    onTooLarge: (because) => abort(call, () => because),
    isCrowded: call.cluster.isCrowded,
  });
  body.gather(() => void (call.isSettled || attemptOnce(call)));
}

function attemptOnce(call: Call): void {
  const attempt = takePlace(call);
  if (attempt !== undefined) startAt(call, attempt);
}

/** Undefined when a circuit breaker is open; the call has failed then. */
function takePlace(call: Call): Attempt | undefined {
  const { cluster, request, tried } = call;
  try {
    return (tried === undefined ? request.place : undefined) ?? cluster.attempt(tried, request.upgrade !== undefined);
  } catch (cause) {
    fail(call, cause);
    return undefined;
  }
}

function startAt(call: Call, attempt: Attempt): void {
  const { request, options, tried } = call;
  const { origin } = attempt;
  call.tried = tried === undefined ? [origin] : [...tried, origin];
  request.onAttempt?.(origin);
  const perTryTimeoutMs = options.retries?.rules.perTryTimeoutMs;
  if (perTryTimeoutMs !== undefined) call.timer = setTimeout(onTryTimeout, perTryTimeoutMs, call, perTryTimeoutMs);
  const listener: AttemptListener = {
    onInterim: request.onInterim,
    onResponse: (head, body, connection) => onResponse(call, { head, body, origin, connection }),
    onFailure: (cause, progress) => onFailure(call, cause, progress),
  };
  call.abandon = startAttempt(attempt, dispatchOptionsOf(request), listener, call.hasRaced);
}

function onResponse(call: Call, response: UpstreamResponse): void {
  endAttempt(call);
  if (call.isSettled || retryStatus(call, response.head)) response.body.discard();
  else settle(call, call.resolve, response);
}

function onFailure(call: Call, cause: unknown, progress: FailedProgress): void {
  endAttempt(call);
  if (call.isSettled) return;
  const isRace = progress === 'race';
  const isSentAgain =
    (isRace && repeatAfterRace(call, cause)) || failOver(call, cause, progress) || retryFailure(call, cause);
  if (!isSentAgain) fail(call, cause);
}

/** A service may close an idle connection just as it is used again: the request goes out on a fresh one, once. */
function repeatAfterRace(call: Call, cause: unknown): boolean {
  if (call.hasRaced || failureOf(cause).retry !== 'reset' || !mayRepeatAfterRace(call)) return false;
  call.hasRaced = true;
  call.hasFailedOver = true;
  attemptOnce(call);
  return true;
}

function mayRepeatAfterRace({ request, options, tried }: Call): boolean {
  if (options.repeat === 'failover') return tried?.length === 1;
  return options.repeat === 'idempotent' && isIdempotent(request.method) && request.body?.isRepeatable() !== false;
}

/** At once, and at an address that has not been tried where there is one. */
function failOver(call: Call, cause: unknown, progress: FailedProgress): boolean {
  const { options, tried = [] } = call;
  if (!mayFailOver(call, cause, progress)) return false;
  const attempt = takePlace(call);
  if (attempt !== undefined && tried.includes(attempt.origin) && !goesRound(call, progress)) {
    attempt.release();
    return false;
  }
  if (progress !== 'unsent') call.hasFailedOver = true;
  options.retries?.onRetry(0, cause);
  if (attempt !== undefined) startAt(call, attempt);
  return true;
}

/** Once: an address that refused the connection may have started while the others were asked. */
function goesRound(call: Call, progress: FailedProgress): boolean {
  if (progress !== 'unsent' || call.hasGoneRound || new Set(call.tried).size < 2) return false;
  call.hasGoneRound = true;
  return true;
}

/** A restart closes connections and ports; what was not written is safe to send to another address, whatever its method. */
function mayFailOver(call: Call, cause: unknown, progress: FailedProgress): boolean {
  const { options, request, hasFailedOver } = call;
  if (options.repeat === 'never') return false;
  if (progress === 'unsent') return failureOf(cause).retry !== 'never' && request.body?.isRepeatable() !== false;
  if (hasFailedOver) return false;
  if (options.repeat === 'failover') return true;
  return progress !== 'answered' && failureOf(cause).retry === 'reset' && isRepeatable(call);
}

/** A pause that the service asks for is kept up to this bound; beyond it, its response goes to the client. */
const retryAfterMsMax = 10_000;

function retryStatus(call: Call, { status, rawHeaders }: ResponseHead): boolean {
  const rules = call.options.retries?.rules;
  if (rules === undefined || !rules.isRetriableStatus(status) || !isRepeatable(call)) return false;
  const pauseMs = retryAfterMs(firstValue(rawHeaders, 'retry-after')) ?? 0;
  return pauseMs <= retryAfterMsMax && retryLater(call, pauseMs, status);
}

function retryFailure(call: Call, cause: unknown): boolean {
  const rules = call.options.retries?.rules;
  return rules !== undefined && isRepeatable(call) && rules.isRetriableFailure(cause) && retryLater(call, 0, cause);
}

/** A body that has begun to flow cannot be sent again; an attempt that was given up may still begin to read it. */
function isRepeatable({ request: { method, body }, hasAbandoned }: Call): boolean {
  if (!isIdempotent(method)) return false;
  return body === undefined || body.isWhole() || (body.isRepeatable() && !hasAbandoned);
}

/** False when no more retries are allowed, or the pause would not end before the deadline. */
function retryLater(call: Call, pauseMsMin: number, because: unknown): boolean {
  const { cluster, options, retryCount, startedAtMs } = call;
  const { retries, timeoutMs } = options;
  if (retries === undefined || retryCount >= retries.rules.retriesMax) return false;
  const pauseMs = Math.max(pauseMsMin, backOffMs(retryCount + 1, retries.random));
  if (timeoutMs > 0 && retries.clock() - startedAtMs + pauseMs >= timeoutMs) return false;
  call.releaseRetry = cluster.takeRetry();
  if (call.releaseRetry === undefined) return false;
  call.retryCount += 1;
  call.timer = setTimeout(attemptOnce, pauseMs, call);
  retries.onRetry(pauseMs, because);
  return true;
}

/** Until the request has arrived, the idle time-out of its body counts, also for a service that reads slowly; then the deadline starts again. */
function onDeadline(call: Call): void {
  const { request, options } = call;
  if (request.body?.hasArrived() !== false) abort(call, () => timedOut(`no response within ${options.timeoutMs} ms`));
}

function onTryTimeout(call: Call, perTryTimeoutMs: number): void {
  const reason = timedOut(`no response to one attempt within ${perTryTimeoutMs} ms`);
  call.abandon?.(() => reason);
  call.hasAbandoned = true;
  onFailure(call, reason, 'answered');
}

/** Also ends a response whose body is on its way. Does nothing once that is complete. */
function abort(call: Call, because: () => Error): void {
  call.abandon?.(because);
  if (!call.isSettled) fail(call, because());
}

function fail(call: Call, cause: unknown): void {
  settle(call, call.reject, cause);
  call.request.body?.drop();
}

function settle<T>(call: Call, done: (result: T) => void, result: T): void {
  call.isSettled = true;
  clearTimeout(call.deadline);
  clearTimeout(call.timer);
  call.releaseRetry?.();
  done(result);
}

function endAttempt(call: Call): void {
  clearTimeout(call.timer);
  call.releaseRetry?.();
  call.releaseRetry = undefined;
}
