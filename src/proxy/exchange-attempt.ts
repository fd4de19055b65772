/** One attempt at one address, in the terms of the library: its answer, or why there is none. */
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import { Problem } from '#http';
import { type AnswerBody, type AnswerSink, createAnswerBody } from './answer-body.ts';
import type { Attempt, AttemptOutcome } from './cluster.ts';
import { GivenUp } from './deadline.ts';

/** Of an answer: the status line, and names and values in turn as they came. */
export interface AnswerHead {
  readonly status: number;
  /** The reason phrase. */
  readonly message: string;
  readonly rawHeaders: readonly Buffer[];
}

export interface AttemptListener {
  /** An interim answer (1xx). */
  readonly onInterim: (status: number, rawHeaders: readonly Buffer[]) => void;
  /** Once, unless it fails; what becomes of the body is the listener's to say, or of the connection that has switched protocols. */
  readonly onAnswer: (head: AnswerHead, body: AnswerBody, connection?: Duplex) => void;
  /** Once, before there is an answer. `isRace`: on a connection that the service may have closed for being idle. */
  readonly onFailure: (cause: unknown, isRace: boolean) => void;
}

/** Takes it back, whether it waits for a connection, for an answer or for the rest of a body; later it does nothing. */
export type Abandon = (because: () => Error) => void;

/**
 * `isFresh`: on a connection that was not open before. Settles and releases the attempt.
 */
export function startAttempt(
  attempt: Attempt,
  options: Dispatcher.DispatchOptions,
  { onInterim, onAnswer, onFailure }: AttemptListener,
  isFresh = false,
): Abandon {
  let abort: ((reason: Error) => void) | undefined;
  let givenUp: Error | undefined;
  let isBegun = false;
  let isOver = false;
  let sink: AnswerSink | undefined;

  function abandon(because: () => Error): void {
    if (isOver || givenUp !== undefined) return;
    givenUp = because();
    attempt.settle(outcomeOf(givenUp));
    if (abort === undefined) attempt.release();
    else abort(givenUp);
  }

  function end(): void {
    isOver = true;
    attempt.release();
  }

  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(controller) {
      if (givenUp === undefined) abort = (reason) => controller.abort(reason);
      else controller.abort(givenUp);
    },
    onResponseStarted() {
      isBegun = true;
    },
    onResponseStart(controller, status, _headers, message = '') {
      const rawHeaders = controller.rawHeaders as readonly Buffer[];
      if (status < 200) onInterim(status, rawHeaders);
      else {
        attempt.settle({ kind: 'answered', status });
        const body = createAnswerBody(
          () => controller.resume(),
          () => abandon(unwanted),
        );
        sink = body;
        onAnswer({ status, message, rawHeaders }, body);
      }
    },
    onRequestUpgrade(controller, status, _headers, connection) {
      isOver = true;
      attempt.settle({ kind: 'answered', status });
      connection.once('error', () => connection.destroy()).once('close', attempt.release);
      const nothing = createAnswerBody(
        () => {},
        () => connection.destroy(),
      );
      onAnswer({ status, message: '', rawHeaders: controller.rawHeaders as readonly Buffer[] }, nothing, connection);
    },
    onResponseData(controller, chunk) {
      if (sink?.take(chunk) === false) controller.pause();
    },
    onResponseEnd(controller) {
      end();
      sink?.end((controller.rawTrailers ?? []) as readonly Buffer[]);
    },
    onResponseError(_controller, cause) {
      const isRace = !isBegun && attempt.isReused();
      attempt.settle(outcomeOf(cause));
      end();
      if (sink !== undefined) sink.fail(cause);
      else if (givenUp === undefined) onFailure(cause, isRace);
    },
  };
  attempt.dispatch(options, handler, isFresh ? 'fresh' : undefined);
  return abandon;
}

/** A client that leaves, or sends too much, says nothing about the address. */
function outcomeOf(cause: Error): AttemptOutcome {
  const isClients = cause instanceof Problem || (cause instanceof GivenUp && cause.code === 'ECONNRESET');
  return isClients ? { kind: 'abandoned' } : { kind: 'failed', cause };
}

function unwanted(): GivenUp {
  return new GivenUp('ECONNRESET', 'nobody wants the rest of the answer');
}
