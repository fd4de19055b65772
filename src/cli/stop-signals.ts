/** The signals that stop a server: immediately during startup, gracefully afterwards. */
type Stop = (signal: NodeJS.Signals) => void;

const stopSignals = ['SIGINT', 'SIGTERM'] as const;

/**
 * Ends the process on a stop signal. Without a handler, Node would end it too, except in the first process of a
 * container, for which the kernel ignores unhandled signals.
 */
export function endOnStopSignals(): void {
  for (const signal of stopSignals) process.on(signal, end);
}

/** Replaces the handler `previous`, by default the one that ends the process, with `stop`. */
export function onStopSignals(stop: Stop, previous: Stop = end): void {
  // Adds before it removes, because a signal that arrived without a listener would be lost.
  for (const signal of stopSignals) process.on(signal, stop).removeListener(signal, previous);
}

function end(): void {
  process.exit(0);
}
