/** A bound on the connections of all listeners together: near it idle ones make room, beyond it new ones are refused. */
import type { Socket } from 'node:net';
import { createOncePerMinute, type Logger } from '../log/log.ts';

export interface ConnectionLimit {
  /** Takes a place until the connection closes. False: there is none. */
  readonly admit: (socket: Socket) => boolean;
  /** An idle connection may be closed to make room. */
  readonly setIdle: (socket: Socket, isIdle: boolean) => void;
  readonly counts: () => ConnectionCounts;
}

export interface ConnectionCounts {
  readonly open: number;
  readonly max: number;
  /** Since the start. */
  readonly refused: number;
  /** Since the start, to make room. */
  readonly idleClosed: number;
}

export interface ConnectionLimitOptions {
  readonly max: number;
  readonly logger: Pick<Logger, 'warn'>;
}

/** From this part of the places on, each new connection closes the one that has been idle for longest. */
const nearShare = 0.9;

export function createConnectionLimit({ max, logger }: ConnectionLimitOptions): ConnectionLimit {
  /** The longest idle first. */
  const idle = new Set<Socket>();
  const counts = { open: 0, max, refused: 0, idleClosed: 0 };
  const mayWarn = createOncePerMinute();

  function warn(): void {
    if (!mayWarn()) return;
    logger.warn(
      { ...counts },
      'connections are near CONNECTIONS_MAX: idle ones are closed, beyond it new ones refused',
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
      if (counts.open + 1 > max * nearShare) makeRoom();
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
