/** What became of the changes of the configuration files, since the start. */
import type { Generations } from './reload.ts';

export interface Reloads {
  /** Without an error. */
  readonly succeeded: number;
  /** With at least one, whatever of the rest was taken over. */
  readonly failed: number;
  /** Of the last one, until it was in force or refused; 0 before the first. */
  readonly lastDurationMs: number;
}

export function createReloads(generations: Pick<Generations, 'onRead'>): () => Reloads {
  let reloads: Reloads = { succeeded: 0, failed: 0, lastDurationMs: 0 };
  generations.onRead((isGood, lastDurationMs) => {
    const { succeeded, failed } = reloads;
    reloads = isGood
      ? { succeeded: succeeded + 1, failed, lastDurationMs }
      : { succeeded, failed: failed + 1, lastDurationMs };
  });
  return () => reloads;
}
