/** Calls a service over HTTP: makes attempts under one deadline until one of them gets a response. */
import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Context } from 'koa';
import type { Dispatcher } from 'undici';
import { type Attempt, type AttemptListener, type ResponseHead, type RunningAttempt, startAttempt } from './attempt.ts';
import {
  type AttemptRule,
  backOffMs,
  coversAddress,
  type Ending,
  pushbackMs,
  type Repeat,
  type RetryRules,
  retryAfterMs,
  retryAfterMsMax,
  rulesAllowing,
} from './attempt-rules.ts';
import type { Cluster } from './cluster/cluster.ts';
import { clientGone, limitReached, timedOut } from './failures.ts';
import { type GrpcCall, hopHeaders, timeLeftMs } from './grpc/call.ts';
import { statusInHead } from './grpc/status.ts';
import { firstValue, type RawText } from './headers.ts';
import { type RequestBody, uploadTimedOut } from './request-body.ts';
import type { ResponseBody } from './response-body.ts';

export interface UpstreamRequest {
  readonly method: string;
  /** Includes the query. */
  readonly path: string;
  /** Alternating lower-case names and values. If they lack a `host`, the host of the address is sent. */
  readonly headers: readonly string[];
  readonly body: RequestBody | undefined;
  /** Set for a gRPC call. */
  readonly grpc?: GrpcCall | undefined;
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
  /** Which rules allow another attempt. */
  readonly repeat: Repeat;
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
    const call = new Call(cluster, request, options, resolve, reject);
    if (request.client?.destroyed === true) call.fail(clientGone());
    else call.begin();
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

/** A class, like its attempts, because each request has one. */
class Call implements AttemptListener {
  private readonly cluster: Cluster;
  readonly grpc: GrpcCall | undefined;
  private readonly request: UpstreamRequest;
  private readonly options: CallOptions;
  private readonly resolve: (response: UpstreamResponse) => void;
  private readonly reject: (cause: unknown) => void;
  private phase: Phase = 'buffering';
  /** The time at which the deadline started, at the latest at the end of the request body. */
  private startedAtMs: number;
  private deadline: NodeJS.Timeout | undefined = undefined;
  /** Limits the whole of a gRPC call, also its response. */
  private callDeadline: NodeJS.Timeout | undefined = undefined;
  /** Limits the current attempt, or ends the pause before the next one. */
  private timer: NodeJS.Timeout | undefined = undefined;
  /** The last attempt, which may have ended. An abandoned one reports nothing. */
  private attempt: RunningAttempt | undefined = undefined;
  /** The origins of all attempts so far, in order. */
  private tried: readonly string[] = none;
  /** The rules that allowed the attempts after the first, in order. */
  private followed: readonly AttemptRule['name'][] = none;
  /** Set from the pause before a retry to the end of that retry. */
  private releaseRetry: (() => void) | undefined = undefined;

  constructor(
    cluster: Cluster,
    request: UpstreamRequest,
    options: CallOptions,
    resolve: (response: UpstreamResponse) => void,
    reject: (cause: unknown) => void,
  ) {
    this.cluster = cluster;
    this.request = request;
    this.grpc = request.grpc;
    this.options = options;
    this.resolve = resolve;
    this.reject = reject;
    this.startedAtMs = nowOf(options);
  }

  begin(): void {
    const { client, body } = this.request;
    const { timeoutMs } = this.options;
    // The event occurs once, and `on` takes less time than `once`.
    client?.on('close', () => this.abort(clientGone));
    if (timeoutMs > 0) this.deadline = setTimeout(Call.onDeadline, timeoutMs, this);
    if (this.grpc?.timeoutMs !== undefined)
      this.startCallDeadline(Math.max(0, timeLeftMs(this.grpc, nowOf(this.options))));
    if (body === undefined) this.makeAttempt();
    else this.bufferBody(body);
  }

  /** It is also stopped when the client has left or has its response. */
  private startCallDeadline(timeoutMs: number): void {
    this.callDeadline = setTimeout(Call.onCallDeadline, timeoutMs, this);
    this.request.client?.on('close', () => clearTimeout(this.callDeadline));
  }

