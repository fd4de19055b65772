/** A reference survives being read aloud and written down. */
import assert from 'node:assert/strict';
import { createReference, readReference, showReference } from '../../../src/services/booking/reference.ts';

describe('references', () => {
  it('are of letters that nobody mishears, and differ', () => {
    const references = Array.from({ length: 1_000 }, createReference);
    for (const reference of references) assert.match(reference, /^[\dA-HJKMNP-TV-Z]{8}$/);
    assert.equal(new Set(references).size, references.length);
  });

  it('are found again as they were shown', () => {
    for (let count = 0; count < 100; count += 1) {
      const reference = createReference();
      assert.equal(readReference(showReference(reference)), reference);
    }
  });

  it('are understood when they are written in small letters, without the dash, or with the letters that look alike', () => {
    assert.equal(showReference('01AB9Z1X'), '01AB-9Z1X');
    for (const text of ['01ab-9z1x', '01AB9Z1X', 'OLab-9zix', 'oiab9zlx'])
      assert.equal(readReference(text), '01AB9Z1X');
  });

  for (const text of ['', '01AB', '01AB-9Z1XX', '01AB-9Z1U', '01AB 9Z1X']) {
    it(`are not ${JSON.stringify(text)}`, () => assert.equal(readReference(text), undefined));
  }
});
