/** Sends a request to one address, once, and reports the response or the failure. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import { grpcStatus, httpStatusOfGrpc, nominatedBy, Problem } from '#http';
import { CallAborted, failureOf } from './failures.ts';
import type { GrpcCall } from './grpc/call.ts';
import { statusInHead, statusInTrailers, trailersOfFailure } from './grpc/status.ts';
import type { RawText } from './headers.ts';
import { ResponseBody } from './response-body.ts';

/** A slot for one request at one address. */
export interface Attempt {
  readonly origin: string;
  /**
   * Works like undici's `dispatch`. Call it only once. Connecting is the only step with a time-out. A caller that gives
   * up before `onRequestStart` must release the slot, and must abort the request if `onRequestStart` is called anyway.
   * `isFresh` forces a new connection, for use after a reused connection has failed.
   */
  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler, isFresh?: boolean): void;
  /**
   * True when the request was sent on a connection that was already open. A reset before any response may then mean
   * that the service closed the connection because it was idle. Call it as soon as the request has failed, before
   * awaiting anything else.
   */
  isReused(): boolean;
  /** Updates the health of the address. Call it as soon as the outcome is known; only the first call counts. */
  reportOutcome(outcome: AttemptOutcome): void;
  /**
   * Updates the health of the address when a response body has ended, or with the cause when the service broke it off.
   * Call it once, and not for an empty body or one that ends because of the client.
   */
  reportBody(breakCause?: Error): void;
  /** Releases the slot of the request but not that of the upgrade. Call it once, after the protocol switch. */
  reportSwitch(): void;
  /**
   * Releases the slot. Call it when the response body ends or the switched connection closes. A request that is still
   * waiting for a connection is cancelled without a call to its handler. A second call does nothing.
   */
  release(): void;
}

/** The status of a response, or a failure before one. An attempt that ends because of the client has no outcome. */
export type AttemptOutcome =
  | {
      readonly kind: 'responded';
      readonly status: number;
      /** The status of a gRPC call, to which `status` corresponds. */
      readonly grpcStatus?: number;
      /** The service closes the connection by its own choice. */
      readonly closesConnection?: boolean;
    }
  | { readonly kind: 'failed'; readonly cause: unknown };

export interface ResponseHead {
  readonly status: number;
  /** The reason phrase. */
  readonly message: string;
  /** Keyed by lower-case name. A header that occurs several times is an array. */
  readonly headers: IncomingHttpHeaders;
  /** Alternating names and values, as received. */
  readonly rawHeaders: readonly RawText[];
  /** True if the head has ended the response (HTTP/2): it has neither a body, even an empty one, nor trailers. */
  readonly endsResponse: boolean;
}

export interface AttemptListener {
  /** Set for a gRPC call, whose outcome is its status. */
  readonly grpc?: GrpcCall | undefined;
  /** Called for each interim response (1xx). */
  onInterim(status: number, rawHeaders: readonly RawText[]): void;
  /** Called once, unless the attempt fails. The listener must then consume the body or the switched connection. */
  onResponse(head: ResponseHead, body: ResponseBody, connection?: Duplex): void;
  /** Called once if the attempt fails before a response. Not called for an abandoned attempt. */
  onFailure(cause: unknown, stage: FailureStage): void;
}

/**
 * How far a failed attempt got:
 * - `unsent`: nothing was written, or the service says that it has not processed the request.
 * - `keep-alive-race`: sent without a response, on a reused connection that the service may have just closed as idle.
 * - `sent`: sent without a response, on a new connection.
 * - `responding`: the response had begun.
 */
export type FailureStage = 'unsent' | 'keep-alive-race' | 'sent' | 'responding';

/** An attempt in progress. */
export interface RunningAttempt {
  /** Aborts an attempt that waits for a connection, a response or the rest of a body. Does nothing once it has ended. */
  abandon(reason: () => Error): void;
}

/** Starts the attempt, reports its outcome and releases its slot at the end. `isFresh` forces a new connection. */
export function startAttempt(
  attempt: Attempt,
  options: Dispatcher.DispatchOptions,
  listener: AttemptListener,
  isFresh = false,
): RunningAttempt {
  const handler = new AttemptHandler(attempt, options, listener);
  try {
    attempt.dispatch(options, handler, isFresh);
  } catch (cause) {
    // The first attempt loads undici, which is impossible while too many files are open.
    queueMicrotask(() => handler.onResponseError(undefined, cause as Error));
  }
  return handler;
}

/** undici's controller, with what HTTP/2 adds. */
type ResponseController = Dispatcher.DispatchController & { readonly endsWithHead?: boolean };

/** A class, like `ResponseBody`, because each request has one. */
class AttemptHandler implements RunningAttempt, Dispatcher.DispatchHandler {
  private readonly attempt: Attempt;
  private readonly hasBody: boolean;
  private readonly isHead: boolean;
  private readonly listener: AttemptListener;
  private controller: Dispatcher.DispatchController | undefined = undefined;
  private abandonReason: Error | undefined = undefined;
  private hasResponseBegun = false;
  private hasBodyBegun = false;
  /** True for the response of a gRPC call whose status is in its trailers. */
  private awaitsStatus = false;
  private interims = 0;
  private isOver = false;
  private body: ResponseBody | undefined = undefined;

