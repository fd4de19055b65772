/** The memory that only the startup needs. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { releaseStartupMemory } from '../../src/cli/v8-tuning.ts';
import { eventually } from '../support/waiting.ts';

const afterMs = 200;

/** What the reference points to stays until V8 collects the whole heap. It is too small to be a reason for that. */
function createGarbage(): WeakRef<object> {
  return new WeakRef({});
}

describe('releaseStartupMemory', () => {
  it('collects the whole heap if the server is idle', async () => {
    const garbage = createGarbage();
    // Several attempts, because a process that waits for the CPU seems busy. V8 itself would collect after 8 seconds.
    for (let attempt = 0; attempt < 10 && garbage.deref() !== undefined; attempt += 1) {
      releaseStartupMemory({ afterMs });
      await sleep(2 * afterMs);
    }
    assert.equal(garbage.deref(), undefined);
    assert.equal(globalThis.gc, undefined);
  });

  it('does not interrupt a busy server', async () => {
    // Repeated, because V8 may collect the heap at any time.
    await eventually(async () => {
      const garbage = createGarbage();
      releaseStartupMemory({ afterMs });
      const busyUntilMs = performance.now() + 2 * afterMs;
      while (performance.now() < busyUntilMs);
      await sleep(1);
      assert.ok(garbage.deref());
    });
  });
});
