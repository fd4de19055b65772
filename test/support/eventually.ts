/** For what another party does in its own time, such as the far end of a connection. */
import { setTimeout as sleep } from 'node:timers/promises';

/** What `check` gives once it throws no more; its last error when it still does after `giveUpMs`, which is five seconds. */
export async function eventually<T>(check: () => T | Promise<T>, giveUpMs = 5_000): Promise<T> {
  const giveUpAtMs = performance.now() + giveUpMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > giveUpAtMs) throw error;
      await sleep(5);
    }
  }
}
