/** A timer that starts again with every activity. */

export interface IdleTimer {
  /** Starts the time again; the first call starts the timer. */
  readonly touch: () => void;
  readonly stop: () => void;
}

/** `timeoutMs` 0: never idle. */
export function createIdleTimer(timeoutMs: number, onIdle: () => void): IdleTimer {
  if (timeoutMs === 0) return endless;
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

const endless: IdleTimer = Object.freeze({ touch() {}, stop() {} });
