/** One attempt at one address, as a handler of undici: its response, or why there is none. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import { Problem } from '#http';
import { CallAborted, failureOf } from './failures.ts';
import { createResponseBody, type ResponseBody, type ResponseSink } from './response-body.ts';

/** One place at one address. */
export interface Attempt {
  readonly origin: string;
  /**
   * As undici's, to be called once. Only connecting has a time-out. A caller that gives up before `onRequestStart`
   * releases the place, and aborts in `onRequestStart` should it still be called. `fresh`: on a new connection, after one
   * that was open before has failed.
   */
  readonly dispatch: (
    options: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
    connection?: 'fresh' | undefined,
  ) => void;
  /**
   * True when the connection was open before: a reset before any response may then be the idle time-out of the service.
   * To be asked when the request has failed, before anything else is awaited.
   */
  readonly isReused: () => boolean;
  /** For the health of the address, as soon as it is known; only the first call counts. */
  readonly reportOutcome: (outcome: AttemptOutcome) => void;
  /** The connection has switched protocols: it gives the request's place back, and keeps its place among the upgrades. To be called once. */
  readonly reportSwitch: () => void;
  /**
   * Gives the place back, after the end of the body or of the connection that has switched protocols. A request that
   * waits for a connection then never begins, and its handler is not called. A second call does nothing.
   */
  readonly release: () => void;
}

/** Response headers with this status, or a failure before them. An attempt that was given up has no outcome. */
export type AttemptOutcome =
  | {
      readonly kind: 'answered';
      readonly status: number;
      /** It announces that it closes the connection. */
      readonly isLeaving?: boolean;
    }
  | { readonly kind: 'failed'; readonly cause: unknown };

export interface ResponseHead {
  readonly status: number;
  /** The reason phrase. */
  readonly message: string;
  /** By lower-case name; those that came in several lines as a list. */
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turn, as they came. */
  readonly rawHeaders: readonly Buffer[];
}

export interface AttemptListener {
  /** An interim response (1xx). */
  readonly onInterim?: ((status: number, rawHeaders: readonly Buffer[]) => void) | undefined;
  /** Once, unless the attempt fails. The listener then takes or discards the body, or the connection that switched protocols. */
  readonly onResponse: (head: ResponseHead, body: ResponseBody, connection?: Duplex) => void;
  /** Once, before there is a response. */
  readonly onFailure: (cause: unknown, progress: FailedProgress) => void;
}

/**
 * How far an attempt came that failed. `unsent`: no byte of it was written. `race`: written to a connection that was open
 * before, which the service may have closed for being idle, and unanswered. `unanswered`: on a new connection.
 */
export type FailedProgress = 'unsent' | 'race' | 'unanswered' | 'answered';

/** Ends the attempt, whether it waits for a connection, for a response or for the rest of a body; later it does nothing. */
export type Abandon = (because: () => Error) => void;

/** Reports the outcome and releases the place. `isFresh`: on a new connection. */
export function startAttempt(
  place: Attempt,
  options: Dispatcher.DispatchOptions,
  { onInterim, onResponse, onFailure }: AttemptListener,
  isFresh = false,
): Abandon {
  let abort: ((reason: Error) => void) | undefined;
  let abandonedFor: Error | undefined;
  let hasResponseBegun = false;
  let isOver = false;
  let sink: ResponseSink | undefined;

  function abandon(because: () => Error): void {
    if (isOver || abandonedFor !== undefined) return;
    abandonedFor = because();
    reportFailure(abandonedFor);
    if (abort === undefined) place.release();
    else abort(abandonedFor);
  }

  /** A client that goes away, or sends too much, says nothing about the address. */
  function reportFailure(cause: Error): void {
    const isClients = cause instanceof Problem || (cause instanceof CallAborted && cause.code === 'ECONNRESET');
    // A service may also close the connection over a body that it does not want.
    const isBodyRefused = options.body != null && abort !== undefined && failureOf(cause).retry === 'reset';
    if (!isClients && !isBodyRefused) place.reportOutcome({ kind: 'failed', cause });
  }

  function progressOf(): FailedProgress {
    if (abort === undefined) return 'unsent';
    if (hasResponseBegun) return 'answered';
    return place.isReused() ? 'race' : 'unanswered';
  }

  function end(): void {
    isOver = true;
    place.release();
  }

  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(controller) {
      if (abandonedFor === undefined) abort = (reason) => controller.abort(reason);
      else controller.abort(abandonedFor);
    },
    onResponseStarted() {
      hasResponseBegun = true;
    },
    onResponseStart(controller, status, headers, message = '') {
      const rawHeaders = controller.rawHeaders as readonly Buffer[];
      if (status < 200) {
        onInterim?.(status, rawHeaders);
        return;
      }
      place.reportOutcome({ kind: 'answered', status, isLeaving: headers['connection'] === 'close' });
      const resume = () => controller.resume();
      const body = createResponseBody(resume, () => abandon(unwanted));
      sink = body;
      onResponse({ status, message, headers, rawHeaders }, body);
    },
    onRequestUpgrade(controller, status, headers, connection) {
      isOver = true;
      place.reportOutcome({ kind: 'answered', status });
      place.reportSwitch();
      connection.once('error', () => connection.destroy()).once('close', place.release);
      const rawHeaders = controller.rawHeaders as readonly Buffer[];
      const noBody = createResponseBody(ignore, () => connection.destroy());
      onResponse({ status, message: '', headers, rawHeaders }, noBody, connection);
    },
    onResponseData(controller, chunk) {
      if (sink?.take(chunk) === false) controller.pause();
    },
    onResponseEnd(controller) {
      end();
      sink?.end((controller.rawTrailers ?? []) as readonly Buffer[]);
    },
    onResponseError(_controller, cause) {
      const progress = progressOf();
      if (abandonedFor === undefined) reportFailure(cause);
      end();
      if (sink !== undefined) sink.fail(cause);
      else if (abandonedFor === undefined) onFailure(cause, progress);
    },
  };
  place.dispatch(options, handler, isFresh ? 'fresh' : undefined);
  return abandon;
}

function unwanted(): CallAborted {
  return new CallAborted('ECONNRESET', 'the rest of the response is not needed');
}

function ignore(): void {}
