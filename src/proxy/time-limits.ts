/** Limits on slow clients and services: a timer for pauses, and a check of a body's pace. */

export interface IdleTimer {
  /** Restarts the timer. The first call starts it. */
  readonly touch: () => void;
  readonly stop: () => void;
}

/** A `timeoutMs` of 0 disables the timer. */
export function createIdleTimer(timeoutMs: number, onIdle: () => void): IdleTimer {
  if (timeoutMs === 0) return disabled;
  let timer: NodeJS.Timeout | undefined;
  return {
    touch() {
      if (timer === undefined) timer = setTimeout(onIdle, timeoutMs);
      else timer.refresh();
    },
    stop() {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}

const disabled: IdleTimer = Object.freeze({ touch() {}, stop() {} });

/** Checks how fast one side reads or writes a body while the other side waits for it. */
export interface PaceCheck {
  readonly count: (bytes: number) => void;
  /** Call it while the other side is the slow one. That time does not count. */
  readonly pause: () => void;
  /** The first call starts the check. */
  readonly resume: () => void;
  readonly stop: () => void;
}

export interface PaceOptions {
  /** @default 10_000 */
  readonly periodMs?: number | undefined;
  /** Returns the minimum in bytes per second. Called at the end of each period. */
  readonly paceMin: () => number;
  /** Called after each period in which the body was slower, unless the other side was the slow one most of the time. */
  readonly onSlow: () => void;
  /** Returns the time in milliseconds. @default performance.now */
  readonly clock?: () => number;
}

/** Stops by itself after a period of pause. */
export function createPaceCheck(options: PaceOptions): PaceCheck {
  const { periodMs = 10_000, paceMin, onSlow, clock = () => performance.now() } = options;
  let timer: NodeJS.Timeout | undefined;
  let bytes = 0;
  let startedAtMs = 0;
  let pausedMs = 0;
  let pausedAtMs: number | undefined;

  function start(): void {
    startedAtMs = clock();
    pausedMs = 0;
    bytes = 0;
  }

  function check(): void {
    const nowMs = clock();
    endPause(nowMs);
    const activeMs = nowMs - startedAtMs - pausedMs;
    const bytesMin = (paceMin() * activeMs) / 1000;
    const isSlow = activeMs > pausedMs && bytes < bytesMin;
    start();
    if (activeMs > 0) timer?.refresh();
    else timer = undefined;
    if (isSlow) onSlow();
  }

  function endPause(nowMs: number): void {
    if (pausedAtMs === undefined) return;
    pausedMs += nowMs - Math.max(pausedAtMs, startedAtMs);
    pausedAtMs = nowMs;
  }

  return {
    count(more) {
      bytes += more;
    },
    pause() {
      if (timer !== undefined) pausedAtMs ??= clock();
    },
    resume() {
      if (timer === undefined) {
        timer = setTimeout(check, periodMs);
        start();
      } else endPause(clock());
      pausedAtMs = undefined;
    },
    stop() {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}
