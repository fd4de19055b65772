/** The log on standard output: in blocks, bounded while its reader takes nothing, and counted where it cannot be written. */
import type { Writable } from 'node:stream';
import { type Logger, pino } from 'pino';
import { untilTaken } from './terminal.ts';

export interface LogOutput {
  readonly logger: Logger & {
    readonly droppedLines: () => number;
    readonly infoPlain: (fields: object, message?: string) => void;
    readonly writeLine: (line: string) => void;
  };
  /** Hands over what has been collected. */
  readonly pass: () => void;
  /** Resolves when the reader has taken all of it, or after a second. */
  readonly flush: () => Promise<void>;
}

export interface LogOptions {
  readonly level: string;
  /** Fields of every line. */
  readonly base: object | null;
  /** To a terminal line by line; elsewhere in blocks, or after a second, and at the end. @default false */
  readonly isTerminal?: boolean;
}

const blockBytes = 64 * 1024;
/** What waits for a reader that has stopped, or for room on a disk; a line has about 400 bytes. */
const heldBytesMax = 8 * 1024 * 1024;
/** The most bytes that a UTF-16 unit can take in UTF-8. */
const bytesPerUnit = 3;

/**
 * A pipe is written to without waiting for its reader, since a process that waits is deaf to signals. pino's own destination
 * would occupy a thread with it, for which the process waits as it ends.
 */
export function openLog(output: Writable, { level, base, isTerminal = false }: LogOptions): LogOutput {
  // Bytes, since a string of lines would be made of thousands of pieces, which each garbage collection looks at again.
  const block = Buffer.allocUnsafeSlow(blockBytes);
  let filled = 0;
  let linesInBlock = 0;
  let dropped = 0;
  let reported = 0;

  function pass(): void {
    if (filled > 0) writeOut(Buffer.from(block.subarray(0, filled)), linesInBlock);
    filled = 0;
    linesInBlock = 0;
  }

  function writeOut(text: Buffer | string, lines: number): void {
    output.write(text, (error) => {
      if (error) dropped += lines;
      else reportDropped();
    });
  }

  /** Logs how many lines were dropped, once the reader takes output again. */
  function reportDropped(): void {
    const count = dropped - reported;
    if (count === 0 || output.writableLength > heldBytesMax / 2) return;
    reported = dropped;
    logger.warn({ lines: count }, 'lines of the log were dropped, because the output did not take them');
  }

  function write(line: string): void {
    const bytesMax = line.length * bytesPerUnit;
    if (output.writableLength + filled + bytesMax > heldBytesMax) {
      dropped += 1;
      return;
    }
    if (filled + bytesMax > blockBytes) pass();
    if (bytesMax > blockBytes) writeOut(line, 1);
    else {
      filled += block.write(line, filled);
      linesInBlock += 1;
    }
    if (isTerminal) pass();
  }

  const baseFields = base === null ? '' : `${JSON.stringify(base).slice(1, -1)},`;

  /**
   * Writes the line that pino would write of one or more fields. pino looks at each field by itself, for its
   * serializers, and takes twice as long.
   */
  function infoPlain(fields: object, message = ''): void {
    const rest = JSON.stringify(fields).slice(1, -1);
    write(`{"level":30,"time":${Date.now()},${baseFields}${rest},"msg":${JSON.stringify(message)}}\n`);
  }

  const logger = Object.assign(pino({ level, base }, { write }), {
    droppedLines: () => dropped,
    infoPlain,
    writeLine: (line: string) => write(`${line}\n`),
  });
  if (!isTerminal) setInterval(pass, 1000).unref();
  return {
    logger,
    pass,
    async flush() {
      pass();
      await untilTaken(output);
    },
  };
}
