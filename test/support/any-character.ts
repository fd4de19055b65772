/** An arbitrary for any Unicode character, for the `unit` of a string. That of fast-check takes a second to prepare. */
import fc from 'fast-check';

export const anyCharacter = fc
  .oneof(
    fc.integer({ min: 0, max: 0x7f }),
    fc.integer({ min: 0x80, max: 0xffff }),
    fc.integer({ max: 0x10ffff, min: 0 }),
  )
  .filter((code) => code < 0xd800 || code > 0xdfff)
  .map((code) => String.fromCodePoint(code));
