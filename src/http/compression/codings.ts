/** The content codings: gzip, Brotli and Zstandard, with the levels for bodies of each kind. */
import type { Transform } from 'node:stream';
import { promisify } from 'node:util';
import * as zlib from 'node:zlib';

/**
 * In the server's order of preference. For JSON of 8 to 24 KiB, zstd takes half of the CPU time of the others, and its
 * result is smaller than gzip's. Brotli's is the smallest.
 */
export const codings = ['zstd', 'br', 'gzip'] as const;

export type Coding = (typeof codings)[number];

const { constants } = zlib;

interface Coder {
  /** Compresses a small body at once, which takes less time than a task of the thread pool. */
  readonly compressNow: (body: string | Buffer) => Buffer;
  /** Compresses a body that is stored and sent many times. */
  readonly compressWell: (body: string | Buffer) => Promise<Buffer>;
  readonly createStream: () => FlushableStream;
  /** The operation with which a stream sends all that it has read. */
  readonly flushes: number;
}

export type FlushableStream = Transform & {
  readonly bytesWritten: number;
  readonly flush: (kind?: number, done?: () => void) => void;
};

/** The window of a stream, as a power of two: the 4 or 2 MiB by default would be kept for each open stream. */
const windowBits = 17;

export const coders: Readonly<Record<Coding, Coder>> = {
  zstd: {
    compressNow: (body) => zlib.zstdCompressSync(body),
    compressWell: (body) => promisify(zlib.zstdCompress)(body, { params: { [constants.ZSTD_c_compressionLevel]: 12 } }),
    createStream: () => zlib.createZstdCompress({ params: { [constants.ZSTD_c_windowLog]: windowBits } }),
    flushes: constants.ZSTD_e_flush,
  },
  br: {
    compressNow: (body) => zlib.brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }),
    compressWell: (body) => promisify(zlib.brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
    createStream: () =>
      zlib.createBrotliCompress({
        params: { [constants.BROTLI_PARAM_QUALITY]: 4, [constants.BROTLI_PARAM_LGWIN]: windowBits },
      }),
    flushes: constants.BROTLI_OPERATION_FLUSH,
  },
  gzip: {
    compressNow: (body) => zlib.gzipSync(body),
    compressWell: (body) => promisify(zlib.gzip)(body, { level: 9 }),
    createStream: () => zlib.createGzip(),
    flushes: constants.Z_SYNC_FLUSH,
  },
};
