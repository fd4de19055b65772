/** The body of an upstream's answer: held until somebody wants it, then passed on as fast as he takes it. */
import { Readable } from 'node:stream';
import { createIdleTimer, type IdleTimer } from './idle-timer.ts';

/** What the exchange does with it. */
export interface AnswerSink {
  /** False: no more, until `resume` is called. */
  readonly take: (chunk: Buffer) => boolean;
  /** Names and values in turn. */
  readonly end: (trailers: readonly Buffer[]) => void;
  readonly fail: (cause: Error) => void;
}

/** What the one who answers does with it: one of the three, once. */
export interface AnswerBody {
  /** All of it, when it has come already and no trailers with it. */
  readonly whole: () => Buffer | undefined;
  /** What has come and what will come. An idle body is destroyed; so is, by its destruction, the exchange. */
  readonly stream: (idle: IdleTimer) => Readable;
  /** Reads on and drops it; after 64 KiB, or a second's rest, the connection is not worth it any more. */
  readonly discard: () => void;
  /** True while there is nothing of the stream to read, but will be. */
  readonly isAwaited: () => boolean;
  /** Known when the stream has ended. */
  readonly trailers: () => readonly Buffer[];
  /** Why it broke off before anybody wanted it. */
  readonly failure: () => Error | undefined;
}

const heldBytesMax = 64 * 1024;
const droppedBytesMax = 64 * 1024;
const droppedRestMs = 1000;
const none: readonly Buffer[] = [];

/** `resume`: after `take` has said false. `abandon`: the rest is not wanted. */
export function createAnswerBody(resume: () => void, abandon: () => void): AnswerSink & AnswerBody {
  let held: Buffer[] = [];
  let heldBytes = 0;
  let isPaused = false;
  let isEnded = false;
  let isDropped = false;
  let failure: Error | undefined;
  let trailers = none;
  let reader: Readable | undefined;
  let pulse: IdleTimer | undefined;

  function hold(chunk: Buffer): boolean {
    heldBytes += chunk.length;
    if (isDropped) {
      if (heldBytes > droppedBytesMax) abandon();
      return true;
    }
    held.push(chunk);
    return heldBytes < heldBytesMax;
  }

  function goOn(): void {
    pulse?.touch();
    if (!isPaused) return;
    isPaused = false;
    resume();
  }

  function destroy(cause: Error | null, done: (cause: Error | null) => void): void {
    pulse?.stop();
    if (!isEnded) abandon();
    done(cause);
  }

  return {
    take(chunk) {
      pulse?.touch();
      isPaused = !(reader === undefined ? hold(chunk) : reader.push(chunk));
      return !isPaused;
    },
    end(found) {
      isEnded = true;
      trailers = found;
      pulse?.stop();
      reader?.push(null);
    },
    fail(cause) {
      failure = cause;
      pulse?.stop();
      reader?.destroy(cause);
    },
    whole() {
      if (!isEnded || trailers.length > 0) return undefined;
      return held.length === 1 ? held[0] : Buffer.concat(held, heldBytes);
    },
    stream(idle) {
      pulse = idle;
      reader = new Readable({ highWaterMark: heldBytesMax, read: goOn, destroy });
      for (const chunk of held) reader.push(chunk);
      held = [];
      if (isEnded) reader.push(null);
      else idle.touch();
      if (failure !== undefined) reader.destroy(failure);
      return reader;
    },
    discard() {
      if (isEnded || failure !== undefined) return;
      isDropped = true;
      held = [];
      pulse = createIdleTimer(droppedRestMs, abandon);
      goOn();
    },
    isAwaited: () => !isEnded && reader?.readableLength === 0,
    trailers: () => trailers,
    failure: () => failure,
  };
}
