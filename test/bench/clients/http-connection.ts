/** A minimal HTTP client that takes little CPU from the measured server: one connection, with one request at a time. */
import { connect, type Socket } from 'node:net';

export interface Exchange {
  /** Returns the next request, or undefined to close the connection. */
  readonly next: () => Buffer | undefined;
  /** The expected status line. */
  readonly statusLine: RegExp;
  readonly onResponse: () => void;
  /** The connection failed or the response is unexpected. The connection closes. */
  readonly onFailure: (error: Error) => void;
  readonly onClose: () => void;
}

export function openConnection(port: number, exchange: Exchange): Socket {
  const { next, statusLine, onResponse, onFailure, onClose } = exchange;
  const socket = connect({ port, host: '127.0.0.1', noDelay: true }, send);
  let head = '';
  let missingBytes = 0;
  socket.on('data', (chunk) => {
    if (missingBytes === 0) {
      head += chunk.toString('latin1');
      const headEnd = head.indexOf('\r\n\r\n');
      if (headEnd === -1) return;
      const contentBytes = contentLength(head, statusLine);
      if (contentBytes === undefined) {
        socket.destroy(new Error(`unexpected response: ${head}`));
        return;
      }
      missingBytes = headEnd + 4 + contentBytes - head.length;
      head = '';
    } else {
      missingBytes -= chunk.length;
    }
    if (missingBytes > 0) return;
    onResponse();
    send();
  });
  return socket.on('error', onFailure).on('close', onClose);

  function send(): void {
    const request = next();
    if (request === undefined) socket.destroy();
    else socket.write(request);
  }
}

/** Undefined if the response is not as expected. */
function contentLength(head: string, statusLine: RegExp): number | undefined {
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
  return statusLine.test(head) && length !== undefined ? Number(length) : undefined;
}
