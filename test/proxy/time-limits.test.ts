/** The pace of a body: what counts as slow, and whose fault it is. */
import assert from 'node:assert/strict';
import { createPaceCheck } from '../../src/proxy/time-limits.ts';
import { createDeferred } from '../support/waiting.ts';

describe('the pace of a body', () => {
  /** What happens in a period of a second: the other side begins or ends a pause, or this one moves bytes. */
  type Event = readonly [atMs: number, what: 'pause' | 'resume' | number];

  /** Returns whether the body was too slow for 1,000 bytes a second. */
  async function isSlowAfter(events: readonly Event[]): Promise<boolean> {
    let nowMs = 0;
    let isSlow = false;
    const checked = createDeferred();
    const pace = createPaceCheck({
      periodMs: 1,
      clock: () => nowMs,
      paceMin() {
        checked.resolve();
        return 1000;
      },
      onSlow() {
        isSlow = true;
      },
    });
    for (const [atMs, what] of events) {
      nowMs = atMs;
      if (typeof what === 'number') pace.count(what);
      else pace[what]();
    }
    nowMs = 1000;
    await checked.promise;
    pace.stop();
    return isSlow;
  }

  const begin: Event = [0, 'resume'];
  for (const [what, events, expected] of [
    ['is too slow below the minimum', [begin, [0, 999]], true],
    ['is fast enough at the minimum', [begin, [0, 1000]], false],
    ['is measured over the time in which the other side waits', [begin, [600, 'pause'], [600, 600]], false],
    ['is too slow after a short pause of the other side', [begin, [1, 'pause'], [2, 'resume'], [9, 900]], true],
    ['does not matter while the other side is the slow one', [begin, [400, 'pause']], false],
  ] as const)
    it(what, async () => {
      assert.equal(await isSlowAfter(events), expected);
    });
});
