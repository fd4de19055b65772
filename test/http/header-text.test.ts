/** Header values as text: from UTF-8 to Node's characters and back. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { decodeHeader, encodeHeader } from '#http';

const anyText = fc.string({ unit: 'binary', maxLength: 50 });
const anyBytes = fc.uint8Array({ maxLength: 50 }).map((bytes) => Buffer.from(bytes).toString('latin1'));

describe('the text of a header value', () => {
  it('survives the way there and back, and has no ASCII of its own on the way', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const value = encodeHeader(text);
        assert.equal(decodeHeader(value), text);
        assert.match(value, /^[\0-\xff]*$/);
        assert.deepEqual(value.match(/\p{ASCII}/gu), text.match(/\p{ASCII}/gu));
      }),
    );
  });

  it('is UTF-8, or keeps a character for each byte', () => {
    fc.assert(
      fc.property(anyBytes, (value) => {
        const text = decodeHeader(value);
        assert.ok(text === value || encodeHeader(text) === value);
        assert.ok(text.isWellFormed());
      }),
    );
  });
});
