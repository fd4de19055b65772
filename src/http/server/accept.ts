/** What a listener accepts from the network: connections within the limit, a bounded number of TLS handshakes. */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { problem } from '../problem.ts';
import { problemResponse } from './client-errors.ts';
import type { ConnectionLimit } from './connection-limit.ts';

export interface Accepted {
  /** Closes the connections whose TLS handshake has not ended. */
  readonly closeHandshakes: () => void;
}

export interface AcceptOptions {
  /** Undefined: every connection is taken. */
  readonly limit: Pick<ConnectionLimit, 'admit'> | undefined;
  readonly isTls: boolean;
}

/** Node's own listener comes first, so this takes its place. */
export function acceptWithin(server: Server, { limit, isTls }: AcceptOptions): Accepted {
  const refuse = isTls ? (socket: Socket) => socket.destroy() : createRefusals();
  const handshakes = isTls ? boundHandshakes(server) : undefined;
  const listeners = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection').on('connection', (socket: Socket) => {
    if (limit !== undefined && !limit.admit(socket)) return refuse(socket);
    handshakes?.begin(socket);
    for (const accept of listeners) accept.call(server, socket);
  });
  return { closeHandshakes: () => handshakes?.close() };
}

/** Each costs memory, and the time of the processor for a signature. */
const handshakesMax = 1000;

/** Beyond the bound the oldest is closed, since an honest client finishes its handshake within a moment. */
function boundHandshakes(server: Server) {
  const running = new Map<string, Socket>();
  // The socket of `secureConnection` is another object for the same connection.
  server.on('secureConnection', (socket: Socket) => running.delete(peerOf(socket)));
  return {
    begin(socket: Socket) {
      const peer = peerOf(socket);
      running.set(peer, socket);
      socket.once('close', () => {
        if (running.get(peer) === socket) running.delete(peer);
      });
      if (running.size <= handshakesMax) return;
      const [oldest] = running.values();
      oldest?.destroy();
    },
    close() {
      for (const socket of running.values()) socket.destroy();
    },
  };
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** How many refused connections get an answer at once; the others are closed without one. */
const refusalsMax = 100;
/**
 * Time for a refused client to send its request and read the answer: closing before would reset the connection, and the
 * answer could be lost.
 */
const refusalMs = 1000;

function createRefusals(): (socket: Socket) => void {
  let open = 0;
  return function refuse(socket) {
    if (open >= refusalsMax) return void socket.destroy();
    open += 1;
    const deadline = setTimeout(() => socket.destroy(), refusalMs).unref();
    socket.once('close', () => {
      open -= 1;
      clearTimeout(deadline);
    });
    socket.on('error', () => socket.destroy());
    socket.resume().end(problemResponse(problem('overloaded', { headers: { 'Retry-After': '1' } })));
  };
}
