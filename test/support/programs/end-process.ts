/** Ends a program that a test has started. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** Also false for a program that could not start. */
export function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null;
}

/** Resolves when it has exited, also if it had before. */
export async function endProcess(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (child === undefined || !isRunning(child)) return;
  const exited = once(child, 'exit');
  child.kill(signal);
  await exited;
}
