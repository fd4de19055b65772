/** Admission of new connections: enforces the connection limit and bounds the number of concurrent TLS handshakes. */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { problem } from '../problem.ts';
import { problemResponse } from './client-errors.ts';
import type { ConnectionLimit } from './connection-limit.ts';

/**
 * Replaces Node's `connection` listener, which would otherwise run first, and calls it for admitted connections. Without
 * `limit`, all are admitted. The returned function closes the connections that are still in a TLS handshake.
 */
export function limitAdmission(
  server: Server,
  limit: Pick<ConnectionLimit, 'admit'> | undefined,
  isTls: boolean,
): () => void {
  const reject = isTls ? (socket: Socket) => socket.destroy() : createRejecter();
  const handshakes = isTls ? boundHandshakes(server) : undefined;
  const listeners = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection').on('connection', (socket: Socket) => {
    if (limit !== undefined && !limit.admit(socket)) return reject(socket);
    handshakes?.begin(socket);
    for (const accept of listeners) accept.call(server, socket);
  });
  return () => handshakes?.close();
}

/** Each handshake costs memory, and CPU time for a signature. */
const handshakesMax = 1000;

/** Closes the oldest handshake beyond the bound, because an honest client completes its handshake quickly. */
function boundHandshakes(server: Server) {
  const running = new Map<string, Socket>();
  // `secureConnection` passes a different socket object for the same connection, so they are matched by peer.
  server.on('secureConnection', (socket: Socket) => running.delete(peerOf(socket)));
  return {
    begin(socket: Socket) {
      const peer = peerOf(socket);
      running.set(peer, socket);
      socket.once('close', () => running.delete(peer));
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

/** The number of rejected connections that may receive a response concurrently. Further ones are closed without one. */
const rejectionsMax = 100;
/**
 * Time for a rejected client to send its request and read the response. Closing earlier would reset the connection, and
 * the response could be lost.
 */
const rejectionMs = 1000;

function createRejecter(): (socket: Socket) => void {
  let open = 0;
  return function reject(socket) {
    if (open >= rejectionsMax) return void socket.destroy();
    open += 1;
    const deadline = setTimeout(() => socket.destroy(), rejectionMs).unref();
    socket.once('close', () => {
      open -= 1;
      clearTimeout(deadline);
    });
    socket.on('error', () => socket.destroy());
    socket.resume().end(problemResponse(problem('overloaded', { headers: { 'Retry-After': '1' } })));
  };
}
