/** Which request is the same as an earlier one: by its key, and by what it asks. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { fingerprintOf, idempotencyKeyOf } from '#http';

describe('idempotencyKeyOf', () => {
  const check = (said: string, expected: string) =>
    assert.equal(idempotencyKeyOf({ 'idempotency-key': said }), expected);

  it('is the same in quotes and without', () => {
    check('8e03978e-40d5', '8e03978e-40d5');
    check('"8e03978e-40d5"', '8e03978e-40d5');
    check('  "a b"  ', 'a b');
    check('"a\\"b\\\\c"', 'a"b\\c');
  });

  it('has 1 to 255 characters', () => {
    check('k'.repeat(255), 'k'.repeat(255));
    check(`"${'k'.repeat(255)}"`, 'k'.repeat(255));
  });

  for (const said of [
    '',
    '""',
    '"',
    '"a',
    'a"',
    '"a" "b"',
    'a, b',
    'k'.repeat(256),
    `"${'k'.repeat(256)}"`,
    'é',
    '"\\x"',
  ]) {
    it(`is refused when it is none: ${said.slice(0, 12)}`, () => {
      assert.throws(() => idempotencyKeyOf({ 'idempotency-key': said }), { slug: 'bad-request', status: 400 });
    });
  }

  it('is undefined without the header; X-Request-ID, which every proxy sets, is no key', () => {
    assert.equal(idempotencyKeyOf({ 'x-request-id': 'abc' }), undefined);
  });

  it('reads any key that was written in quotes', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[\x20-\x7e]{1,255}$/), (key) => {
        check(`"${key.replace(/["\\]/g, '\\$&')}"`, key);
      }),
    );
  });
});

describe('fingerprintOf', () => {
  it('is the same for the same body in another order', () => {
    assert.equal(
      fingerprintOf({ a: 1, b: { c: [1, 2], d: null } }),
      fingerprintOf({ b: { d: null, c: [1, 2] }, a: 1 }),
    );
    assert.match(fingerprintOf({}), /^[\w-]{43}$/);
  });

  it('is another for every other body', () => {
    const bodies = [
      {},
      { a: 1 },
      { a: '1' },
      { a: [1, 2] },
      { a: [2, 1] },
      { a: { b: 1 } },
      { a: [['b', 1]] },
      { 1: 2, 2: 1 },
    ];
    assert.equal(new Set(bodies.map(fingerprintOf)).size, bodies.length);
  });

  it('does not depend on the order of names, whatever the body', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (body) => {
        const reversed = Object.fromEntries(Object.entries(body).toReversed());
        assert.equal(fingerprintOf(reversed), fingerprintOf(body));
      }),
    );
  });
});
