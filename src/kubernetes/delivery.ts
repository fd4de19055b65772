/** Delivers a burst of changes as one, never two at once. */
import { createQuietTimer } from '#config';

export interface Delivery {
  readonly schedule: () => void;
  /** Drops what is scheduled, and waits for a delivery that has begun. */
  readonly close: () => Promise<void>;
}

/** After the last change. If changes do not pause, they are delivered after ten times as long. */
const quietMs = 25;

/** `deliver` must not reject. */
export function createDelivery(deliver: () => Promise<void>): Delivery {
  const timer = createQuietTimer(start, quietMs);
  let running: Promise<void> | undefined;
  let isDue = false;

  function start(): void {
    isDue = running !== undefined;
    running ??= deliver().finally(() => {
      running = undefined;
      if (isDue) start();
    });
  }

  return Object.freeze({
    schedule: timer.schedule,
    async close() {
      timer.cancel();
      isDue = false;
      await running;
    },
  });
}
