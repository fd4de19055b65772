/** Calls a service over HTTP: makes attempts under one deadline until one of them gets a response. */
import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Context } from 'koa';
import type { Dispatcher } from 'undici';
import {
  type Attempt,
  type AttemptListener,
  type FailureStage,
  type ResponseHead,
  type RunningAttempt,
  startAttempt,
} from './attempt.ts';
import type { Cluster } from './cluster/cluster.ts';
import { backOffMs, clientGone, failureOf, isIdempotent, type RetryRules, retryAfterMs, timedOut } from './failures.ts';
import { firstValue } from './headers.ts';
import { type RequestBody, uploadTimedOut } from './request-body.ts';
import type { ResponseBody } from './response-body.ts';

export interface UpstreamRequest {
  readonly method: string;
  /** Includes the query. */
  readonly path: string;
  /** Alternating lower-case names and values. If they lack a `host`, the host of the address is sent. */
  readonly headers: readonly string[];
  readonly body: RequestBody | undefined;
  /** Asks the service to switch to this protocol. */
  readonly upgrade?: string | undefined;
  /** The response to the client. When it closes, the call and the reading of the request body are aborted. */
  readonly client?: ServerResponse;
  /** A slot acquired before the call, for the first attempt. @default acquired from the cluster */
  readonly firstAttempt?: Attempt;
  readonly onInterim?: AttemptListener['onInterim'];
  /** Called before each attempt with the origin of its address. */
  readonly onAttempt?: (origin: string) => void;
}

/** Options shared by all calls of a mapping. */
export interface CallOptions {
  /** Milliseconds from the end of the request to the response headers, including all attempts. 0 means no limit. */
  readonly timeoutMs: number;
  /**
   * Which requests may be sent again:
   * - `idempotent`: requests with an idempotent method: as the retry policy says, once after a keep-alive race, and
   *   once at another address when the connection breaks before a response.
   * - `failover`: all requests, once, at another address or after a keep-alive race.
   *
   * In both modes, a request that failed before any of it was written is tried at every other address. Only the retries
   * of the policy count towards the cluster's `max_retries`.
   */
  readonly repeat: 'idempotent' | 'failover' | 'never';
  readonly retries?: Retries;
}

export interface Retries {
  readonly rules: RetryRules;
  /** Returns a number from 0 up to, but not including, 1. */
  readonly random: () => number;
  /** Returns the time in milliseconds. */
  readonly clock: () => number;
  /** Called before the pause that precedes another attempt. `reason` is the error or the status that caused it. */
  readonly onRetry: (pauseMs: number, reason: unknown) => void;
}

export interface UpstreamResponse {
  readonly head: ResponseHead;
  readonly body: ResponseBody;
  /** The origin of the address that responded. */
  readonly origin: string;
  /** The switched connection, if the response is a 101. */
  readonly connection: Duplex | undefined;
}

/**
 * Rejects with the failure of the last attempt, with `CallAborted` at the deadline or when the client disconnects, or
 * with the Problem that the request body caused.
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
      startedAtMs: nowOf(options),
      resolve,
      reject,
      phase: 'buffering',
      deadline: undefined,
      timer: undefined,
      attempt: undefined,
      releaseRetry: undefined,
      tried: undefined,
      retryCount: 0,
      resent: 'no',
      hasStartedOver: false,
      hasTimedOutAttempt: false,
    };
    if (request.client?.destroyed === true) fail(call, clientGone());
    else begin(call);
  });
}

/** True when the client has disconnected. The access log then shows status 499. The response closes a moment later. */
export function clientIsGone({ req, res }: Context): boolean {
  return res.destroyed || req.socket.destroyed;
}

/**
 * - `buffering`: waits until enough of the request body has arrived.
 * - `attempting`: waits for the outcome of an attempt.
 * - `pausing`: waits before another attempt.
 * - `settled`: has a response or has failed. Later events of an attempt are ignored.
 */
type Phase = 'buffering' | 'attempting' | 'pausing' | 'settled';

