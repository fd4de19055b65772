/** The log on standard output: in blocks, and bounded while its reader takes nothing. */
import type { Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { type Logger, pino } from 'pino';

export interface LogOutput {
  readonly logger: Logger & { readonly droppedLines: () => number };
  /** Hands over what has been collected. */
  readonly pass: () => void;
  /** Resolves when the reader has taken all of it, or nothing for a second. */
  readonly flush: () => Promise<void>;
}

export interface LogOptions {
  readonly level: string;
  /** Fields of every line. */
  readonly base: object | null;
  /** To a terminal line by line; elsewhere in blocks, or after a second, and at the end. @default false */
  readonly isTerminal?: boolean;
}

const blockLength = 64 * 1024;
/** What waits for a reader that has stopped; a line has about 300 characters. */
const heldLengthMax = 8 * 1024 * 1024;
const lastWordsMs = 1000;

/**
 * A pipe is written to without waiting for its reader, since a process that waits is deaf to signals. pino's own destination
 * would occupy a thread with it, for which the process waits as it ends.
 */
export function openLog(output: Writable, { level, base, isTerminal = false }: LogOptions): LogOutput {
  let lines = '';
  let dropped = 0;
  let reported = 0;

  function pass(): void {
    if (lines !== '') output.write(lines, reportDropped);
    lines = '';
  }

  /** When the reader takes some again. */
  function reportDropped(): void {
    const count = dropped - reported;
    if (count === 0 || output.writableLength > heldLengthMax / 2) return;
    reported = dropped;
    logger.warn({ lines: count }, 'lines of the log were dropped, because the reader of the output had stopped');
  }

  function write(line: string): void {
    if (output.writableLength + lines.length + line.length > heldLengthMax) {
      dropped += 1;
      return;
    }
    lines += line;
    if (isTerminal || lines.length >= blockLength) pass();
  }

  const logger = Object.assign(pino({ level, base }, { write }), { droppedLines: () => dropped });
  if (!isTerminal) setInterval(pass, 1000).unref();
  return {
    logger,
    pass,
    async flush() {
      pass();
      if (output.writableLength === 0) return;
      const taken = new Promise((resolve) => output.write('', resolve));
      await Promise.race([taken, delay(lastWordsMs)]);
    },
  };
}
