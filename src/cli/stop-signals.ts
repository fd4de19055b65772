/** The signals that stop a server: immediately during startup, gracefully afterwards. */
type Stop = (signal: NodeJS.Signals) => void;

const stopSignals = ['SIGINT', 'SIGTERM'] as const;

/** Node's default would do, except for the first process of a container: the kernel ignores unhandled signals to it. */
export function endOnStopSignals(): void {
  for (const signal of stopSignals) process.on(signal, end);
}

/** Makes `stop` the handler in place of `previous`, by default the one that ends the process. */
export function onStopSignals(stop: Stop, previous: Stop = end): void {
  // In this order: if there were no listener for a moment, Node would lose a signal that arrives in it.
  for (const signal of stopSignals) process.on(signal, stop).removeListener(signal, previous);
}

function end(): void {
  process.exit(0);
}
