/** When to ask a server that is slow or down: back-off, one probe, and a deadline that does not count time in which this process was busy. */

export interface BreakerOptions {
  /** Milliseconds from any fixed point; must not go back. */
  readonly clock: () => number;
  /** From 0 up to 1. */
  readonly random: () => number;
}

/** `probe`: the server was down, and this is the one request that finds out whether it still is. */
export type Admission = 'open' | 'probe' | 'refused';

/** Every request that is not refused must report how it ended. */
export interface Breaker {
  admit(): Admission;
  /** An error is an answer too. */
  answered(): void;
  /** The connection broke, or could not be made. */
  failed(admission: Admission): void;
  /**
   * There was no answer by the deadline. One time-out of a server that was up changes nothing; a second one, a second
   * or more later and without an answer in between, is a failure. Returns true when it is.
   */
  timedOut(admission: Admission): boolean;
}

const firstBackoffMs = 100;
const backoffMsMax = 5_000;
const forgivenMs = 1_000;

/** The back-off doubles with each failure in a row, less a jitter of up to a third, so that many gateways do not return at once. */
export function createBreaker({ clock, random }: BreakerOptions): Breaker {
  let failures = 0;
  let retryAtMs = 0;
  let probing = false;
  let firstTimeoutMs: number | undefined;

  function failed(admission: Admission): void {
    firstTimeoutMs = undefined;
    if (admission === 'probe') probing = false;
    // Requests that were under way when the server went down all fail with it: that is one failure.
    else if (failures > 0) return;
    const backoffMs = Math.min(backoffMsMax, firstBackoffMs * 2 ** failures);
    failures += 1;
    retryAtMs = clock() + backoffMs * (1 - random() / 3);
  }

  return Object.freeze({
    admit(): Admission {
      if (failures === 0) return 'open';
      if (probing || clock() < retryAtMs) return 'refused';
      probing = true;
      return 'probe';
    },
    answered(): void {
      failures = 0;
      probing = false;
      firstTimeoutMs = undefined;
    },
    failed,
    timedOut(admission: Admission): boolean {
      firstTimeoutMs ??= clock();
      if (admission === 'open' && clock() - firstTimeoutMs < forgivenMs) return false;
      failed(admission);
      return true;
    },
  });
}

const deadlineParts = 4;

/**
 * Calls back after `timeoutMs`, unless the returned function is called before. The time is waited for in four parts, and
 * the event loop reads what has arrived between two of them: while it is busy no more than one part passes, so that an
 * answer which arrived meanwhile still counts.
 */
export function startDeadline(timeoutMs: number, onTimeout: () => void): () => void {
  let partsLeft = deadlineParts;
  const timer = setTimeout(
    () => {
      partsLeft -= 1;
      if (partsLeft === 0) onTimeout();
      else timer.refresh();
    },
    Math.ceil(timeoutMs / deadlineParts),
  );
  return () => clearTimeout(timer);
}
