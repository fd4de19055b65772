/** For what another party does in its own time, such as the far end of a connection. */
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * What `check` gives once it throws no more; its last error when it still does after `giveUpMs`, which is five seconds.
 * Between two checks there are `pauseMs`: more than five where a check takes from what it waits for.
 */
export async function eventually<T>(check: () => T | Promise<T>, giveUpMs = 5_000, pauseMs = 5): Promise<T> {
  const giveUpAtMs = performance.now() + giveUpMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > giveUpAtMs) throw error;
      await sleep(pauseMs);
    }
  }
}
