import assert from 'node:assert/strict';
import fc from 'fast-check';
import { digestTag, noneMatchFails } from '../../src/http/precondition.ts';

describe('noneMatchFails', () => {
  function check(ifNoneMatch: string, tag: string, expected: boolean) {
    it(`is ${expected} for If-None-Match: ${ifNoneMatch} and the tag ${tag}`, () => {
      assert.equal(noneMatchFails(ifNoneMatch, tag), expected);
    });
  }

  check('"a"', '"a"', true);
  check('"b"', '"a"', false);
  check('*', '"a"', true);
  check(' * ', '"a"', true);
  check('"b", "a"', '"a"', true);
  check('"b","a","c"', '"a"', true);
  check('W/"a"', '"a"', true);
  check('"a"', 'W/"a"', true);
  check('W/"a"', 'W/"a"', true);
  check('W/"b", W/"a"', '"a"', true);
  check('"a,b"', '"a,b"', true);
  check('"a,b"', '"a"', false);
  check('"*"', '"a"', false);
  check('"A"', '"a"', false);
  check('"aa"', '"a"', false);
  check('a', '"a"', false);
  check('"a', '"a"', false);
  check('', '"a"', false);

  it('never throws, whatever a client sends', () => {
    fc.assert(
      fc.property(fc.string(), (ifNoneMatch) => {
        assert.equal(typeof noneMatchFails(ifNoneMatch, '"a"'), 'boolean');
      }),
    );
  });

  it('finds the tag in every list that holds it', () => {
    const tag = fc.stringMatching(/^(?:W\/)?"[!#-~]*"$/);
    fc.assert(
      fc.property(fc.array(tag), tag, fc.array(tag), (before, one, after) => {
        assert.ok(noneMatchFails([...before, one, ...after].join(', '), one));
      }),
    );
  });
});

describe('digestTag', () => {
  it('is a strong tag, the same for the same text and another for another', () => {
    assert.match(digestTag('a'), /^"[\w-]{22}"$/);
    assert.equal(digestTag('é'), digestTag('é'));
    assert.notEqual(digestTag('a'), digestTag('b'));
  });
});
