/** A circuit breaker with exponential back-off and a single probe, and a deadline that tolerates a busy event loop. */

export interface BreakerOptions {
  /** A monotonic clock, in milliseconds. */
  readonly clock: () => number;
  /** Returns a number from 0 up to, but not including, 1. */
  readonly random: () => number;
}

/** `probe` admits a single request to find out whether a server that failed has recovered. */
export type Admission = 'admitted' | 'probe' | 'rejected';

/** Callers must report the outcome of every request that was not rejected. */
export interface Breaker {
  admit(): Admission;
  /** The server responded, even if only with an error. */
  responded(): void;
  /** The connection broke or could not be established. */
  failed(admission: Admission): void;
  /**
   * The server did not respond by the deadline. A time-out counts as a failure when it follows an earlier one by at
   * least a second, with no response in between, or when the request was a probe. Returns true when it counts.
   */
  timedOut(admission: Admission): boolean;
}

const firstBackoffMs = 100;
const backoffMsMax = 5_000;
const toleratedMs = 1_000;

/**
 * The back-off doubles with each consecutive failure. It is shortened by a jitter of up to a third, so that many
 * gateways do not retry simultaneously.
 */
export function createBreaker({ clock, random }: BreakerOptions): Breaker {
  let failures = 0;
  let retryAtMs = 0;
  let probing = false;
  let firstTimeoutMs: number | undefined;

  function failed(admission: Admission): void {
    firstTimeoutMs = undefined;
    if (admission === 'probe') probing = false;
    // All requests in flight fail together when the server goes down. They count as one failure.
    else if (failures > 0) return;
    const backoffMs = Math.min(backoffMsMax, firstBackoffMs * 2 ** failures);
    failures += 1;
    retryAtMs = clock() + backoffMs * (1 - random() / 3);
  }

  return Object.freeze({
    admit(): Admission {
      if (failures === 0) return 'admitted';
      if (probing || clock() < retryAtMs) return 'rejected';
      probing = true;
      return 'probe';
    },
    responded(): void {
      failures = 0;
      probing = false;
      firstTimeoutMs = undefined;
    },
    failed,
    timedOut(admission: Admission): boolean {
      firstTimeoutMs ??= clock();
      if (admission === 'admitted' && clock() - firstTimeoutMs < toleratedMs) return false;
      failed(admission);
      return true;
    },
  });
}

const deadlineParts = 4;

/**
 * Calls `onTimeout` after `timeoutMs` unless the returned function is called first. The wait is split into four
 * consecutive timers, and the event loop reads sockets between them. However long the loop is blocked, only one of the
 * timers can expire meanwhile, so a response that arrived during that time is still read before the deadline.
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
