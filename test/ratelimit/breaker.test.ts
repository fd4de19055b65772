/** A breaker: open, refused for a while, then one probe at a time. */
import assert from 'node:assert/strict';
import { createBreaker } from '../../src/ratelimit/breaker.ts';

function setUp(random = 0) {
  const time = { nowMs: 0 };
  const breaker = createBreaker({ clock: () => time.nowMs, random: () => random });
  return { time, ...breaker };
}

describe('a breaker', () => {
  it('admits every request, after a failure one probe at a time with doubled back-offs up to five seconds, and all again after an answer', () => {
    const { admit, failed, answered, time } = setUp();
    assert.deepEqual([admit(), admit()], ['open', 'open']);
    // Requests that fail together are one failure.
    for (let count = 0; count < 64; count += 1) failed('open');
    for (const backoffMs of [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]) {
      time.nowMs += backoffMs - 1;
      assert.equal(admit(), 'refused');
      time.nowMs += 1;
      assert.deepEqual([admit(), admit()], ['probe', 'refused']);
      failed('probe');
    }
    time.nowMs += 5_000;
    assert.equal(admit(), 'probe');
    answered();
    assert.deepEqual([admit(), admit()], ['open', 'open']);
  });

  it('shortens the back-off by up to a third, at random', () => {
    const { admit, failed, time } = setUp(0.999);
    failed('open');
    time.nowMs = 66;
    assert.equal(admit(), 'refused');
    time.nowMs = 67;
    assert.equal(admit(), 'probe');
  });

  it('takes time-outs for a failure only when they go on for a second without an answer', () => {
    const { admit, timedOut, answered, time } = setUp();
    assert.equal(timedOut('open'), false);
    time.nowMs = 999;
    assert.equal(timedOut('open'), false);
    answered();
    time.nowMs = 1_500;
    assert.equal(timedOut('open'), false);
    assert.equal(admit(), 'open');
    time.nowMs = 2_500;
    assert.equal(timedOut('open'), true);
    assert.equal(admit(), 'refused');
  });

  it('takes the time-out of a probe for a failure', () => {
    const { admit, failed, timedOut, time } = setUp();
    failed('open');
    time.nowMs = 100;
    assert.equal(timedOut(admit()), true);
    time.nowMs = 299;
    assert.equal(admit(), 'refused');
  });
});
