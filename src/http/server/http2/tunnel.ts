/** The stream of an HTTP/2 request that has switched to another protocol, such as WebSocket (RFC 8441). */
import { http2Codes } from '../../http2-codes.ts';
import { abortedError, type StreamSocket } from './messages.ts';

/**
 * From now on, the stream counts its bytes for the log, and a reset is not taken for an end (RFC 8441 section 5): one from
 * the client is an error, and the client sees one if the stream is destroyed before both sides have ended.
 */
export function openTunnel(stream: StreamSocket): StreamSocket {
  const { write, destroy } = stream;
  stream.isTunnel = true;
  stream.write = function countAndWrite(this: StreamSocket, chunk: Buffer, ...rest: unknown[]): boolean {
    this.bytesWritten += chunk.length;
    return (write as (...args: unknown[]) => boolean).call(this, chunk, ...rest);
  } as typeof write;
  stream.destroy = function reset(this: StreamSocket, error?: Error): StreamSocket {
    if (!this.destroyed && !this.closed) this.close(http2Codes.CANCEL);
    // Otherwise it would look as if both sides had ended, because Node ends an aborted stream.
    return destroy.call(this, error ?? (this.aborted ? abortedError() : undefined)) as StreamSocket;
  };
  stream.on('data', count);
  // Only the next owner reads.
  stream.pause();
  return stream;
}

function count(this: StreamSocket, chunk: Buffer): void {
  this.bytesRead += chunk.length;
}
