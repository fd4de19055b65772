/** The throttle of logins: waits after failures, by network and by pair of network and user name. */
import assert from 'node:assert/strict';
import type { Sender } from '#http';
import { createThrottle, type ThrottleOptions } from '../../src/auth/throttle.ts';

const home: Sender = { network: '192.0.2.1', isShared: false };
const away: Sender = { network: '198.51.100.9', isShared: false };
const proxy: Sender = { network: '127.0.0.1', isShared: true };

function setUp(options: ThrottleOptions = {}) {
  const state = { nowMs: 5000 };
  const { loginOf } = createThrottle({ clock: () => state.nowMs, ...options });
  const waitMs = (sender: Sender, user: string) => loginOf(sender, user).waitMs();
  /** Fails the given number of times, waiting only as long as required. */
  function fail(sender: Sender, user: string, times = 1): void {
    for (let time = 0; time < times; time += 1) {
      state.nowMs += waitMs(sender, user);
      loginOf(sender, user).failed();
    }
  }
  return { loginOf, waitMs, fail, state };
}

describe('failed logins', () => {
  it('of one user from one network are free ten times, and then each one doubles the wait', () => {
    const { waitMs, fail } = setUp();
    fail(home, 'demo', 10);
    assert.equal(waitMs(home, 'demo'), 0);
    for (const expected of [1000, 2000, 4000, 8000, 16_000, 32_000]) {
      fail(home, 'demo');
      assert.equal(waitMs(home, 'demo'), expected);
    }
  });

  it('never lock the user out of other networks, nor other users out of the same network', () => {
    const { waitMs, fail } = setUp();
    fail(home, 'demo', 20);
    assert.ok(waitMs(home, 'demo') > 0);
    assert.deepEqual([waitMs(away, 'demo'), waitMs(home, 'guest')], [0, 0]);
  });

  it('of many users from one network are free thirty times', () => {
    const { waitMs, fail } = setUp();
    for (let name = 0; name < 30; name += 1) fail(home, `name-${name}`);
    assert.equal(waitMs(home, 'demo'), 0);
    fail(home, 'name-30');
    assert.deepEqual([waitMs(home, 'demo'), waitMs(away, 'demo')], [1000, 0]);
  });

  it('count by pair only if many clients share the address', () => {
    const { waitMs, fail } = setUp();
    for (let name = 0; name < 100; name += 1) fail(proxy, `name-${name}`);
    fail(proxy, 'demo', 11);
    assert.deepEqual([waitMs(proxy, 'guest'), waitMs(proxy, 'demo')], [0, 1000]);
  });

  it('are forgotten one per minute, which allows about one guess a minute', () => {
    const { waitMs, fail, state } = setUp();
    fail(home, 'demo', 11);
    state.nowMs += 3 * 60_000;
    fail(home, 'demo', 2);
    assert.equal(waitMs(home, 'demo'), 0);
    const startMs = state.nowMs;
    fail(home, 'demo', 200);
    const guessesAMinute = 200 / ((state.nowMs - startMs) / 60_000);
    assert.ok(guessesAMinute < 1.2, `${guessesAMinute}`);
    assert.ok(waitMs(home, 'demo') <= 300_000);
  });

  it('of the pair, but not of the network, are forgotten after a successful login', () => {
    const { loginOf, waitMs, fail } = setUp();
    fail(home, 'demo', 11);
    loginOf(home, 'demo').succeeded();
    assert.deepEqual([waitMs(home, 'demo'), loginOf(home, 'demo').failures()], [0, 11]);
  });

  for (const [what, senderOf, other] of [
    ['networks', (network: string): Sender => ({ network, isShared: false }), () => 'other'],
    ['pairs', () => proxy, (user: string) => user],
  ] as const)
    it(`are remembered for 10,000 ${what}, the most recent ones`, () => {
      const { loginOf, fail } = setUp();
      const more = Array.from({ length: 9_999 }, (_, index) => `${index}`);
      for (const name of ['a', 'b', 'a', ...more]) fail(senderOf(name), name);
      assert.deepEqual(
        ['a', 'b', '0'].map((name) => loginOf(senderOf(name), other(name)).failures() > 0),
        [true, false, true],
      );
    });
});
