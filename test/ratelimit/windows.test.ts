/** Fixed windows: borders, waiting times, and clocks that step back. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { secondsUntilReset, unitSeconds, windowNumber, windowNumberAfter } from '../../src/ratelimit/windows.ts';

const moments = fc.nat({ max: 4e12 });
const lengths = fc.constantFrom(...Object.values(unitSeconds));

describe('windows', () => {
  it('have the lengths of envoyproxy/ratelimit', () => {
    assert.deepEqual(unitSeconds, {
      second: 1,
      minute: 60,
      hour: 3600,
      day: 86_400,
      week: 604_800,
      month: 2_592_000,
      year: 31_536_000,
    });
  });

  it('begin on the border and end before the next', () => {
    const check = (nowMs: number, number: number) => assert.equal(windowNumber(nowMs, 60), number);
    check(0, 0);
    check(59_999, 0);
    check(60_000, 1);
    check(119_999.9, 1);
  });

  it('tell the whole seconds until they end, rounded up and never 0', () => {
    const check = (nowMs: number, seconds: number) => assert.equal(secondsUntilReset(0, nowMs, 60), seconds);
    check(0, 60);
    check(1, 60);
    check(999, 60);
    check(1_000, 59);
    check(59_001, 1);
    check(59_999, 1);
    check(60_000, 1);
  });

  it('are over after the wait they tell, and not a second earlier', () => {
    fc.assert(
      fc.property(moments, lengths, (nowMs, seconds) => {
        const number = windowNumber(nowMs, seconds);
        const wait = secondsUntilReset(number, nowMs, seconds);
        assert.ok(wait >= 1 && wait <= seconds);
        assert.equal(windowNumber(nowMs + wait * 1_000, seconds), number + 1);
        assert.equal(windowNumber(nowMs + (wait - 1) * 1_000, seconds), number);
      }),
    );
  });

  it('stay when the clock steps back over the border', () => {
    assert.equal(windowNumberAfter(1, 59_999, 60), 1);
    assert.equal(windowNumberAfter(1, 60_000, 60), 1);
    assert.equal(windowNumberAfter(1, 120_000, 60), 2);
  });

  it('follow a clock that was far ahead and is put right', () => {
    assert.equal(windowNumberAfter(1_000, 60_000, 60), 1);
  });
});
