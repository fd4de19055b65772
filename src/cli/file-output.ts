/** Writes standard output to a file without losing data: waits while the disk is full, and resumes a cut-off line. */
import { fstatSync, writeSync } from 'node:fs';
import { Writable } from 'node:stream';

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
