/** Whether a service is worth asking: after a failure nobody is, then one at a time, until one has an answer. */

export interface BreakerOptions {
  /** Milliseconds. */
  readonly clock: () => number;
  /** From 0 up to 1. */
  readonly random: () => number;
}

/** `probe`: the service was down, and this is the one request that finds out whether it still is. */
export type Admission = 'open' | 'probe' | 'refused';

export interface Breaker {
  /** Every request that is not refused must report how it ended. */
  admit(): Admission;
  succeeded(): void;
  failed(admission: Admission): void;
}

const firstBackoffMs = 100;
const backoffMsMax = 5_000;

/** The back-off doubles with each failure in a row, less a jitter of up to a third: many gateways must not return as one. */
export function createBreaker({ clock, random }: BreakerOptions): Breaker {
  let failures = 0;
  let retryAtMs = 0;
  let probing = false;
  return Object.freeze({
    admit(): Admission {
      if (failures === 0) return 'open';
      if (probing || clock() < retryAtMs) return 'refused';
      probing = true;
      return 'probe';
    },
    succeeded(): void {
      failures = 0;
      probing = false;
    },
    failed(admission: Admission): void {
      if (admission === 'probe') probing = false;
      // Requests that were under way when the service went down all fail with it: that is one failure.
      else if (failures > 0) return;
      const backoffMs = Math.min(backoffMsMax, firstBackoffMs * 2 ** failures);
      failures += 1;
      retryAtMs = clock() + backoffMs * (1 - random() / 3);
    },
  });
}
