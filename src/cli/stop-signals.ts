/** The signals that stop a server: at once while it starts, in order from then on. */
type Stop = (signal: NodeJS.Signals) => void;

const stopSignals = ['SIGINT', 'SIGTERM'] as const;

/** The first process of a container has no default for them: it would start, and serve on until it is killed. */
export function endOnStopSignals(): void {
  for (const signal of stopSignals) process.on(signal, end);
}

/** `before`: what has taken them until now. @default the end of the process */
export function takeStopSignals(stop: Stop, before: Stop = end): void {
  // In this order: without a listener in between, Node would lose a signal that has just come.
  for (const signal of stopSignals) process.on(signal, stop).removeListener(signal, before);
}

function end(): void {
  process.exit(0);
}
