/** For what another party does in its own time, such as the far end of a connection. */
import { setTimeout as sleep } from 'node:timers/promises';

const giveUpMs = 5_000;

/** What `check` gives once it throws no more; its last error when it still does after five seconds. */
export async function eventually<T>(check: () => T | Promise<T>): Promise<T> {
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