  constructor(attempt: Attempt, { method, body }: Dispatcher.DispatchOptions, listener: AttemptListener) {
    this.attempt = attempt;
    this.hasBody = body != null;
    this.isHead = method === 'HEAD';
    this.listener = listener;
  }

  abandon(reason: () => Error): void {
    if (this.isOver || this.abandonReason !== undefined) return;
    this.abandonReason = reason();
    this.reportFailure(this.abandonReason);
    if (this.controller === undefined) this.attempt.release();
    else this.controller.abort(this.abandonReason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.abandonReason === undefined) this.controller = controller;
    else controller.abort(this.abandonReason);
  }

  onResponseStarted(): void {
    this.hasResponseBegun = true;
  }

  onResponseStart(controller: ResponseController, status: number, headers: IncomingHttpHeaders, message = ''): void {
    const rawHeaders = controller.rawHeaders as readonly RawText[];
    if (status < 200) {
      this.interims += 1;
      if (this.interims > interimsMax) controller.abort(tooManyInterims());
      else this.listener.onInterim(status, rawHeaders);
      return;
    }
    // undici itself asks the service to close the connection after a HEAD.
    const closesConnection = !this.isHead && closes(headers);
    if (this.listener.grpc === undefined) this.attempt.reportOutcome({ kind: 'responded', status, closesConnection });
    else this.reportStatus(statusInHead(status, headers), this.listener.grpc);
    this.body = new ResponseBody(
      () => controller.resume(),
      (late) => this.abandon(() => late ?? bodyNotNeeded()),
    );
    const endsResponse = controller.endsWithHead === true;
    if (this.awaitsStatus) this.body.endInsteadOfFailing(trailersOfFailure);
    this.listener.onResponse({ status, message, headers, rawHeaders, endsResponse }, this.body);
  }

  onRequestUpgrade(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    connection: Duplex,
  ): void {
    this.isOver = true;
    this.attempt.reportOutcome({ kind: 'responded', status });
    this.attempt.reportSwitch();
    connection.once('error', () => connection.destroy()).once('close', () => this.attempt.release());
    const rawHeaders = controller.rawHeaders as readonly RawText[];
    const noBody = new ResponseBody(ignore, () => connection.destroy());
    this.listener.onResponse({ status, message: '', headers, rawHeaders, endsResponse: false }, noBody, connection);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.hasBodyBegun = true;
    if (this.body?.write(chunk) === false) controller.pause();
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    const trailers = (controller.rawTrailers ?? []) as readonly RawText[];
    if (this.hasBodyBegun) this.attempt.reportBody();
    if (this.awaitsStatus && this.listener.grpc !== undefined)
      this.reportStatus(statusInTrailers(trailers), this.listener.grpc);
    this.end();
    this.body?.end(trailers);
  }

  onResponseError(_controller: unknown, cause: Error): void {
    const stage = this.stageReached(cause);
    if (this.abandonReason === undefined) this.reportFailure(cause);
    this.end();
    if (this.body !== undefined) this.body.fail(cause);
    else if (this.abandonReason === undefined) this.listener.onFailure(cause, stage);
  }

  /** The time that a client allows may be too short for a healthy service. */
  private reportStatus(code: number | 'in-trailers', { isClientsLimit }: GrpcCall): void {
    this.awaitsStatus = code === 'in-trailers';
    if (code === 'in-trailers' || (code === grpcStatus.DEADLINE_EXCEEDED && isClientsLimit)) return;
    this.attempt.reportOutcome({ kind: 'responded', status: httpStatusOfGrpc(code), grpcStatus: code });
  }

  /** A client that disconnects or sends too much says nothing about the health of the address. */
  private reportFailure(cause: Error): void {
    const isCausedByClient = cause instanceof Problem || (cause instanceof CallAborted && cause.code === 'ECONNRESET');
    // A service may also close the connection because it does not want the body.
    const isBodyRefused = this.hasBody && this.controller !== undefined && failureOf(cause).retry === 'reset';
    if (isCausedByClient || isBodyRefused) return;
    if (this.body === undefined) this.attempt.reportOutcome({ kind: 'failed', cause });
    else if (!this.body.wasHeldUp()) this.attempt.reportBody(cause);
  }

  private stageReached(cause: Error): FailureStage {
    if (this.controller === undefined || failureOf(cause).retry === 'refused') return 'unsent';
    if (this.hasResponseBegun) return 'responding';
    return this.attempt.isReused() ? 'keep-alive-race' : 'sent';
  }

  private end(): void {
    this.isOver = true;
    this.attempt.release();
  }
}

/** Each costs CPU time, and a service can send thousands in one packet. */
const interimsMax = 100;

function tooManyInterims(): Error {
  const message = `the service sent more than ${interimsMax} interim responses`;
  return Object.assign(new Error(message), { code: 'HPE_INTERIM_RESPONSES' });
}

function closes({ connection }: IncomingHttpHeaders): boolean {
  return connection === 'close' || nominatedBy(connection).has('close');
}

function bodyNotNeeded(): CallAborted {
  return new CallAborted('ECONNRESET', 'the rest of the response is not needed');
}

function ignore(): void {}
