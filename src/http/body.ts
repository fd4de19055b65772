/** Request bodies of any type: whether there is one, whether it has been read, and a queue for its bytes. */
import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import { type Problem, problem } from './problem.ts';
import { announcesBody } from './server/node-fixes.ts';

/** Returns true if the head announces a body. Throws a problem if it already shows that it must be rejected. */
export function hasBody(req: IncomingMessage, bytesMax: number): boolean {
  if (!announcesBody(req)) return false;
  const { 'content-length': length, 'transfer-encoding': coding } = req.headers;
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') throw unknownCoding();
  if (Number(length) > bytesMax) throw bodyTooLarge(bytesMax);
  return true;
}

const restoredKey = Symbol('restored');

interface Carrier {
  [restoredKey]?: true;
}

/** False when the host application or a stage has read from the body and has not put the bytes back. */
export function isBodyUnread(req: IncomingMessage): boolean {
  return !req.readableDidRead || (req as Carrier)[restoredKey] === true;
}

/** Call it after reading ahead and putting all bytes back (`unshift`): the body then counts as unread. */
export function markBodyRestored(req: IncomingMessage): void {
  (req as Carrier)[restoredKey] = true;
}

interface WithRawBody {
  readonly rawBody?: unknown;
}

/**
 * Returns the body that a body parser of the host application has already read. koa-bodyparser and @koa/bodyparser keep
 * it in `rawBody` of Koa's request, Express applications in `rawBody` of Node's. The parser has decompressed and
 * decoded it, so it is usable only if it still equals the bytes that were sent: otherwise this throws `body-consumed`.
 * Throws `body-too-large` beyond `bytesMax`.
 */
export function bodyFromHost(ctx: Context, bytesMax: number): Uint8Array | string {
  const { rawBody = (ctx.req as WithRawBody).rawBody } = ctx.request as WithRawBody;
  const { 'content-length': length, 'content-encoding': encoding } = ctx.req.headers;
  if (!(typeof rawBody === 'string' || rawBody instanceof Uint8Array)) throw problem('body-consumed');
  const bytes = Buffer.byteLength(rawBody);
  if (encoding !== undefined || (length !== undefined && Number(length) !== bytes)) throw problem('body-consumed');
  if (bytes > bytesMax) throw bodyTooLarge(bytesMax);
  return rawBody;
}

export function bodyTooLarge(bytesMax: number): Problem {
  return problem('body-too-large', {
    detail: `The body may have at most ${bytesMax} bytes.`,
    headers: { Connection: 'close' },
  });
}

/**
 * Reads the whole body. Rejects with `body-too-large` beyond `bytesMax`, and with ECONNRESET if the client leaves.
 *
 * Avoids `for await`, which destroys the request and with it the connection when it stops early. If the body grows too
 * large, the rest is read and discarded: closing a connection with unread bytes resets it, and the reset can overtake
 * the response.
 */
export function readBody(req: IncomingMessage, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const queue = new ByteQueue();
    const stop = () => {
      req.removeListener('data', onData).removeListener('end', onEnd);
      req.removeListener('error', onError).removeListener('close', onClose);
    };
    const onData = (chunk: Buffer) => {
      queue.add(chunk);
      if (queue.length() <= bytesMax) return;
      stop();
      req.resume();
      reject(bodyTooLarge(bytesMax));
    };
    const onEnd = () => {
      stop();
      resolve(Buffer.concat(queue.take()));
    };
    const onError = (error: Error) => {
      stop();
      reject(error);
    };
    const onClose = () =>
      onError(Object.assign(new Error('the client disconnected before the end of its body'), { code: 'ECONNRESET' }));
    // A body that was read ahead and put back may have ended already. A destroyed request emits no further events.
    if (req.readableEnded) onEnd();
    else if (req.destroyed) onClose();
    else req.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose);
  });
}

/** Node decodes only `chunked`: any other coding, such as gzip, would reach the reader still encoded. */
function unknownCoding(): Problem {
  return problem('bad-request', {
    detail: 'The only supported transfer coding is chunked.',
    headers: { Connection: 'close' },
  });
}

/** The first chunks are kept without copying. Most bodies do not have more. */
const uncopiedChunksMax = 16;
/** Later chunks smaller than this are copied into blocks. */
const smallChunkBytes = 1024;
const blockBytes = 4096;

/** A byte queue that merges tiny chunks: kept separately, each would cost 200 bytes of overhead. */
export class ByteQueue {
  private chunks: Buffer[] = [];
  private bytes = 0;
  private block: Buffer | undefined = undefined;
  private filled = 0;

  add(chunk: Buffer): void {
    this.bytes += chunk.length;
    if (this.chunks.length >= uncopiedChunksMax && chunk.length < smallChunkBytes) {
      this.copy(chunk);
      return;
    }
    this.endBlock();
    this.chunks.push(chunk);
  }

  /** The number of bytes in the queue. */
  length(): number {
    return this.bytes;
  }

  /** Removes all bytes and returns them in order. */
  take(): Buffer[] {
    this.endBlock();
    const taken = this.chunks;
    this.chunks = [];
    this.bytes = 0;
    return taken;
  }

  private copy(chunk: Buffer): void {
    if (this.block === undefined || this.filled + chunk.length > blockBytes) {
      this.endBlock();
      this.block = Buffer.allocUnsafe(blockBytes);
    }
    this.block.set(chunk, this.filled);
    this.filled += chunk.length;
  }

  private endBlock(): void {
    if (this.block !== undefined) this.chunks.push(this.block.subarray(0, this.filled));
    this.block = undefined;
    this.filled = 0;
  }
}
