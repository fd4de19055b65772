/** Amounts of money as exact decimal strings, and the refund of a cancellation by the time left before the stay. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createRefundSteps, moneyOf, refundAt } from '../../../src/travel/booking/money.ts';

describe('moneyOf', () => {
  it('uses as many decimal places as the currency has', () => {
    const check = (minor: number, currency: string, amount: string) =>
      assert.deepEqual(moneyOf(minor, currency), { amount, currency });
    check(0, 'EUR', '0.00');
    check(5, 'EUR', '0.05');
    check(12_000, 'EUR', '120.00');
    check(900_000_000, 'USD', '9000000.00');
    check(7, 'JPY', '7');
    check(0, 'JPY', '0');
    check(1_005, 'KWD', '1.005');
    check(12_345, 'CLF', '1.2345');
    check(12_345, 'UYI', '12345');
  });

  it('is exact for every amount', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), fc.constantFrom('EUR', 'JPY', 'KWD'), (minor, currency) => {
        assert.equal(Number(moneyOf(minor, currency).amount.replace('.', '')), minor);
      }),
    );
  });
});

describe('a cancellation', () => {
  const hourMs = 3_600_000;
  const beginsMs = Date.UTC(2030, 0, 10);
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
