/** Distinguishes HTTP/2 from HTTP/1.1 by the first bytes of a connection, on ports without TLS. */
import type { Socket } from 'node:net';
import { problem } from '../../problem.ts';
import { endWithProblem } from '../last-response.ts';

export interface FirstBytes {
  /** Calls `accept` or `acceptHttp2` when it is clear which one. The bytes stay in the socket, for its next reader. */
  readonly read: (socket: Socket, accept: () => void) => void;
  /** Stops waiting for the first bytes of a connection. Returns false if it does not wait for them. */
  readonly stop: (socket: Socket) => boolean;
  /** Closes the connections that have not sent enough. */
  readonly close: () => void;
}

/** The preface is `PRI * HTTP/2.0` and more (RFC 9113 section 3.4). No method of HTTP/1.1 begins like this. */
const prefaceStart = Buffer.from('PRI ');

/** A client that sends nothing for `timeoutMs` gets 408, as from Node's server. */
export function createFirstBytes(acceptHttp2: (socket: Socket) => void, timeoutMs: number): FirstBytes {
  /** The connections that are waiting, and how to stop each. */
  const waiting = new Map<Socket, () => void>();

  function read(socket: Socket, accept: () => void): void {
    let first: Buffer | undefined;
    const deadline = setTimeout(() => {
      stop();
      endWithProblem(socket, problem('request-timeout'));
    }, timeoutMs);

    function stop(): void {
      clearTimeout(deadline);
      waiting.delete(socket);
      socket.off('data', onData).off('end', leave).off('close', stop);
    }

    /** It has not sent a request. */
    function leave(): void {
      socket.destroy();
    }

    function onData(chunk: Buffer): void {
      first = first === undefined ? chunk : Buffer.concat([first, chunk]);
      const isPreface = beginsLikePreface(first);
      if (isPreface && first.length < prefaceStart.length) return;
      stop();
      putBack(socket, first, () => (isPreface ? acceptHttp2(socket) : accept()));
      // A session of HTTP/2 reads from the socket itself.
      if (!isPreface) socket.resume();
    }

    waiting.set(socket, stop);
    socket.on('error', destroy).on('data', onData).on('end', leave).on('close', stop);
  }

  return Object.freeze({
    read,
    stop(socket: Socket) {
      const stop = waiting.get(socket);
      stop?.();
      return stop !== undefined;
    },
    close() {
      for (const socket of waiting.keys()) socket.destroy();
    },
  });
}

function beginsLikePreface(bytes: Buffer): boolean {
  const length = Math.min(bytes.length, prefaceStart.length);
  return prefaceStart.compare(bytes, 0, length, 0, length) === 0;
}

/** Gives the bytes to the next reader of the socket. */
function putBack(socket: Socket, bytes: Buffer, handOver: () => void): void {
  socket.pause().unshift(bytes);
  handOver();
  socket.off('error', destroy);
}

function destroy(this: Socket): void {
  this.destroy();
}
