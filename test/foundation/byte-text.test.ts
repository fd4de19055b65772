/** Text with one character for each byte: how it is decoded and encoded. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { bytesFromText, decodeByte, hexOfCharacter, isAscii, textFromBytes } from '#foundation';

describe('textFromBytes', () => {
  it('returns the text whose bytes bytesFromText returns', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 20 }), (text) => {
        const bytes = bytesFromText(text);
        assert.match(bytes, /^[\0-\xff]*$/);
        assert.equal(bytes.length, Buffer.byteLength(text));
        assert.equal(textFromBytes(bytes), text);
      }),
    );
  });

  it('replaces bytes that are not UTF-8', () => assert.equal(textFromBytes('a\xff\xc3\xa9'), 'a\ufffdé'));
});

it('isAscii rejects characters from U+0080', () => {
  assert.deepEqual(['', 'a\x7f', 'a\x80', '\u4e2d'].map(isAscii), [true, true, false, false]);
});

it('decodeByte decodes both forms of an escape', () => {
  assert.deepEqual(['%2F', '%ff', '%u002f'].map(decodeByte), ['/', '\xff', '/']);
});

it('hexOfCharacter shows a byte as itself and another character in UTF-8', () => {
  assert.deepEqual(['\n', '\xe9', '\u0101', '😀'].map(hexOfCharacter), ['0a', 'e9', 'c481', 'f09f9880']);
});
