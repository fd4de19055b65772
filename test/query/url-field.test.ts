/** An item's address is its key at a place, and leads back to the key. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { z } from 'zod';
import { createListParser, createView, toPublicItem, urlField } from '#query';

interface Row {
  readonly id: string;
}

const place = 'https://example.test/api/v1/';
const url = urlField<Row>({ column: 'id', schema: z.string().min(1), path: 'things/' });
const view = createView<Row>({ key: 'id', fields: { url } });
const parse = createListParser(view);
const filterFor = (text: string) => parse(`?url=${encodeURIComponent(text)}`, place).filters[0]?.value;

describe('urlField', () => {
  it('shows the place, the path and the encoded key', () => {
    assert.deepEqual(toPublicItem(view, { id: 'a b/c' }, undefined, place), { url: `${place}things/a%20b%2Fc` });
  });

  it('finds the key again in every URL that it made', () => {
    const key = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 50 }).filter((text) => !text.includes('\0'));
    fc.assert(
      fc.property(key, (id) => {
        assert.equal(filterFor(String(toPublicItem(view, { id }, undefined, place)['url'])), id);
      }),
    );
  });

  it('turns the key back into the type of its column', () => {
    const numbered = createView<{ id: number }>({
      key: 'id',
      fields: { url: urlField({ column: 'id', schema: z.int32() }) },
    });
    const { filters } = createListParser(numbered)(`url=${place}12`, place);
    assert.deepEqual(filters, [{ column: 'id', value: 12 }]);
  });

  it('refuses URLs of other places, of nothing, and of more than an item', () => {
    const others = [
      'https://other.test/api/v1/things/1',
      `${place}things/`,
      `${place}things/1/2`,
      `${place}things/1?a=b`,
    ];
    for (const text of [...others, `${place}things/%zz`, 'things/1', '/api/v1/things/1']) {
      assert.throws(() => filterFor(text), { slug: 'bad-argument' });
    }
  });
});
