/** Two connections made one: what comes from either goes to the other, as fast as it is taken there. */
import type { Duplex } from 'node:stream';
import { createIdleTimer } from './idle-timer.ts';

/**
 * Either side may end and still be told the rest. One that breaks off takes the other with it, as does `idleTimeoutMs`
 * without a byte in either direction; 0: without end.
 */
export function joinConnections(one: Duplex, other: Duplex, idleTimeoutMs: number): void {
  const idle = createIdleTimer(idleTimeoutMs, breakOff);

  function breakOff(): void {
    one.destroy();
    other.destroy();
  }

  function pass(from: Duplex, to: Duplex): void {
    // The client library's connections would answer an end with their own, and what is still on its way would be lost.
    from.allowHalfOpen = true;
    from.on('data', idle.touch).on('error', breakOff);
    from.once('close', () => {
      if (!from.readableEnded || !from.writableFinished) breakOff();
      if (to.closed) idle.stop();
    });
    from.pipe(to);
  }

  pass(one, other);
  pass(other, one);
  idle.touch();
}
