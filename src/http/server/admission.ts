/** Admission of new connections: the limit of all listeners, and a bound on the concurrent TLS handshakes of each. */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { createOncePerMinute, type Logger } from '../log/log.ts';
import { problem } from '../problem.ts';
import { problemResponse } from './last-response.ts';

export interface ConnectionLimit {
  /** Counts the connection until it closes. Returns false if the limit is reached. */
  readonly admit: (socket: Socket) => boolean;
  /** Marks a connection as idle or busy. Idle ones may be closed to make room. */
  readonly setIdle: (socket: Socket, isIdle: boolean) => void;
  readonly counts: () => ConnectionCounts;
}

export interface ConnectionCounts {
  readonly open: number;
  readonly max: number;
  /** Connections rejected since the start. */
  readonly refused: number;
  /** Idle connections closed to make room since the start. */
  readonly idleClosed: number;
}

export interface ConnectionLimitOptions {
  readonly max: number;
  readonly logger: Pick<Logger, 'warn'>;
}

/** Above this share of the limit, each new connection closes the one that has been idle the longest. */
const nearLimitShare = 0.9;

export function createConnectionLimit({ max, logger }: ConnectionLimitOptions): ConnectionLimit {
  /** In order of idle time, longest first. */
  const idle = new Set<Socket>();
  const counts = { open: 0, max, refused: 0, idleClosed: 0 };
  const mayWarn = createOncePerMinute();

  function warn(): void {
    if (!mayWarn()) return;
    logger.warn(
      { ...counts },
      'connections are near CONNECTIONS_MAX: closing idle ones, and rejecting new ones beyond the limit',
    );
  }

  function makeRoom(): void {
    warn();
    const [longest] = idle;
    if (longest === undefined) return;
    idle.delete(longest);
    counts.idleClosed += 1;
    longest.destroy();
  }

  return Object.freeze({
    admit(socket: Socket) {
      if (counts.open + 1 > max * nearLimitShare) makeRoom();
      if (counts.open >= max) {
        counts.refused += 1;
        return false;
      }
      counts.open += 1;
      socket.once('close', () => {
        counts.open -= 1;
      });
      return true;
    },
    setIdle(socket: Socket, isIdle: boolean) {
      if (isIdle && !socket.destroyed) idle.add(socket);
      else idle.delete(socket);
    },
    counts: () => counts,
  });
}

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
