/** One attempt at one address, as a handler of undici: its response, or why there is none. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import { Problem } from '#http';
import type { Attempt, AttemptOutcome } from './cluster.ts';
import { CallAborted } from './failures.ts';
import { createResponseBody, type ResponseBody, type ResponseSink } from './response-body.ts';

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
  /** Once, before there is a response. `isRace`: on a connection that the service may have closed for being idle. */
  readonly onFailure: (cause: unknown, isRace: boolean) => void;
}

/** Ends the attempt, whether it waits for a connection, for a response or for the rest of a body; later it does nothing. */
export type Abandon = (because: () => Error) => void;

/** Settles and releases `attempt`. `isFresh`: on a new connection. */
export function startAttempt(
  attempt: Attempt,
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
    attempt.settle(outcomeOf(abandonedFor));
    if (abort === undefined) attempt.release();
    else abort(abandonedFor);
  }

  function end(): void {
    isOver = true;
    attempt.release();
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
      attempt.settle({ kind: 'answered', status });
      const resume = () => controller.resume();
      const body = createResponseBody(resume, () => abandon(unwanted));
      sink = body;
      onResponse({ status, message, headers, rawHeaders }, body);
    },
    onRequestUpgrade(controller, status, headers, connection) {
      isOver = true;
      attempt.settle({ kind: 'answered', status });
      connection.once('error', () => connection.destroy()).once('close', attempt.release);
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
      const isRace = !hasResponseBegun && attempt.isReused();
      attempt.settle(outcomeOf(cause));
      end();
      if (sink !== undefined) sink.fail(cause);
      else if (abandonedFor === undefined) onFailure(cause, isRace);
    },
  };
  attempt.dispatch(options, handler, isFresh ? 'fresh' : undefined);
  return abandon;
}

/** A client that goes away, or sends too much, says nothing about the address. */
function outcomeOf(cause: Error): AttemptOutcome {
  const isClients = cause instanceof Problem || (cause instanceof CallAborted && cause.code === 'ECONNRESET');
  return isClients ? { kind: 'abandoned' } : { kind: 'failed', cause };
}

function unwanted(): CallAborted {
  return new CallAborted('ECONNRESET', 'the rest of the response is not needed');
}

function ignore(): void {}
