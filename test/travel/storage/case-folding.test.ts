/** Case folding: a text and what a database replaces in its own text agree on every letter of Unicode. */
import assert from 'node:assert/strict';
import { foldCase } from '../../../src/travel/storage/case-folding.ts';

/** Every letter of Unicode that has another case. */
const cased = Array.from({ length: 0x10_ffff }, (_, index) => index + 1)
  .filter((code) => code < 0xd800 || code > 0xdfff)
  .map((code) => String.fromCodePoint(code))
  .filter((letter) => letter.toLowerCase() !== letter || letter.toUpperCase() !== letter);

describe('foldCase', () => {
  it('replaces every letter outside ASCII that folds to a letter of the text, and folds no further', () => {
    for (const letter of cased) {
      const { text } = foldCase(letter);
      if (text === letter) continue;
      const { text: again, replacements } = foldCase(text);
      assert.equal(again, text);
      const found = replacements.filter(([other]) => other === letter);
      assert.deepEqual(found, letter < '\x80' ? [] : [[letter, text]], letter.codePointAt(0)?.toString(16));
    }
  });

  it('folds ASCII letters as the function lower of both databases does', () => {
    for (const letter of cased.filter((one) => one < '\x80')) assert.equal(foldCase(letter).text, letter.toLowerCase());
  });
});
