/** What a cancellation gives back, hour by hour. */
import assert from 'node:assert/strict';
import { createRefundSteps, refundAt } from '../../../src/services/booking/cancellation.ts';

const hourMs = 3_600_000;
const beginsMs = Date.UTC(2030, 0, 10);

describe('a cancellation', () => {
  const steps = createRefundSteps(10_001, beginsMs, 0);

  for (const [hours, refund] of [
    [1_000, 10_001],
    [48.001, 10_001],
    [48, 5_000],
    [0.001, 5_000],
    [0, 0],
    [-1, 0],
  ] as const) {
    it(`refunds ${refund} of 10001 at ${hours} hours before the beginning`, () => {
      assert.equal(refundAt(steps, beginsMs - hours * hourMs), refund);
    });
  }

  it('has no step whose time is already over when the booking is made', () => {
    const timesAt = (nowMs: number) => createRefundSteps(100, beginsMs, nowMs).map(({ before }) => before);
    assert.deepEqual(timesAt(0), ['2030-01-08T00:00:00.000Z', '2030-01-10T00:00:00.000Z']);
    assert.deepEqual(timesAt(beginsMs - 48 * hourMs), ['2030-01-10T00:00:00.000Z']);
    assert.deepEqual(timesAt(beginsMs), []);
  });
});
