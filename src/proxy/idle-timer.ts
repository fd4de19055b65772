/** A timer that restarts whenever there is activity. */

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
