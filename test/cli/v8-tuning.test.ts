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

/** Runs a program in a separate process, after a function of the module if `tuning` names one. Returns what V8 reports. */
function report(flag: string, program: string, tuning = ''): string {
  const module = JSON.stringify(import.meta.resolve('../../src/cli/v8-tuning.ts'));
  const tuned = `(await import(${module}))[process.argv[1]]?.();`;
  const flags = [flag, '--expose-gc', '--conditions=frontdesk-source', '--input-type=module'];
  return execFileSync(process.execPath, [...flags, '--eval', tuned + program, '--', tuning], { encoding: 'utf8' });
}

describe('createObjectsYoung', () => {
  /** Creates objects that live long, so that V8 considers creating the next ones in the old generation. */
  const program = `
    let kept = [];
    for (let id = 0; id < 500_000; id += 1) {
      kept.push({ id, position: { id } });
      if (kept.length === 100_000) kept = [];
    }
  `;

  it('creates objects in the young generation, even if earlier ones lived long', () => {
    const flag = '--trace-pretenuring-statistics';
    assert.equal(report(flag, program, 'createObjectsYoung'), '');
    assert.match(report(flag, program), /=> maybe tenure/);
  });
});

describe('collectWholeHeapRarely', () => {
  const program = "gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });";

  /** By how much the heap may grow until V8 collects the whole of it again. */
  function growthIn(text: string): number {
    return Number(/HeapController\] factor ([\d.]+)/.exec(text)?.[1]);
  }

  it('lets the heap double, even after V8 has made it smaller', () => {
    const flag = '--trace-gc-verbose';
    assert.equal(growthIn(report(flag, program, 'collectWholeHeapRarely')), 2);
    assert.ok(growthIn(report(flag, program)) < 2);
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
