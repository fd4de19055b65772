/** Whether a service is worth asking: open, refused for a while, then one probe at a time. */
import assert from 'node:assert/strict';
import { createBreaker } from '../../src/ratelimit/breaker.ts';

function setUp(random = 0) {
  const time = { nowMs: 0 };
  const breaker = createBreaker({ clock: () => time.nowMs, random: () => random });
  return { time, ...breaker };
}

describe('a breaker', () => {
  it('admits everybody while nothing has failed', () => {
    const { admit } = setUp();
    assert.deepEqual([admit(), admit()], ['open', 'open']);
  });

  it('refuses for the back-off after a failure, then admits one at a time', () => {
    const { admit, failed, time } = setUp();
    failed('open');
    time.nowMs = 99;
    assert.equal(admit(), 'refused');
    time.nowMs = 100;
    assert.deepEqual([admit(), admit()], ['probe', 'refused']);
  });

  it('admits everybody again after an answer', () => {
    const { admit, failed, succeeded, time } = setUp();
    failed('open');
    time.nowMs = 100;
    admit();
    succeeded();
    assert.deepEqual([admit(), admit()], ['open', 'open']);
  });

  it('doubles the back-off with each probe that fails, up to five seconds', () => {
    const { admit, failed, time } = setUp();
    failed('open');
    for (const backoffMs of [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]) {
      time.nowMs += backoffMs - 1;
      assert.equal(admit(), 'refused');
      time.nowMs += 1;
      assert.equal(admit(), 'probe');
      failed('probe');
    }
  });

  it('counts many requests that fail together as one failure', () => {
    const { admit, failed, time } = setUp();
    for (let count = 0; count < 64; count += 1) failed('open');
    time.nowMs = 100;
    assert.equal(admit(), 'probe');
  });

  it('shortens the back-off by up to a third, at random', () => {
    const { admit, failed, time } = setUp(0.999);
    failed('open');
    time.nowMs = 66;
    assert.equal(admit(), 'refused');
    time.nowMs = 67;
    assert.equal(admit(), 'probe');
  });
});
