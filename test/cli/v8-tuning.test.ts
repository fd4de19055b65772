/** What V8 does differently for a server. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { releaseStartupMemory } from '../../src/cli/v8-tuning.ts';
import { eventually } from '../support/waiting.ts';

const afterMs = 200;

/** What the reference points to stays until V8 collects the whole heap. It is too small to be a reason for that. */
function createGarbage(): WeakRef<object> {
  return new WeakRef({});
}

/** Creates objects that live long, so that V8 considers creating the next ones in the old generation. */
const program = `
  const { createObjectsYoung } = await import(${JSON.stringify(import.meta.resolve('../../src/cli/v8-tuning.ts'))});
  if (process.argv[1] === 'tuned') createObjectsYoung();
  let kept = [];
  for (let id = 0; id < 500_000; id += 1) {
    kept.push({ id, position: { id } });
    if (kept.length === 100_000) kept = [];
  }
`;

describe('createObjectsYoung', () => {
  /** What V8 reports about the expressions whose objects live long. */
  function report(...args: string[]): string {
    const flags = ['--trace-pretenuring-statistics', '--conditions=frontdesk-source', '--input-type=module'];
    return execFileSync(process.execPath, [...flags, '--eval', program, '--', ...args], { encoding: 'utf8' });
  }

  it('creates objects in the young generation, even if earlier ones lived long', () => {
    assert.equal(report('tuned'), '');
    assert.match(report(), /=> maybe tenure/);
  });
});

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
