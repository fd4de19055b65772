/** The refund of a cancellation, depending on the time left before the stay begins. */
import assert from 'node:assert/strict';
import { createRefundSteps, refundAt } from '../../../src/services/booking/cancellation.ts';

const hourMs = 3_600_000;
const beginsMs = Date.UTC(2030, 0, 10);

describe('a cancellation', () => {
  const steps = createRefundSteps(10_001, beginsMs, 0);

  it('refunds everything until 48 hours before the stay, then half, rounded down, then nothing', () => {
    const check = (hours: number, refund: number) => assert.equal(refundAt(steps, beginsMs - hours * hourMs), refund);
    check(1_000, 10_001);
    check(48.001, 10_001);
    check(48, 5_000);
    check(0.001, 5_000);
    check(0, 0);
    check(-1, 0);
  });

  it('omits steps that are already past when the booking is made', () => {
    const timesAt = (nowMs: number) => createRefundSteps(100, beginsMs, nowMs).map(({ before }) => before);
    assert.deepEqual(timesAt(0), ['2030-01-08T00:00:00.000Z', '2030-01-10T00:00:00.000Z']);
    assert.deepEqual(timesAt(beginsMs - 48 * hourMs), ['2030-01-10T00:00:00.000Z']);
    assert.deepEqual(timesAt(beginsMs), []);
  });
});
