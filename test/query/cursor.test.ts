/** Cursors: the position after a row as text. Any other text is rejected. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { z } from 'zod';
import { Problem } from '#http';
import { createListParser, createView, formatCursor, urlField } from '#query';
import { anyCharacter } from '../support/any-character.ts';
import { baseUrl, createHotelView, type Hotel, hotel } from './hotel-view.ts';

const view = createHotelView();
const parse = createListParser(view, { defaultSort: [{ column: 'name', descending: false }] });

function detailOf(search: string): string {
  try {
    parse(search, baseUrl);
  } catch (error) {
    assert.ok(error instanceof Problem && error.slug === 'bad-argument');
    const [fault, ...others] = error.errors ?? [];
    assert.deepEqual([fault?.parameter, others], ['after', []], search);
    return fault?.detail ?? '';
  }
  return assert.fail(`accepted ${search}`);
}

/** Returns the cursor after a row, in the order of `search`. */
function cursorOf(row: Hotel, search = ''): string {
  return formatCursor(view, parse(search, baseUrl).sort, row, baseUrl) ?? assert.fail('no cursor');
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('a cursor', () => {
  it('contains the values of its row for the columns of the order', () => {
    const { after, offset } = parse(`?after=${cursorOf(hotel)}`, baseUrl);
    assert.deepEqual([after, offset], [['Astoria', 7], 0]);
    assert.deepEqual(parse(`?sort=code,-id&after=${cursorOf(hotel, '?sort=code,-id')}`, baseUrl).after, [4, 7]);
    assert.deepEqual(parse(`?city=Bern&after=${cursorOf(hotel)}`, baseUrl).after, ['Astoria', 7]);
  });

  it('is `start` for the first page', () => {
    assert.deepEqual(parse('?after=start', baseUrl).after, []);
    assert.equal(parse('', baseUrl).after, undefined);
  });

  it('survives formatting and parsing, for every row and order', () => {
    const row = fc.record({
      id: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
      name: fc.string({ unit: anyCharacter, maxLength: 20 }).filter((text) => !text.includes('\0')),
      town: fc
        .string({ unit: anyCharacter, maxLength: 50 })
        .filter((text) => !text.includes('\0') && !/\p{Surrogate}/u.test(text)),
      stars: fc.integer({ min: 0, max: 8 }),
      open: fc.boolean(),
    });
    const term = fc.constantFrom('id', '-id', 'name', '-name', 'city', '-city', 'open', 'code', '-code');
    const sort = fc.uniqueArray(term, { selector: (text) => text.replace('-', ''), minLength: 1 });
    fc.assert(
      fc.property(row, sort, (one, terms) => {
        const search = `?sort=${terms.join()}`;
        const query = parse(`${search}&after=${cursorOf(one, search)}`, baseUrl);
        assert.deepEqual(
          query.after,
          query.sort.map(({ column }) => one[column]),
        );
      }),
    );
  });

  it('prefers a field that shows the column unchanged, so that it does not depend on the base URL', () => {
    const schema = z.int32();
    const fields = { url: urlField<{ id: number }>({ column: 'id', schema }), id: { column: 'id' as const, schema } };
    const placed = createView<{ id: number }>({ key: 'id', fields });
    const { sort } = createListParser(placed)('', '');
    const [one, other] = ['http://a/', 'http://b/'].map((at) => formatCursor(placed, sort, { id: 3 }, at));
    assert.equal(one, other);
  });

  it('is rejected together with an offset, and for another order', () => {
    assert.match(detailOf('?after=start&offset=0'), /offset/);
    assert.match(detailOf(`?sort=-name&after=${cursorOf(hotel)}`), /another order/);
    assert.match(detailOf(`?sort=city,id&after=${cursorOf(hotel)}`), /another order/);
  });

  const broken: readonly (readonly [string, string])[] = [
    ['is not base64url', 'a+b%2F'],
    ['is not JSON', 'abcd'],
    ['is not an array', encode({ 0: 'name,id' })],
    ['is empty', encode([])],
    ['has too few values', encode(['name,id', 'Astoria'])],
    ['has too many values', encode(['name,id', 'Astoria', '7', '8'])],
    ['has a value that is not a string', encode(['name,id', 'Astoria', 7])],
    ['has a value of another type', encode(['name,id', 'Astoria', 'seven'])],
    ['has a number that is too large for the column', encode(['name,id', 'Astoria', '99999999999'])],
    ['has a text that is too long for the column', encode(['name,id', 'x'.repeat(51), '7'])],
    ['has a NUL', encode(['name,id', 'a\0', '7'])],
    ['has null for a column without nulls', encode(['name,id', null, '7'])],
    ['is too long', 'W'.repeat(3000)],
    ['is `start` in upper case', 'START'],
  ];

  for (const [what, text] of broken)
    it(`is rejected when it ${what}`, () =>
      assert.match(detailOf(`?after=${text}`), /is not a cursor of this list.*start/));

  it('is parsed or rejected with a problem, for any text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.jsonValue().map(encode), fc.base64String()), (text) => {
        try {
          parse(`?after=${encodeURIComponent(text)}`, baseUrl);
        } catch (error) {
          assert.ok(error instanceof Problem);
        }
      }),
    );
  });

  it('is undefined when it would be too long for a URL', () => {
    const { sort } = parse('?sort=city', baseUrl);
    assert.equal(formatCursor(view, sort, { ...hotel, town: 'x'.repeat(5000) }, baseUrl), undefined);
  });

  it('can contain null for a nullable column', () => {
    const nullable = createView<{ id: number; seen: string | null }>({
      key: 'id',
      fields: { id: { column: 'id', schema: z.int32() }, seen: { column: 'seen', schema: z.string().nullable() } },
    });
    const read = createListParser(nullable);
    const { sort } = read('?sort=seen', '');
    assert.deepEqual(sort[0], { column: 'seen', descending: false, isNullable: true });
    const cursor = formatCursor(nullable, sort, { id: 1, seen: null }, '');
    assert.deepEqual(read(`?sort=seen&after=${cursor}`, '').after, [null, 1]);
  });
});

describe('total', () => {
  it('is counted unless total=false', () => {
    assert.equal(parse('?total=false', baseUrl).wantsTotal, false);
    assert.notEqual(parse('?total=true', baseUrl).wantsTotal, false);
    assert.throws(() => parse('?total=no', baseUrl), { slug: 'bad-argument' });
  });
});

describe('the order of a list', () => {
  it('can only have columns that items show, because cursors reveal their values', () => {
    const fields = { id: { column: 'id', schema: z.int32() } } as const;
    for (const [key, defaultSort] of [
      ['id', [{ column: 'at', descending: true }]],
      ['at', []],
    ] as const) {
      const view = createView<{ id: number; at: string }>({ key, fields });
      assert.throws(() => createListParser(view, { defaultSort }), /cannot be ordered by at/);
    }
  });
});
