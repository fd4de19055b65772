/** Turns: lets calls with the same name run one after the other, and bounds how long each of them waits. */
import { setTimeout as sleep } from 'node:timers/promises';
import { StorageUnavailable } from './database.ts';

/** Runs `run` after all earlier calls with the name. Rejects with StorageUnavailable if they take too long. */
export type InTurn = <T>(name: string, run: () => Promise<T>) => Promise<T>;

export function createTurns(timeoutMs: number): InTurn {
  /** Resolve when all calls with the name so far have ended. */
  const ends = new Map<string, Promise<unknown>>();
  return async function inTurn(name, run) {
    const earlier = ends.get(name);
    const result = earlier === undefined ? run() : endWithin(earlier, timeoutMs).then(run);
    // The next call also waits for the earlier ones, because this one may give up before them.
    const end = Promise.allSettled([earlier, result]);
    ends.set(name, end);
    try {
      return await result;
    } finally {
      void end.then(() => ends.get(name) === end && ends.delete(name));
    }
  };
}

async function endWithin(earlier: Promise<unknown>, timeoutMs: number): Promise<void> {
  const timer = new AbortController();
  const isLate = sleep(timeoutMs, true, { signal: timer.signal }).catch(() => false);
  const outcome = await Promise.race([earlier, isLate]);
  timer.abort();
  if (outcome === true) throw new StorageUnavailable(new Error('earlier transactions on the same rows take too long'));
}
