/** What a cancellation gives back, by the hour. */
import assert from 'node:assert/strict';
import { createPolicy, refundAt } from '../../../src/services/booking/policy.ts';

const hourMs = 3_600_000;
const beginsMs = Date.UTC(2030, 0, 10);

describe('a cancellation policy', () => {
  const policy = createPolicy(10_001, beginsMs, 0);

  for (const [hours, refund] of [
    [1_000, 10_001],
    [48.001, 10_001],
    [48, 5_000],
    [0.001, 5_000],
    [0, 0],
    [-1, 0],
  ] as const) {
    it(`gives ${refund} of 10001 back ${hours} hours before the beginning`, () => {
      assert.equal(refundAt(policy, beginsMs - hours * hourMs), refund);
    });
  }

  it('names no time that is over when the booking is made', () => {
    const timesAt = (nowMs: number) => createPolicy(100, beginsMs, nowMs).map(({ before }) => before);
    assert.deepEqual(timesAt(0), ['2030-01-08T00:00:00.000Z', '2030-01-10T00:00:00.000Z']);
    assert.deepEqual(timesAt(beginsMs - 48 * hourMs), ['2030-01-10T00:00:00.000Z']);
    assert.deepEqual(timesAt(beginsMs), []);
  });
});
