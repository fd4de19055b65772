/** One end of a raw connection, which records everything it receives. */
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';

export interface Peer<End extends Duplex = Socket> {
  readonly socket: End;
  /** Everything received so far, as Latin-1. */
  readonly received: () => string;
  /** Resolves when `text` has been received. Rejects if the connection closes before. */
  readonly until: (text: string) => Promise<void>;
  /** Resolves with everything received, however the connection ends. */
  readonly closed: Promise<string>;
}

export function peerOf<End extends Duplex = Socket>(socket: End): Peer<End> {
  const waiting = new Set<() => void>();
  let received = '';
  const notify = () => {
    for (const check of waiting) check();
  };
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1');
    notify();
  });
  // The received data already shows where the connection broke.
  socket.on('error', () => socket.destroy());
  const closed = new Promise<string>((resolve) => socket.once('close', () => resolve(received)));
  socket.once('close', notify);
  return {
    socket,
    received: () => received,
    until: (text) =>
      new Promise((resolve, reject) => {
        const check = () => {
          if (received.includes(text)) resolve();
          else if (socket.destroyed) reject(new Error(`the connection ended after ${JSON.stringify(received)}`));
          else return;
          waiting.delete(check);
        };
        waiting.add(check);
        check();
      }),
    closed,
  };
}

export function speak(port: number, text: string): Peer {
  const socket = connect(port, '127.0.0.1');
  socket.write(text, 'latin1');
  return peerOf(socket);
}

/** The request of a client that wants to switch protocols. */
export function upgradeRequest(path: string, headers: readonly string[] = [], protocol = 'websocket'): string {
  const lines = [`GET ${path} HTTP/1.1`, 'Host: front.example', 'Connection: Upgrade', `Upgrade: ${protocol}`];
  return [...lines, ...headers, '', ''].join('\r\n');
}
