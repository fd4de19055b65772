/** Sends a request to one address, once, and reports the response or the failure. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import { Problem } from '#http';
import { CallAborted, failureOf } from './failures.ts';
import { nominatedBy } from './headers.ts';
import { createResponseBody, type ResponseBody, type ResponseSink } from './response-body.ts';

/** A slot for one request at one address. */
export interface Attempt {
  readonly origin: string;
  /**
   * Works like undici's `dispatch`. Call it only once. Connecting is the only step with a time-out. A caller that gives
   * up before `onRequestStart` must release the slot, and must abort the request if `onRequestStart` is called anyway.
   * `isFresh` forces a new connection, for use after a reused connection has failed.
   */
  readonly dispatch: (
    options: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
    isFresh?: boolean,
  ) => void;
  /**
   * True when the request was sent on a connection that was already open. A reset before any response may then mean
   * that the service closed the connection because it was idle. Call it as soon as the request has failed, before
   * awaiting anything else.
   */
  readonly isReused: () => boolean;
  /** Updates the health of the address. Call it as soon as the outcome is known; only the first call counts. */
  readonly reportOutcome: (outcome: AttemptOutcome) => void;
  /** Releases the slot of the request but not that of the upgrade. Call it once, after the protocol switch. */
  readonly reportSwitch: () => void;
  /**
   * Releases the slot. Call it when the response body ends or the switched connection closes. A request that is still
   * waiting for a connection is cancelled without a call to its handler. A second call does nothing.
   */
  readonly release: () => void;
}

/** The status of a response, or a failure before one. An attempt that ends because of the client has no outcome. */
export type AttemptOutcome =
  | {
      readonly kind: 'responded';
      readonly status: number;
      /** The response has `Connection: close`. */
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
  readonly rawHeaders: readonly Buffer[];
}

export interface AttemptListener {
  /** Called for each interim response (1xx). */
  readonly onInterim?: ((status: number, rawHeaders: readonly Buffer[]) => void) | undefined;
  /** Called once, unless the attempt fails. The listener must then consume the body or the switched connection. */
  readonly onResponse: (head: ResponseHead, body: ResponseBody, connection?: Duplex) => void;
  /** Called once if the attempt fails before a response. Not called for an abandoned attempt. */
  readonly onFailure: (cause: unknown, stage: FailureStage) => void;
}

/**
 * How far a failed attempt got:
 * - `unsent`: nothing was written.
 * - `keep-alive-race`: sent without a response, on a reused connection that the service may have just closed as idle.
 * - `sent`: sent without a response, on a new connection.
 * - `responding`: the response had begun.
 */
export type FailureStage = 'unsent' | 'keep-alive-race' | 'sent' | 'responding';

/** Aborts an attempt that waits for a connection, a response or the rest of a body. Does nothing once it has ended. */
export type Abandon = (reason: () => Error) => void;

/** Starts the attempt, reports its outcome and releases its slot at the end. `isFresh` forces a new connection. */
export function startAttempt(
  attempt: Attempt,
  options: Dispatcher.DispatchOptions,
  { onInterim, onResponse, onFailure }: AttemptListener,
  isFresh = false,
): Abandon {
  let abort: ((reason: Error) => void) | undefined;
  let abandonReason: Error | undefined;
  let hasResponseBegun = false;
  let interims = 0;
  let isOver = false;
  let sink: ResponseSink | undefined;

  function abandon(reason: () => Error): void {
    if (isOver || abandonReason !== undefined) return;
    abandonReason = reason();
    reportFailure(abandonReason);
    if (abort === undefined) attempt.release();
    else abort(abandonReason);
  }

  /** A client that disconnects or sends too much says nothing about the health of the address. */
  function reportFailure(cause: Error): void {
    const isCausedByClient = cause instanceof Problem || (cause instanceof CallAborted && cause.code === 'ECONNRESET');
    // A service may also close the connection because it does not want the body.
    const isBodyRefused = options.body != null && abort !== undefined && failureOf(cause).retry === 'reset';
    if (!isCausedByClient && !isBodyRefused) attempt.reportOutcome({ kind: 'failed', cause });
  }

  function stageReached(): FailureStage {
    if (abort === undefined) return 'unsent';
    if (hasResponseBegun) return 'responding';
    return attempt.isReused() ? 'keep-alive-race' : 'sent';
  }

  function end(): void {
    isOver = true;
    attempt.release();
  }

  function fail(cause: Error): void {
    const stage = stageReached();
    if (abandonReason === undefined) reportFailure(cause);
    end();
    if (sink !== undefined) sink.fail(cause);
    else if (abandonReason === undefined) onFailure(cause, stage);
  }

  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(controller) {
      if (abandonReason === undefined) abort = (reason) => controller.abort(reason);
      else controller.abort(abandonReason);
    },
    onResponseStarted() {
      hasResponseBegun = true;
    },
    onResponseStart(controller, status, headers, message = '') {
      const rawHeaders = controller.rawHeaders as readonly Buffer[];
      if (status < 200) {
        interims += 1;
        if (interims > interimsMax) controller.abort(tooManyInterims());
        else onInterim?.(status, rawHeaders);
        return;
      }
      attempt.reportOutcome({ kind: 'responded', status, closesConnection: closes(headers) });
      const resume = () => controller.resume();
      const body = createResponseBody(resume, () => abandon(bodyNotNeeded));
      sink = body;
      onResponse({ status, message, headers, rawHeaders }, body);
    },
    onRequestUpgrade(controller, status, headers, connection) {
      isOver = true;
      attempt.reportOutcome({ kind: 'responded', status });
      attempt.reportSwitch();
      connection.once('error', () => connection.destroy()).once('close', attempt.release);
      const rawHeaders = controller.rawHeaders as readonly Buffer[];
      const noBody = createResponseBody(ignore, () => connection.destroy());
      onResponse({ status, message: '', headers, rawHeaders }, noBody, connection);
    },
    onResponseData(controller, chunk) {
      if (sink?.write(chunk) === false) controller.pause();
    },
    onResponseEnd(controller) {
      end();
      sink?.end((controller.rawTrailers ?? []) as readonly Buffer[]);
    },
    onResponseError: (_controller, cause) => fail(cause),
  };
  try {
    attempt.dispatch(options, handler, isFresh);
  } catch (cause) {
    // The first attempt loads undici, which is impossible while too many files are open.
    queueMicrotask(() => fail(cause as Error));
  }
  return abandon;
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