interface Call {
  readonly cluster: Cluster;
  readonly request: UpstreamRequest;
  readonly options: CallOptions;
  readonly resolve: (response: UpstreamResponse) => void;
  readonly reject: (cause: unknown) => void;
  phase: Phase;
  /** The time at which the deadline started, at the latest at the end of the request body. */
  startedAtMs: number;
  deadline: NodeJS.Timeout | undefined;
  /** Limits the current attempt, or ends the pause before the next one. */
  timer: NodeJS.Timeout | undefined;
  /** The last attempt, which may have ended. */
  attempt: RunningAttempt | undefined;
  /** Set from the pause before a retry to the end of that retry. */
  releaseRetry: (() => void) | undefined;
  /** The origins of all attempts so far, in order. */
  tried: readonly string[] | undefined;
  /** How often the retry policy has sent the request again. */
  retryCount: number;
  /**
   * Whether a request that may have reached a service was sent again without the retry policy: `elsewhere`, at another
   * address, or `fresh`, after a keep-alive race. Later attempts then use new connections. It only advances.
   */
  resent: 'no' | 'elsewhere' | 'fresh';
  /** All addresses were tried, and one of them a second time. */
  hasStartedOver: boolean;
  /** An attempt was abandoned at its own time-out. It may still start to read the body. */
  hasTimedOutAttempt: boolean;
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
  // The event occurs once, and `on` takes less time than `once`.
  request.client?.on('close', () => abort(call, clientGone));
  if (options.timeoutMs > 0) call.deadline = setTimeout(onDeadline, options.timeoutMs, call);
  if (request.body === undefined) makeAttempt(call);
  else bufferBody(call, request.body);
}

/** Acquires a slot only when there is something to send, so that slow clients do not occupy all slots. */
function bufferBody(call: Call, body: RequestBody): void {
  body.watch({
    onEnd: () => restartTimers(call),
    onIdle: (isClientIdle) =>
      abort(call, isClientIdle ? uploadTimedOut : () => timedOut('the service did not read the request body in time')),
    onTooLarge: (reason) => abort(call, () => reason),
    isCrowded: call.cluster.isCrowded,
    paceMin: call.cluster.createPaceMin(),
  });
  body.buffer(() => {
    if (call.phase === 'buffering') makeAttempt(call);
  });
}

/** The time-outs start again at the end of the request body. */
function restartTimers(call: Call): void {
  if (call.phase === 'settled') return;
  call.startedAtMs = nowOf(call.options);
  call.deadline?.refresh();
  if (call.phase === 'attempting') call.timer?.refresh();
}

/** Only retries need the time. */
function nowOf({ retries }: CallOptions): number {
  return retries?.clock() ?? 0;
}

function makeAttempt(call: Call): void {
  const attempt = acquireAttempt(call);
  if (attempt !== undefined) runAttempt(call, attempt);
}

/** Fails the call and returns undefined when a circuit breaker is open. */
function acquireAttempt(call: Call): Attempt | undefined {
  const { cluster, request, tried } = call;
  try {
    return (
      (tried === undefined ? request.firstAttempt : undefined) ?? cluster.attempt(tried, request.upgrade !== undefined)
    );
  } catch (cause) {
    fail(call, cause);
    return undefined;
  }
}

function runAttempt(call: Call, attempt: Attempt): void {
  const { request, options, tried } = call;
  const { origin } = attempt;
  const perTryTimeoutMs = options.retries?.rules.perTryTimeoutMs;
  call.phase = 'attempting';
  call.timer =
    perTryTimeoutMs === undefined ? undefined : setTimeout(onTryTimeout, perTryTimeoutMs, call, perTryTimeoutMs);
  call.tried = tried === undefined ? [origin] : [...tried, origin];
  request.onAttempt?.(origin);
  const listener = new CallListener(call, origin);
  call.attempt = startAttempt(attempt, dispatchOptionsOf(request), listener, call.resent === 'fresh');
}

/** Reports the events of an attempt to its call. A class, like the attempt, because each request has one. */
class CallListener implements AttemptListener {
  private readonly call: Call;
  private readonly origin: string;

  constructor(call: Call, origin: string) {
    this.call = call;
    this.origin = origin;
  }

  onInterim(status: number, rawHeaders: readonly Buffer[]): void {
    this.call.request.onInterim?.(status, rawHeaders);
  }

  onResponse(head: ResponseHead, body: ResponseBody, connection?: Duplex): void {
    onResponse(this.call, { head, body, origin: this.origin, connection });
  }

  onFailure(cause: unknown, stage: FailureStage): void {
    onFailure(this.call, cause, stage);
  }
}

function onResponse(call: Call, response: UpstreamResponse): void {
  endAttempt(call);
  if (call.phase === 'settled' || retryStatus(call, response.head)) response.body.discard();
  else settle(call, call.resolve, response);
}

function onFailure(call: Call, cause: unknown, stage: FailureStage): void {
  endAttempt(call);
  if (call.phase === 'settled') return;
  const isSentAgain = repeatAfterRace(call, stage) || failOver(call, cause, stage) || retryFailure(call, cause);
  if (!isSentAgain) fail(call, cause);
}

/**
 * A service may close an idle connection just as we reuse it. Sends the request again on a new connection, so this
 * happens only once.
 */
