/** Waiting for the write lock of a SQLite file without blocking the event loop, which its holder may need to let go. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isSqliteBusy } from './errors.ts';

export interface Patience {
  /** @default 100, which with the pauses is about five seconds */
  readonly attempts?: number;
  /** In milliseconds. @default a timer */
  readonly wait?: (pauseMs: number) => Promise<unknown>;
}

/** Asks again while the file is busy: a statement that found it so has done nothing. */
export async function patiently<T>(
  ask: () => T | Promise<T>,
  { attempts = 100, wait = sleep }: Patience = {},
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await ask();
    } catch (error) {
      if (attempt >= attempts || !isSqliteBusy(error)) throw error;
      await wait(Math.min(attempt, 50));
    }
  }
}
