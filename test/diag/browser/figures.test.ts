/** The figures of all routes together. */
import assert from 'node:assert/strict';
import { summaryFigures } from '../../../src/diag/browser/figures.js';
import { busyRoute, busyTraffic, emptyDiagnostics, ownRoute } from '../diagnostics-sample.ts';

describe('summaryFigures', () => {
  const textsOf = (more: object) => {
    const { rate, errors, in_flight, picture } = summaryFigures({ ...emptyDiagnostics, ...more });
    return [rate?.text, errors?.text, in_flight?.text, picture?.text];
  };

  it('adds up the routes, and the requests that no route met', () => {
    const second = { ...busyRoute, name: 'car' };
    const expected = '99 requests in five minutes, at most 12 a second; 15 of them failed';
    assert.deepEqual(textsOf({ routes: [busyRoute, second, ownRoute], unmatched: busyTraffic }), [
      ...['27,336', '15 %', '27,306', expected],
    ]);
  });

  it('counts once what routes of one name share', () => {
    assert.deepEqual(textsOf({ routes: [busyRoute, busyRoute] }), textsOf({ routes: [busyRoute] }));
  });

  it('is nothing where nothing was', () => {
    assert.deepEqual(textsOf({}), ['0', '0 %', '0', 'no requests in five minutes']);
  });
});