  /** Acquires a slot only when there is something to send, so that slow clients do not occupy all slots. */
  private bufferBody(body: RequestBody): void {
    body.watch({
      onEnd: () => this.restartTimers(),
      onIdle: (isClientIdle) => this.abort(isClientIdle ? uploadTimedOut : serviceTimedOut),
      onRefused: (reason) => this.abort(() => reason),
      isCrowded: this.cluster.isCrowded,
      paceMin: this.cluster.createPaceMin(),
    });
    body.buffer(() => {
      if (this.phase === 'buffering') this.makeAttempt();
    });
  }

  /** The time-outs start again at the end of the request body. */
  private restartTimers(): void {
    if (this.phase === 'settled') return;
    this.startedAtMs = nowOf(this.options);
    this.deadline?.refresh();
    if (this.phase === 'attempting') this.timer?.refresh();
  }

  private makeAttempt(): void {
    const slot = this.acquireSlot();
    if (slot !== undefined) this.runAttempt(slot);
  }

  /** Fails the call and returns undefined when a circuit breaker is open. */
  private acquireSlot(): Attempt | undefined {
    const { cluster, request, tried } = this;
    try {
      if (tried.length === 0 && request.firstAttempt !== undefined) return request.firstAttempt;
      return cluster.attempt(tried, request.upgrade !== undefined);
    } catch (cause) {
      this.fail(cause);
      return undefined;
    }
  }

  private runAttempt(slot: Attempt): void {
    const { request, options, tried, followed } = this;
    const { origin } = slot;
    const perTryTimeoutMs = options.retries?.rules.perTryTimeoutMs;
    this.phase = 'attempting';
    this.timer =
      perTryTimeoutMs === undefined ? undefined : setTimeout(Call.onTryTimeout, perTryTimeoutMs, this, perTryTimeoutMs);
    this.tried = tried.length === 0 ? [origin] : [...tried, origin];
    request.onAttempt?.(origin);
    const isFresh = followed.includes('new-connection') || followed.includes('refused');
    this.attempt = startAttempt(slot, dispatchOptionsOf(request, options), this, isFresh);
  }

  onInterim(status: number, rawHeaders: readonly RawText[]): void {
    this.request.onInterim?.(status, rawHeaders);
  }

  onResponse(head: ResponseHead, body: ResponseBody, connection?: Duplex): void {
    this.endAttempt();
    if (this.phase === 'settled' || this.tryAgainAfterStatus(head)) body.discard();
    else {
      this.request.body?.forget();
      this.settle(this.resolve, { head, body, origin: this.tried.at(-1) ?? '', connection });
    }
  }

  onFailure(cause: unknown, ending: Ending): void {
    this.endAttempt();
    if (this.phase !== 'settled' && !this.tryAgain(ending, cause)) this.fail(cause);
  }

  private tryAgainAfterStatus(head: ResponseHead): boolean {
    const rules = this.options.retries?.rules;
    if (rules === undefined) return false;
    const { status, rawHeaders } = head;
    const code = this.grpc && statusInHead(status, head.headers);
    const isRetriable = typeof code === 'number' && rules.isRetriableGrpcStatus(code);
    if (!isRetriable && !rules.isRetriableStatus(status)) return false;
    const pauseMsMin = isRetriable
      ? pushbackMs(firstValue(rawHeaders, 'grpc-retry-pushback-ms'))
      : (retryAfterMs(firstValue(rawHeaders, 'retry-after')) ?? 0);
    return pauseMsMin <= retryAfterMsMax && this.tryAgain('retriable-status', code ?? status, pauseMsMin);
  }

  /** Returns false when no rule allows another attempt. `reason` is the error or the status that caused it. */
  private tryAgain(ending: Ending, reason: unknown, pauseMsMin = 0): boolean {
    const { request, options, followed } = this;
    const { method, body } = request;
    const policy = options.retries?.rules;
    const rules = rulesAllowing(options.repeat, { ending, reason, method, body, policy, followed });
    return this.tryNow(rules, reason) || this.tryLater(rules, reason, pauseMsMin);
  }

  /** Also returns true when a circuit breaker has ended the call. */
  private tryNow(rules: readonly AttemptRule[], reason: unknown): boolean {
    const immediate = rules.filter(({ where }) => where !== 'later');
    if (immediate.length === 0) return false;
    const slot = this.acquireSlot();
    if (slot === undefined) return true;
    const rule = immediate.find((one) => coversAddress(one, slot.origin, this.tried));
    if (rule === undefined) {
      slot.release();
      return false;
    }
    this.followed = [...this.followed, rule.name];
    if (rule.where !== 'fresh') this.options.retries?.onRetry(0, reason);
    this.runAttempt(slot);
    return true;
  }

