/** Runs `run` once after `delayMs`; what it gives takes that back. */
export type Timer = (run: () => void, delayMs: number) => () => void;

/** A timer of this kind keeps no process alive. */
export const unrefTimer: Timer = (run, delayMs) => {
  const timeout = setTimeout(run, delayMs).unref();
  return () => clearTimeout(timeout);
};
