/** Parsing `Idempotency-Key`, and the fingerprints of request bodies. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { fingerprintOf, idempotencyKeyOf } from '../../src/rest/idempotency-key.ts';

describe('idempotencyKeyOf', () => {
  const check = (header: string, expected: string) =>
    assert.equal(idempotencyKeyOf({ 'idempotency-key': header }), expected);

  it('accepts 1 to 255 characters with or without quotes', () => {
    check('8e03978e-40d5', '8e03978e-40d5');
    check('"8e03978e-40d5"', '8e03978e-40d5');
    check('  "a b"  ', 'a b');
    check('"a\\"b\\\\c"', 'a"b\\c');
    const long = 'k'.repeat(255);
    for (const header of [long, `"${long}"`]) check(header, long);
    const malformed = ['', '""', '"', '"a', 'a"', '"a" "b"', 'a, b', 'é', '"\\x"'];
    for (const header of [...malformed, `${long}k`, `"${long}k"`])
      assert.throws(() => check(header, ''), { slug: 'bad-request', status: 400 }, header);
  });

  it('returns undefined without the header, and ignores X-Request-ID, which every proxy sets', () => {
    assert.equal(idempotencyKeyOf({ 'x-request-id': 'abc' }), undefined);
  });

  it('unquotes any key', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[\x20-\x7e]{1,255}$/), (key) => {
        check(`"${key.replace(/["\\]/g, '\\$&')}"`, key);
      }),
    );
  });
});

describe('fingerprintOf', () => {
  it('differs for different bodies', () => {
    const nested = [{ a: [1, 2] }, { a: [2, 1] }, { a: { b: 1 } }, { a: [['b', 1]] }];
    const bodies = [{}, { a: 1 }, { a: '1' }, ...nested, { 1: 2, 2: 1 }];
    assert.equal(new Set(bodies.map(fingerprintOf)).size, bodies.length);
    assert.match(fingerprintOf({}), /^[\w-]{43}$/);
  });

  it('does not depend on the order of members at any depth', () => {
    const [one, other] = [
      { a: 1, b: { c: [1, 2], d: null } },
      { b: { d: null, c: [1, 2] }, a: 1 },
    ];
    assert.equal(fingerprintOf(one), fingerprintOf(other));
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (body) => {
        const reversed = Object.fromEntries(Object.entries(body).toReversed());
        assert.equal(fingerprintOf(reversed), fingerprintOf(body));
      }),
    );
  });
});
