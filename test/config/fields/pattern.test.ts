/** Tests regular expressions in RE2 syntax: matching and replacing in linear time. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { compilePattern, type Pattern } from '#config';
import { substitutionFault } from '../../../src/config/fields/pattern.ts';

function patternOf(text: string): Pattern {
  const compiled = compilePattern(text);
  assert.ok(compiled.ok);
  return compiled.pattern;
}

/** Generates small patterns that mean the same in RE2 and in JavaScript. */
const piece = fc.constantFrom('a', 'b', '.', '[ab]', '(?:a|b)', '(a|bb)', '(ab)*', 'a+', 'b?', '(?:ab){1,2}');
const pattern = fc.array(piece, { minLength: 1, maxLength: 5 }).map((pieces) => pieces.join(''));
const subject = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 12 });

describe('a pattern', () => {
  it('must match the whole text', () => {
    const { matches } = patternOf('/v1/[a-z]+');
    assert.deepEqual(['/v1/hotels', '/v1/hotels/1', 'x/v1/hotels', '/v1/'].map(matches), [true, false, false, false]);
  });

  it('matches the same texts as the expression in JavaScript', () => {
    fc.assert(
      fc.property(pattern, subject, (text, value) => {
        assert.equal(patternOf(text).matches(value), new RegExp(`^(?:${text})$`).test(value));
      }),
    );
  });

  it('matches in linear time where backtracking engines need exponential time', () => {
    for (const text of ['(a+)+', '(a|aa)+', '(a*)*b', '(.*)(.*)(.*)x', '(?:a?){60}a{60}']) {
      assert.equal(patternOf(text).matches(`${'a'.repeat(20_000)}!`), false);
    }
    assert.equal(patternOf('a.*b|a').replace('a'.repeat(10_000), '').length, 9900);
  });

  for (const [title, text, message] of [
    ['look-behind', '(?<=a)b', /look-around/],
    ['possessive quantifiers', 'a++', /possessive/],
    ['many repetitions', 'a{500}', /502 instructions of at most 200/],
    ['repetitions that multiply', '((a{30}){30}){30}', /is not a regular expression|too large/],
    ['a long text', 'a'.repeat(1001), /more than 1000 characters/],
    ['deep nesting', '('.repeat(499) + ')'.repeat(499), /too large|is not a regular expression/],
  ] as const)
    it(`rejects ${title}`, () => {
      const compiled = compilePattern(text);
      assert.match(compiled.ok ? '' : compiled.fault.message, message);
    });
});

describe('a replacement', () => {
  function check(title: string, [text, substitution]: readonly [string, string], input: string, expected: string) {
    it(title, () => assert.equal(patternOf(text).replace(input, substitution), expected));
  }

  check('inserts groups by number', ['^/v1/([a-z]+)/(.*)$', String.raw`/\2/\1`], '/v1/hotels/7', '/7/hotels');
  check('inserts the match and backslashes', ['[0-9]+', String.raw`<\0\\>`], 'a1b22', String.raw`a<1\>b<22\>`);
  check('inserts nothing for a group that did not take part in the match', ['(a)|b', String.raw`[\1]`], 'ab', '[a][]');
  check('replaces every match', ['o', '0'], 'foo/bob', 'f00/b0b');
  check('leaves text without a match unchanged', ['x', 'y'], 'abc', 'abc');
  check('replaces a text that matches as a whole only once', ['.*', 'x'], 'abc', 'x');
  check('replaces empty matches between all letters', ['x*', '-'], 'abc', '-a-b-c-');
  check('treats a dollar sign literally', ['b', '$1$&'], 'abc', 'a$1$&c');

  it('has the same result as the expression in JavaScript', () => {
    fc.assert(
      fc.property(pattern, subject, (text, value) => {
        fc.pre(!new RegExp(`^(?:${text})$`).test(''));
        assert.equal(patternOf(text).replace(value, String.raw`<\0>`), value.replace(new RegExp(text, 'g'), '<$&>'));
      }),
    );
  });

  it('replaces at most a hundred matches, which bounds the time', () => {
    assert.equal(patternOf('a').replace('a'.repeat(150), 'b'), 'b'.repeat(100) + 'a'.repeat(50));
  });

  it('is rejected if it refers to a missing group, has an unknown escape or ends in a backslash', () => {
    const faults = [String.raw`\1`, String.raw`\2`, String.raw`\0\\`, String.raw`\x`, '\\', String.raw`\\`].map(
      (substitution) => substitutionFault(substitution, '(a)') !== undefined,
    );
    assert.deepEqual(faults, [false, true, false, true, true, false]);
  });
});
