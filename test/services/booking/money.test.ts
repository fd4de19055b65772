/** Formatting amounts of money as exact decimal strings. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { moneyOf } from '#services/booking';

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