  /** Returns false when no more retries are allowed or the pause would last beyond the deadline. */
  private tryLater(rules: readonly AttemptRule[], reason: unknown, pauseMsMin: number): boolean {
    const { cluster, followed } = this;
    const { retries } = this.options;
    const rule = rules.find(({ where }) => where === 'later');
    const retryCount = followed.filter((name) => name === rule?.name).length;
    if (rule === undefined || retries === undefined || retryCount >= retries.rules.retriesMax) return false;
    const pauseMs = Math.max(pauseMsMin, backOffMs(retryCount + 1, retries.random));
    if (pauseMs >= this.leftMs(retries.clock())) return false;
    this.releaseRetry = cluster.acquireRetry();
    if (this.releaseRetry === undefined) return false;
    this.followed = [...followed, rule.name];
    this.phase = 'pausing';
    this.timer = setTimeout(Call.onPauseEnd, pauseMs, this);
    retries.onRetry(pauseMs, reason);
    return true;
  }

  /** How much time the call has left for the head of a response. */
  private leftMs(nowMs: number): number {
    const { timeoutMs } = this.options;
    const headMs = timeoutMs > 0 ? timeoutMs - (nowMs - this.startedAtMs) : Number.POSITIVE_INFINITY;
    return this.grpc === undefined ? headMs : Math.min(headMs, timeLeftMs(this.grpc, nowMs));
  }

  private static onPauseEnd(call: Call): void {
    call.makeAttempt();
  }

  private static onTryTimeout(call: Call, perTryTimeoutMs: number): void {
    if (call.isUploading()) return;
    const reason = timedOut(`an attempt got no response within ${perTryTimeoutMs} ms`);
    call.attempt?.abandon(() => reason);
    call.onFailure(reason, 'timed-out');
  }

  private static onDeadline(call: Call): void {
    if (!call.isUploading()) call.abort(() => timedOut(`no response within ${call.options.timeoutMs} ms`));
  }

  /** A service that has begun to respond is healthy: it is the call that takes longer than the mapping allows. */
  private static onCallDeadline(call: Call): void {
    const { grpc } = call;
    const isServicesFault = call.phase !== 'settled' && grpc?.isClientsLimit !== true;
    const message = `the call was not complete within ${grpc?.timeoutMs} ms`;
    call.abort(() => (isServicesFault ? timedOut(message) : limitReached(message)));
  }

  /** While the request body is arriving, only its idle time-out applies, even if it is the service that reads slowly. */
  private isUploading(): boolean {
    return this.request.body?.hasArrived() === false;
  }

  /** Also aborts a response body in progress. Does nothing once the response is complete. */
  private abort(reason: () => Error): void {
    this.attempt?.abandon(reason);
    if (this.phase !== 'settled') this.fail(reason());
  }

  fail(cause: unknown): void {
    clearTimeout(this.callDeadline);
    this.settle(this.reject, cause);
    this.request.body?.discard();
  }

  private settle<T>(done: (result: T) => void, result: T): void {
    this.phase = 'settled';
    clearTimeout(this.deadline);
    this.endAttempt();
    done(result);
  }

  /** Also ends a pause. */
  private endAttempt(): void {
    clearTimeout(this.timer);
    this.releaseRetry?.();
    this.releaseRetry = undefined;
  }
}

const none: readonly never[] = [];

function dispatchOptionsOf(
  { method, path, headers, body, upgrade, grpc }: UpstreamRequest,
  options: CallOptions,
): Dispatcher.DispatchOptions {
  return {
    method: method as Dispatcher.HttpMethod,
    path,
    headers: (grpc === undefined ? headers : [...headers, ...hopHeaders(grpc, nowOf(options))]) as string[],
    body: body?.open() ?? null,
    upgrade: upgrade ?? null,
  };
}

function serviceTimedOut(): Error {
  return timedOut('the service did not read the request body in time');
}

/** Only retries need the time. */
function nowOf({ retries }: CallOptions): number {
  return retries?.clock() ?? 0;
}