function repeatAfterRace(call: Call, stage: FailureStage): boolean {
  if (stage !== 'keep-alive-race' || !mayRepeatAfterRace(call)) return false;
  call.resent = 'fresh';
  makeAttempt(call);
  return true;
}

function mayRepeatAfterRace({ request, options, tried }: Call): boolean {
  if (options.repeat === 'failover') return tried?.length === 1;
  return options.repeat === 'idempotent' && isIdempotent(request.method) && request.body?.isRepeatable() !== false;
}

/** Tries again immediately, preferring an address that has not been tried. */
function failOver(call: Call, cause: unknown, stage: FailureStage): boolean {
  const { options, tried = [] } = call;
  if (!mayFailOver(call, cause, stage)) return false;
  const attempt = acquireAttempt(call);
  if (attempt !== undefined && tried.includes(attempt.origin) && !startOver(call, stage)) {
    attempt.release();
    return false;
  }
  if (stage !== 'unsent') call.resent = 'elsewhere';
  options.retries?.onRetry(0, cause);
  if (attempt !== undefined) runAttempt(call, attempt);
  return true;
}

/** Allows trying one address a second time, once: it may have come up while the others were tried. */
function startOver(call: Call, stage: FailureStage): boolean {
  if (stage !== 'unsent' || call.hasStartedOver || new Set(call.tried).size < 2) return false;
  call.hasStartedOver = true;
  return true;
}

/** A restarting service closes connections and ports. An unsent request can go elsewhere, whatever its method. */
function mayFailOver(call: Call, cause: unknown, stage: FailureStage): boolean {
  const { options, request, resent } = call;
  if (options.repeat === 'never') return false;
  if (stage === 'unsent') return failureOf(cause).retry !== 'never' && request.body?.isRepeatable() !== false;
  if (resent !== 'no') return false;
  if (options.repeat === 'failover') return true;
  return stage !== 'responding' && failureOf(cause).retry === 'reset' && isRepeatable(call);
}

/** The longest `Retry-After` that we wait for. A response with a longer one is forwarded to the client. */
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

/** A body that is being streamed cannot be sent again, and an abandoned attempt may still start to read it. */
function isRepeatable({ request: { method, body }, hasTimedOutAttempt }: Call): boolean {
  if (!isIdempotent(method)) return false;
  return body === undefined || body.isWhole() || (body.isRepeatable() && !hasTimedOutAttempt);
}

/** Returns false when no more retries are allowed or the pause would last beyond the deadline. */
function retryLater(call: Call, pauseMsMin: number, reason: unknown): boolean {
  const { cluster, options, retryCount, startedAtMs } = call;
  const { retries, timeoutMs } = options;
  if (retries === undefined || retryCount >= retries.rules.retriesMax) return false;
  const pauseMs = Math.max(pauseMsMin, backOffMs(retryCount + 1, retries.random));
  if (timeoutMs > 0 && retries.clock() - startedAtMs + pauseMs >= timeoutMs) return false;
  call.releaseRetry = cluster.acquireRetry();
  if (call.releaseRetry === undefined) return false;
  call.retryCount += 1;
  call.phase = 'pausing';
  call.timer = setTimeout(makeAttempt, pauseMs, call);
  retries.onRetry(pauseMs, reason);
  return true;
}

/**
 * While the request body is still arriving, only its idle time-out applies, even if it is the service that reads slowly.
 */
function isUploading({ request }: Call): boolean {
  return request.body?.hasArrived() === false;
}

function onDeadline(call: Call): void {
  if (!isUploading(call)) abort(call, () => timedOut(`no response within ${call.options.timeoutMs} ms`));
}

function onTryTimeout(call: Call, perTryTimeoutMs: number): void {
  if (isUploading(call)) return;
  const reason = timedOut(`an attempt got no response within ${perTryTimeoutMs} ms`);
  call.attempt?.abandon(() => reason);
  call.hasTimedOutAttempt = true;
  // Never `unsent`, even for an attempt without a connection: only the retry policy may repeat a time-out.
  onFailure(call, reason, 'responding');
}

/** Also aborts a response body in progress. Does nothing once the response is complete. */
function abort(call: Call, reason: () => Error): void {
  call.attempt?.abandon(reason);
  if (call.phase !== 'settled') fail(call, reason());
}

function fail(call: Call, cause: unknown): void {
  settle(call, call.reject, cause);
  call.request.body?.discard();
}

function settle<T>(call: Call, done: (result: T) => void, result: T): void {
  call.phase = 'settled';
  clearTimeout(call.deadline);
  endAttempt(call);
  done(result);
}

/** Also ends a pause. */
function endAttempt(call: Call): void {
  clearTimeout(call.timer);
  call.releaseRetry?.();
  call.releaseRetry = undefined;
}
