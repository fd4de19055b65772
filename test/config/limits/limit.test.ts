/** Which windows a limit may have: their lengths, and how far back it may count. */
import assert from 'node:assert/strict';
import { configurationFrom, windowSeconds } from '#config';

describe('the window of a limit', () => {
  it('has the lengths of envoyproxy/ratelimit', () => {
    const seconds = (unit: Parameters<typeof windowSeconds>[0]['unit']) => windowSeconds({ unit, unitMultiplier: 2 });
    assert.deepEqual(
      (['second', 'minute', 'hour', 'day', 'week', 'month', 'year'] as const).map(seconds),
      [2, 120, 7200, 172_800, 1_209_600, 5_184_000, 63_072_000],
    );
  });

  function check(title: string, limit: object, isAccepted: boolean): void {
    it(`${isAccepted ? 'may' : 'may not'} ${title}`, () => {
      const descriptors = [{ key: 'k', rate_limit: { unit: 'year', requests_per_unit: 1, ...limit } }];
      const { errors } = configurationFrom({ records: [], limits: [{ domain: 'd', descriptors }] });
      assert.deepEqual(
        errors.map(({ message }) => message),
        isAccepted ? [] : ['descriptors[0].rate_limit counts over more than a hundred years'],
      );
    });
  }

  check('be a century', { unit_multiplier: 100 }, true);
  check('be longer', { unit_multiplier: 101 }, false);
  check('be of a bucket that fills up in a century', { algorithm: 'token_bucket', burst: 100 }, true);
  check('be of a bucket that takes longer', { algorithm: 'token_bucket', burst: 101 }, false);
  check(
    'be of a bucket of less than a microsecond a request',
    { unit: 'second', requests_per_unit: 4_000_000_000, algorithm: 'token_bucket' },
    true,
  );
});
