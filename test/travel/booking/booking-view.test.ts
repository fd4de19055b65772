/** Booking references, which people read aloud and write down. */
import assert from 'node:assert/strict';
import { createReference, formatReference, parseReference } from '../../../src/travel/booking/booking-view.ts';

describe('references', () => {
  it('are unique, contain only unambiguous characters, and survive formatting and parsing', () => {
    const references = Array.from({ length: 1_000 }, createReference);
    for (const reference of references) {
      assert.match(reference, /^[\dA-HJKMNP-TV-Z]{8}$/);
      assert.equal(parseReference(formatReference(reference)), reference);
    }
    assert.equal(new Set(references).size, references.length);
  });

  it('can be typed in lower case, without the dash, and with look-alike letters', () => {
    assert.equal(formatReference('01AB9Z1X'), '01AB-9Z1X');
    for (const text of ['01ab-9z1x', '01AB9Z1X', 'OLab-9zix', 'oiab9zlx'])
      assert.equal(parseReference(text), '01AB9Z1X');
  });

  it('are not parsed from any other text', () => {
    for (const text of ['', '01AB', '01AB-9Z1XX', '01AB-9Z1U', '01AB 9Z1X'])
      assert.equal(parseReference(text), undefined);
  });
});
