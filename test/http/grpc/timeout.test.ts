/** Parsing and formatting `grpc-timeout`. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { formatGrpcTimeout, parseGrpcTimeout } from '#http';

describe('grpc-timeout', () => {
  for (const [text, timeoutMs] of [
    ['1H', 3_600_000],
    ['2M', 120_000],
    ['30S', 30_000],
    ['250m', 250],
    ['500u', 0.5],
    ['1000000n', 1],
    ['0S', 0],
    ['99999999H', 359_999_996_400_000],
  ] as const)
    it(`${text} is ${timeoutMs} ms`, () => {
      assert.equal(parseGrpcTimeout(text), timeoutMs);
    });

  it('is not parsed with more than eight digits, without digits or a unit, or with anything else', () => {
    for (const text of [
      '',
      '1',
      'S',
      '123456789S',
      '1s',
      '1h',
      '-1S',
      '+1S',
      '1.5S',
      ' 1S',
      '1S ',
      '1S,1S',
      '1_0S',
      '٣S',
    ])
      assert.equal(parseGrpcTimeout(text), undefined, text);
  });

  it('is formatted in the finest unit from milliseconds on that needs up to eight digits, and rounded up', () => {
    for (const [timeoutMs, text] of [
      [250, '250m'],
      [0.2, '1m'],
      [0, '1m'],
      [99_999_999, '99999999m'],
      [100_000_000, '100000S'],
      [1e11, '1666667M'],
      [1e16, '99999999H'],
    ] as const)
      assert.equal(formatGrpcTimeout(timeoutMs), text);
  });

  it('survives formatting and parsing', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 99_999_999 }), fc.constantFrom('m', 'S', 'M', 'H'), (count, unit) => {
        const timeoutMs = parseGrpcTimeout(`${count}${unit}`) ?? 0;
        assert.equal(parseGrpcTimeout(formatGrpcTimeout(timeoutMs)), timeoutMs);
      }),
    );
  });
});
