/** The outline of a sparkline. */
import assert from 'node:assert/strict';
import { areaPoints, mostOf, sparklineHeight, sparklineWidth } from '../../../src/diag/browser/sparkline.js';

describe('areaPoints', () => {
  it('stands on the ground from one end to the other', () => {
    const points = areaPoints([1, 5, 3, 9], 5).split(' ');
    assert.deepEqual([points[0], points.at(-1)], [`0,${sparklineHeight}`, `${sparklineWidth},${sparklineHeight}`]);
    assert.deepEqual(points.slice(1, -1), ['0,45', '120,2', '240,24']);
  });

  it('leaves out the slot that is still being filled', () => {
    assert.equal(areaPoints([1, 2, 0], 5), areaPoints([1, 2, 5], 5));
  });

  it('says what is level by its two ends', () => {
    assert.equal(areaPoints([0, 0, 0, 5, 5, 5, 0], 5), '0,56 0,56 96,56 144,2 240,2 240,56');
  });

  it('is nothing where nothing was, or too little to draw', () => {
    for (const counts of [[], [3], [3, 3], [0, 0, 0, 9]]) assert.equal(areaPoints(counts, 5), '');
  });
});

describe('mostOf', () => {
  it('keeps a lone request small', () => {
    assert.deepEqual([mostOf([]), mostOf([1, 0, 0]), mostOf([3, 40, 90])], [5, 5, 40]);
  });
});
