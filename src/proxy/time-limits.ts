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

const bytesPerSecondMin = 1024;

/**
 * Calls `onSlow` whenever a body has averaged less than 1 KiB per second over `periodMs`. Starts with the first
 * `resume`. Skips periods with a pause, because then the upstream was the slow side.
 */
export function createPaceCheck(periodMs: number, onSlow: () => void) {
  const bytesMin = (bytesPerSecondMin * periodMs) / 1000;
  let timer: NodeJS.Timeout | undefined;
  let bytes = 0;
  let isPaused = false;
  let wasPaused = false;

  function check(): void {
    const isSlow = !wasPaused && bytes < bytesMin;
    bytes = 0;
    wasPaused = isPaused;
    timer?.refresh();
    if (isSlow) onSlow();
  }

  return {
    count(more: number) {
      bytes += more;
    },
    pause() {
      isPaused = true;
      wasPaused = true;
    },
    resume() {
      isPaused = false;
      timer ??= setTimeout(check, periodMs);
    },
    stop() {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}
