/** Patterns with stars: what they match, against the regular expression that says the same. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { compileWildcard } from '../../src/ratelimit/wildcard.ts';

describe('a wildcard', () => {
  const check = (pattern: string, text: string, expected: boolean) =>
    assert.equal(compileWildcard(pattern)(text), expected, `${pattern} ${text}`);

  it('stands for any text, the empty one as well', () => {
    for (const text of ['', 'a', 'a\nb', '*']) check('*', text, true);
    check('a*', 'a', true);
    check('a*', 'ba', false);
    check('*a', 'ba', true);
    check('a*b*c', 'a1b2c', true);
    check('a*b*c', 'acb', false);
  });

  it('does not use a letter twice', () => {
    check('ab*ba', 'aba', false);
    check('a*b*b', 'ab', false);
    check('ab*ba', 'abba', true);
  });

  it('agrees with a regular expression', () => {
    const text = (of: string) => fc.string({ unit: fc.constantFrom(...of), maxLength: 8 });
    fc.assert(
      fc.property(text('ab*.'), text('ab*.'), (pattern, value) => {
        const parts = pattern.split('*').map((part) => part.replaceAll('.', '\\.'));
        check(pattern, value, new RegExp(`^${parts.join('.*')}$`, 's').test(value));
      }),
      { numRuns: 2_000 },
    );
  });

  it('takes no time to speak of for a long text that nearly matches', () => {
    check(`${'*a'.repeat(20)}*b`, 'a'.repeat(16_000), false);
  });
});
