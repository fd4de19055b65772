/** Money is an exact text: what is written is what was counted. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { moneyOf } from '#services/booking';

describe('moneyOf', () => {
  for (const [minor, currency, amount] of [
    [0, 'EUR', '0.00'],
    [5, 'EUR', '0.05'],
    [12_000, 'EUR', '120.00'],
    [900_000_000, 'USD', '9000000.00'],
    [7, 'JPY', '7'],
    [0, 'JPY', '0'],
    [1_005, 'KWD', '1.005'],
  ] as const) {
    it(`writes ${minor} of ${currency} as ${amount}`, () => {
      assert.deepEqual(moneyOf(minor, currency), { amount, currency });
    });
  }

  it('loses nothing', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), fc.constantFrom('EUR', 'JPY', 'KWD'), (minor, currency) => {
        assert.equal(Number(moneyOf(minor, currency).amount.replace('.', '')), minor);
      }),
    );
  });
});
