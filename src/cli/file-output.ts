/** Standard output that is a file: what its full disk does not take waits, and a line goes on where it was cut. */
import { fstatSync, writeSync } from 'node:fs';
import { Writable } from 'node:stream';

/** The stream itself where it is no file. Node's own for files drops the rest of what fits in only partly, without an error. */
export function wholeOutput(output: Writable & { readonly fd: number }): Writable {
  const { fd } = output;
  if (!fstatSync(fd).isFile()) return output;
  return createFileOutput({ write: (bytes) => writeSync(fd, bytes), report: (error) => output.emit('error', error) });
}

export interface FileOutputOptions {
  /** Gives the number of bytes that it wrote. Throws when it wrote none. */
  readonly write: (bytes: Buffer) => number;
  readonly report: (error: unknown) => void;
  /** How often it looks for room. @default 1 s */
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
