/** The text of figures, and the outline of a sparkline. */
import assert from 'node:assert/strict';
import {
  agoText,
  areaPoints,
  chartMaxOf,
  countOf,
  countText,
  durationText,
  rateText,
  shareText,
  spanText,
  sparklineHeight,
  sparklineWidth,
  timeText,
} from '../../../src/diag/browser/format.js';

function check<T>(text: (value: T) => string, ...cases: readonly (readonly [value: T, expected: string])[]): void {
  for (const [value, expected] of cases) assert.equal(text(value), expected);
}

describe('the texts of figures', () => {
  it('show a small rate with one decimal, and 0 only for exactly 0', () => {
    check(rateText, [0, '0'], [0.016, '<0.1'], [0.14, '0.1'], [9.96, '10'], [12.4, '12'], [12_345.6, '12,346']);
  });

  it('show a share in per cent, and 0 % and 100 % only for exactly 0 and 1', () => {
    check(
      shareText,
      [0, '0 %'],
      [0.0004, '<0.1 %'],
      [0.0123, '1.2 %'],
      [0.15, '15 %'],
      [0.9999, '>99 %'],
      [1, '100 %'],
    );
  });

  it('show a duration, or a dash if there is none', () => {
    check(durationText, [undefined, '–'], [0.43, '0.4 ms'], [12.6, '13 ms'], [999, '999 ms'], [2_550, '2.6 s']);
  });

  it('show counts with their noun', () => {
    assert.equal(countText(1_234_567), '1,234,567');
    assert.deepEqual([countOf(1, 'route'), countOf(0, 'route')], ['1 route', '0 routes']);
    assert.equal(countOf(2, 'address', 'addresses'), '2 addresses');
  });

  it('show a span in its two largest units', () => {
    check(
      spanText,
      [0, '0 s'],
      [59.9, '59 s'],
      [60, '1 min'],
      [3_599, '59 min'],
      [3_600, '1 h'],
      [11_520, '3 h 12 min'],
    );
    check(spanText, [86_400, '1 d'], [200_000, '2 d 7 h']);
    check(agoText, [-3, 'just now'], [0.4, 'just now'], [61, '1 min ago']);
  });

  it('show a time to the second', () => {
    assert.equal(timeText('2026-01-02T03:04:05.678Z'), '2026-01-02 03:04:05 UTC');
  });
});

describe('areaPoints', () => {
  it('starts and ends on the base line', () => {
    const points = areaPoints([1, 5, 3, 9], 5).split(' ');
    assert.deepEqual([points[0], points.at(-1)], [`0,${sparklineHeight}`, `${sparklineWidth},${sparklineHeight}`]);
    assert.deepEqual(points.slice(1, -1), ['0,45', '120,2', '240,24']);
  });

  it('omits the slot that is still being filled', () => {
    assert.equal(areaPoints([1, 2, 0], 5), areaPoints([1, 2, 5], 5));
  });

  it('draws equal slots as one line', () => {
    assert.equal(areaPoints([0, 0, 0, 5, 5, 5, 0], 5), '0,56 0,56 96,56 144,2 240,2 240,56');
  });

  it('is empty without requests, and when there are too few slots', () => {
    for (const counts of [[], [3], [3, 3], [0, 0, 0, 9]]) assert.equal(areaPoints(counts, 5), '');
  });
});

describe('chartMaxOf', () => {
  it('is at least five, and ignores the last slot', () => {
    assert.deepEqual([chartMaxOf([]), chartMaxOf([1, 0, 0]), chartMaxOf([3, 40, 90])], [5, 5, 40]);
  });
});
