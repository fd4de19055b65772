/** Text in messages: how it is shortened and quoted. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { hasControlCharacter, quoteShort, truncate } from '#foundation';

describe('truncate', () => {
  for (const [text, charactersMax, expected] of [
    ['', 0, ''],
    ['a', 0, '…'],
    ['abc', 3, 'abc'],
    ['abcd', 3, 'abc…'],
    ['😀😀😀', 3, '😀😀😀'],
    ['a😀b', 2, 'a😀…'],
    ['ab\ud83d', 2, 'ab…'],
  ] as const)
    it(`makes ${JSON.stringify(text)} ${expected} with at most ${charactersMax} characters`, () => {
      assert.equal(truncate(text, charactersMax), expected);
    });

  it('keeps the beginning of any text, in whole characters', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 20 });
    fc.assert(
      fc.property(text, fc.nat({ max: 20 }), (whole, charactersMax) => {
        const [characters, cut] = [[...whole], [...truncate(whole, charactersMax)]];
        if (characters.length <= charactersMax) assert.deepEqual(cut, characters);
        else assert.deepEqual(cut, [...characters.slice(0, charactersMax), '…']);
      }),
    );
  });
});

describe('quoteShort', () => {
  for (const [text, expected] of [
    ['a"b\n', '"a\\"b\\n"'],
    ['😀'.repeat(41), `"${'😀'.repeat(40)}…"`],
    ['\ufeffa b\u00a0c\u200b\u{e0001}é', '"\\ufeffa b\\u00a0c\\u200b\\udb40\\udc01é"'],
  ] as const)
    it(`shows ${expected}`, () => assert.equal(quoteShort(text), expected));

  it('shortens to the number of characters that it is given', () => {
    assert.equal(quoteShort('abc', { charactersMax: 2 }), '"ab…"');
  });
});

it('hasControlCharacter finds those of ASCII and of Latin-1, and no other invisible character', () => {
  assert.deepEqual(['a\tb', '\x7f', '\u0085', ' \u00a0\u200b'].map(hasControlCharacter), [true, true, true, false]);
});
