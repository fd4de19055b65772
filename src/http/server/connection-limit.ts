/** The connection limit of all listeners: closes idle connections near the limit and rejects new ones beyond it. */
import type { Socket } from 'node:net';
import { createOncePerMinute, type Logger } from '../log/log.ts';

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
