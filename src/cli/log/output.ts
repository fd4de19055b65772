/** Writes the log to standard output in blocks. Bounds the lines that wait for a slow reader or a full disk. */
import { fstatSync, writeSync } from 'node:fs';
import { Writable } from 'node:stream';
import { type Logger, pino } from 'pino';
import { untilDrained } from '../terminal.ts';
import type { FormatLine } from './lines.ts';

export interface LogOutput {
  readonly logger: Logger & {
    readonly droppedLines: () => number;
    readonly infoPlain: (fields: object, message?: string) => void;
    readonly writeLine: (line: string) => void;
  };
  /** Writes the lines that have been collected. */
  readonly writeBlock: () => void;
  /** Writes the collected lines. Resolves when the reader has taken all of them, or after a second. */
  readonly flush: () => Promise<void>;
}

/** A stream, or what takes lines in its place. */
export interface LogDestination {
  /** The number of bytes that wait for the reader. */
  readonly writableLength: number;
  /** Calls `done` when the reader has taken the lines, or with an error if it never will. */
  readonly write: (lines: Buffer | string, done: (error?: Error | null) => void) => unknown;
}

export interface LogOptions {
  readonly level: string;
  /** Fields that every line contains. */
  readonly base: object | null;
  /** Writes each line immediately, not in blocks once a second or when they are full. @default false */
  readonly isTerminal?: boolean;
  /** Converts each line, except those of `writeLine`. @default JSON */
  readonly formatLine?: FormatLine | undefined;
  /** Bounds the data that waits for a stalled reader or for free disk space. @default 8 MiB */
  readonly pendingBytesMax?: number;
}

const blockBytes = 64 * 1024;
/** A line has about 400 bytes. */
export const pendingBytesMaxDefault = 8 * 1024 * 1024;
/** The maximum number of UTF-8 bytes for a UTF-16 code unit. */
const bytesPerUnit = 3;

/**
 * Never blocks on a pipe whose reader is slow, because a blocked process cannot handle signals. pino's own destination
 * would block a thread instead, and the process could not exit before that thread.
 */
export function openLog(output: LogDestination, options: LogOptions): LogOutput {
  const { level, base, isTerminal = false, formatLine, pendingBytesMax = pendingBytesMaxDefault } = options;
  // A buffer rather than a string: a concatenated string would consist of thousands of pieces, which the garbage
  // collector would visit again and again.
  const block = Buffer.allocUnsafeSlow(blockBytes);
  let filled = 0;
  let linesInBlock = 0;
  let dropped = 0;
  let reported = 0;

  function writeBlock(): void {
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

  /** Logs how many lines were dropped, as soon as the output accepts data again. */
  function reportDropped(): void {
    const count = dropped - reported;
    if (count === 0 || output.writableLength > pendingBytesMax / 2) return;
    reported = dropped;
    logger.warn({ lines: count }, 'log lines were dropped because the output was blocked or full');
  }

  function write(line: string): void {
    const bytesMax = line.length * bytesPerUnit;
    if (output.writableLength + filled + bytesMax > pendingBytesMax) {
      dropped += 1;
      return;
    }
    if (filled + bytesMax > blockBytes) writeBlock();
    if (bytesMax > blockBytes) writeOut(line, 1);
    else {
      filled += block.write(line, filled);
      linesInBlock += 1;
    }
    if (isTerminal) writeBlock();
  }

  const writeJson = formatLine === undefined ? write : (json: string) => write(formatLine(json));
  const baseFields = base === null ? '' : `${JSON.stringify(base).slice(1, -1)},`;

  /** Writes the same line as pino's `info`, for at least one field, without looking for a serializer of each field. */
  function infoPlain(fields: object, message = ''): void {
    const rest = JSON.stringify(fields).slice(1, -1);
    writeJson(`{"level":30,"time":${Date.now()},${baseFields}${rest},"msg":${JSON.stringify(message)}}\n`);
  }

  // pino's default would append the message of a cause, which ours usually contain already, and leave out its code.
  const serializers = { err: pino.stdSerializers.errWithCause };
  const logger = Object.assign(pino({ level, base, serializers }, { write: writeJson }), {
    droppedLines: () => dropped,
    infoPlain,
    writeLine: (line: string) => write(`${line}\n`),
  });
  if (!isTerminal) setInterval(writeBlock, 1000).unref();
  return {
    logger,
    writeBlock,
    async flush() {
      writeBlock();
      await untilDrained(output);
    },
  };
}

/**
 * Returns `output` itself unless it is a file. Node's own stream for files silently drops the rest of a chunk that was
 * only partly written.
 */
export function losslessOutput(output: Writable & { readonly fd: number }): Writable {
  const { fd } = output;
  if (!fstatSync(fd).isFile()) return output;
  return createFileOutput({ write: (bytes) => writeSync(fd, bytes), report: (error) => output.emit('error', error) });
}

export interface FileOutputOptions {
  /** Returns the number of bytes written. Throws when none could be written. */
  readonly write: (bytes: Buffer) => number;
  readonly report: (error: unknown) => void;
  /** How long to wait before trying again. @default 1_000 */
  readonly retryMs?: number;
}

/** Waits while the disk is full, and resumes a line that was cut off. */
export function createFileOutput({ write, report, retryMs = 1000 }: FileOutputOptions): Writable {
  function writeAll(bytes: Buffer, done: () => void): void {
    let rest = bytes;
    try {
      while (rest.length > 0) rest = rest.subarray(write(rest));
    } catch (error) {
      report(error);
      setTimeout(writeAll, retryMs, rest, done).unref();
      return;
    }
    done();
  }
  return new Writable({ write: (bytes: Buffer, _encoding, done) => writeAll(bytes, done) });
}
