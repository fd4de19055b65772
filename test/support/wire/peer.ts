/** One side of a connection without HTTP, or before it: it keeps all that comes. */
import { connect, type Socket } from 'node:net';

export interface Peer {
  readonly socket: Socket;
  /** All that has come, as Latin-1. */
  readonly received: () => string;
  /** Resolves when `text` has come, and rejects when the connection ends before. */
  readonly until: (text: string) => Promise<void>;
  /** Resolves with all that came when the connection has ended in any way. */
  readonly closed: Promise<string>;
}

export function peerOf(socket: Socket): Peer {
  const waiting = new Set<() => void>();
  let received = '';
  const notify = () => {
    for (const look of waiting) look();
  };
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1');
    notify();
  });
  // The error says no more than the missing end of what was received.
  socket.on('error', () => socket.destroy());
  const closed = new Promise<string>((resolve) => socket.once('close', () => resolve(received)));
  socket.once('close', notify);
  return {
    socket,
    received: () => received,
    until: (text) =>
      new Promise((resolve, reject) => {
        const look = () => {
          if (received.includes(text)) resolve();
          else if (socket.destroyed) reject(new Error(`the connection ended after ${JSON.stringify(received)}`));
          else return;
          waiting.delete(look);
        };
        waiting.add(look);
        look();
      }),
    closed,
  };
}

export function speak(port: number, text: string): Peer {
  const socket = connect(port, '127.0.0.1');
  socket.write(text, 'latin1');
  return peerOf(socket);
}

/** The request of a client that wants to switch, as bytes. */
export function askToSwitch(path: string, headers: readonly string[] = [], protocol = 'websocket'): string {
  const lines = [`GET ${path} HTTP/1.1`, 'Host: front.example', 'Connection: Upgrade', `Upgrade: ${protocol}`];
  return [...lines, ...headers, '', ''].join('\r\n');
}
