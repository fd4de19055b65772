/** A copy of a body that somebody else reads, taken as it passes. */
import { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';

/**
 * Tells the whole body once it was read, or undefined when it has more than `bytesMax` bytes, broke off or was not read.
 * It neither starts nor slows the reading: a listener for `data` that is put on by way of EventEmitter is not counted as
 * a reader. The bytes go to memory of our own, since a client that sends them one by one would have us keep an object
 * for each.
 */
export function copyBody(req: IncomingMessage, bytesMax: number, tell: (body: Uint8Array | undefined) => void): void {
  let copy: Buffer | undefined;
  let bytes = 0;

  function end(body: Uint8Array | undefined): void {
    req.removeListener('data', onData);
    req.removeListener('end', onEnd);
    req.removeListener('close', onClose);
    copy = undefined;
    tell(body);
  }

  function onData(chunk: Buffer): void {
    copy ??= Buffer.allocUnsafe(sizeOf(req, bytesMax));
    if (bytes + chunk.length > copy.length) {
      end(undefined);
      return;
    }
    copy.set(chunk, bytes);
    bytes += chunk.length;
  }

  /** What nobody reads Node drops after the answer, and the listeners with it. */
  function onEnd(): void {
    const isWhole = req.listeners('data').includes(onData);
    end(isWhole ? (copy?.subarray(0, bytes) ?? Buffer.alloc(0)) : undefined);
  }

  function onClose(): void {
    end(undefined);
  }

  EventEmitter.prototype.on.call(req, 'data', onData);
  req.on('end', onEnd);
  req.on('close', onClose);
}

function sizeOf({ headers }: IncomingMessage, bytesMax: number): number {
  const declared = headers['content-length'];
  return declared === undefined ? bytesMax : Math.min(bytesMax, Number(declared));
}
