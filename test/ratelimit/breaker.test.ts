/** The circuit breaker: back-off after failures, and one probe at a time. */
import assert from 'node:assert/strict';
import { createBreaker } from '../../src/ratelimit/breaker.ts';

function setUp(random = 0) {
  const time = { nowMs: 0 };
  const breaker = createBreaker({ clock: () => time.nowMs, random: () => random });
  return { time, ...breaker };
}

describe('a circuit breaker', () => {
  it('probes a failed server with a back-off that doubles up to five seconds, until it responds', () => {
    const { admit, failed, responded, time } = setUp();
    assert.deepEqual([admit(), admit()], ['admitted', 'admitted']);
    // Requests that fail together count as one failure.
    for (let count = 0; count < 64; count += 1) failed('admitted');
    for (const backoffMs of [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]) {
      time.nowMs += backoffMs - 1;
      assert.equal(admit(), 'rejected');
      time.nowMs += 1;
      assert.deepEqual([admit(), admit()], ['probe', 'rejected']);
      failed('probe');
    }
    time.nowMs += 5_000;
    assert.equal(admit(), 'probe');
    responded();
    assert.deepEqual([admit(), admit()], ['admitted', 'admitted']);
  });

  it('shortens the back-off randomly by up to a third', () => {
    const { admit, failed, time } = setUp(0.999);
    failed('admitted');
    time.nowMs = 66;
    assert.equal(admit(), 'rejected');
    time.nowMs = 67;
    assert.equal(admit(), 'probe');
  });

  it('counts time-outs as a failure only when they continue for a second without a response', () => {
    const { admit, timedOut, responded, time } = setUp();
    assert.equal(timedOut('admitted'), false);
    time.nowMs = 999;
    assert.equal(timedOut('admitted'), false);
    responded();
    time.nowMs = 1_500;
    assert.equal(timedOut('admitted'), false);
    assert.equal(admit(), 'admitted');
    time.nowMs = 2_500;
    assert.equal(timedOut('admitted'), true);
    assert.equal(admit(), 'rejected');
  });

  it('counts the time-out of a probe as a failure', () => {
    const { admit, failed, timedOut, time } = setUp();
    failed('admitted');
    time.nowMs = 100;
    assert.equal(timedOut(admit()), true);
    time.nowMs = 299;
    assert.equal(admit(), 'rejected');
  });
});
