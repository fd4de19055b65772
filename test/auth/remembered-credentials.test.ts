/** Remembered credentials: for how long, how many, and under what key. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { createRememberedCredentials } from '../../src/auth/remembered-credentials.ts';

function setUp({ entriesMax = 3, ttlMs = 1000, random = (bytes: number) => Buffer.alloc(bytes, 1) } = {}) {
  const time = { nowMs: 0 };
  const remembered = createRememberedCredentials<string>({ entriesMax, ttlMs, clock: () => time.nowMs, random });
  return { time, remembered };
}

describe('createRememberedCredentials', () => {
  it('finds what it was told until the time is up', () => {
    const { time, remembered } = setUp();
    remembered.remember('a', 'demo');
    time.nowMs = 999;
    assert.equal(remembered.find('a'), 'demo');
    time.nowMs = 1000;
    assert.equal(remembered.find('a'), undefined);
  });

  it('does not live longer for being asked, but does for being told again', () => {
    const { time, remembered } = setUp();
    remembered.remember('a', 'demo');
    time.nowMs = 900;
    remembered.find('a');
    time.nowMs = 1100;
    assert.equal(remembered.find('a'), undefined);
    remembered.remember('a', 'demo');
    time.nowMs = 2000;
    assert.equal(remembered.find('a'), 'demo');
  });

  it('knows who was right once, until it is told to forget', () => {
    const { time, remembered } = setUp();
    assert.equal(remembered.wasRight('a'), false);
    remembered.remember('a', 'demo');
    time.nowMs = 5000;
    assert.equal(remembered.wasRight('a'), true);
    remembered.forget('a');
    assert.equal(remembered.wasRight('a'), false);
  });

  it('drops who was verified longest ago when it is full', () => {
    const { remembered } = setUp();
    for (const key of ['a', 'b', 'c', 'a', 'd']) remembered.remember(key, key);
    assert.deepEqual(
      ['a', 'b', 'c', 'd'].filter((key) => remembered.wasRight(key)),
      ['a', 'c', 'd'],
    );
  });

  it('never holds more than it may', () => {
    fc.assert(
      fc.property(fc.array(fc.string()), fc.integer({ min: 0, max: 4 }), (keys, entriesMax) => {
        const { remembered } = setUp({ entriesMax });
        for (const key of keys) remembered.remember(key, key);
        const held = new Set(keys.filter((key) => remembered.wasRight(key)));
        assert.equal(held.size, Math.min(entriesMax, new Set(keys).size));
      }),
    );
  });
});

describe('keyOf', () => {
  it('is the same for the same header and another for any other', () => {
    const { remembered } = setUp();
    fc.assert(
      fc.property(fc.base64String(), fc.base64String(), (one, other) => {
        assert.equal(remembered.keyOf(one) === remembered.keyOf(other), one === other);
      }),
    );
  });

  it('is a SHA-256 digest under 32 random bytes, so that it tells nothing of the header', () => {
    const asked: number[] = [];
    const { remembered } = setUp({
      random(bytes) {
        asked.push(bytes);
        return randomBytes(bytes);
      },
    });
    assert.deepEqual(asked, [32]);
    assert.equal(Buffer.from(remembered.keyOf('Basic ZGVtbzpkZW1v'), 'base64').length, 32);
  });

  it('differs between two instances', () => {
    const keys = [1, 2].map(() => setUp({ random: randomBytes }).remembered.keyOf('Basic ZGVtbzpkZW1v'));
    assert.notEqual(keys[0], keys[1]);
  });
});
