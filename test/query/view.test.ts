/** Views: which fields of a row are shown, under which names, and how text is parsed as the value of a field. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { z } from 'zod';
import { createListParser, createView, parseItemQuery, type Scalar, toPublicItem, urlField } from '#query';
import { createScalarReader, parseWholeNumber } from '../../src/query/view.ts';
import { anyCharacter } from '../support/any-character.ts';
import { baseUrl, createHotelView, hotel } from './hotel-view.ts';

const view = createHotelView();

describe('toPublicItem', () => {
  const check = (fields: readonly string[] | undefined, expected: object) => {
    const item = toPublicItem(view, hotel, fields, baseUrl);
    assert.deepEqual(item, expected);
    assert.deepEqual(Object.keys(item), Object.keys(expected));
  };

  it('shows the requested fields, or all, in the order of the view', () => {
    check(undefined, { id: 7, name: 'Astoria', city: 'Bern', open: true, code: 's4' });
    check(['code', 'id'], { id: 7, code: 's4' });
    check([], {});
  });

  it('hides columns that are not fields of the view', () => {
    const row = { ...hotel, secret: 'x' };
    assert.ok(!('secret' in toPublicItem(view, row, undefined, baseUrl)));
    assert.deepEqual(toPublicItem(view, row, ['secret', 'town', '__proto__'], baseUrl), {});
  });

  it('passes the base URL to computed fields', () => {
    const self = { column: 'id' as const, schema: z.string(), toPublic: (id: Scalar, at: string) => `${at}${id}` };
    const placed = createView<{ id: number }>({ key: 'id', fields: { self } });
    assert.deepEqual(toPublicItem(placed, { id: 3 }, undefined, 'http://a/'), { self: 'http://a/3' });
  });
});

describe('a derived field', () => {
  interface Room {
    readonly id: number;
    readonly cents: number | null;
  }
  const rooms = createView<Room>({
    key: 'id',
    fields: {
      price: {
        schema: z.object({ amount: z.string(), at: z.string() }).optional(),
        show: ({ cents }, at) => (cents === null ? undefined : { amount: (cents / 100).toFixed(2), at }),
      },
      id: { column: 'id', schema: z.int32() },
    },
  });

  it('is shown in its position, and omitted when it is undefined', () => {
    assert.deepEqual(Object.entries(toPublicItem(rooms, { id: 1, cents: 250 }, undefined, 'x/')), [
      ['price', { amount: '2.50', at: 'x/' }],
      ['id', 1],
    ]);
    assert.deepEqual(toPublicItem(rooms, { id: 1, cents: null }, undefined, 'x/'), { id: 1 });
  });

  it('can be selected by name, but cannot filter or sort', () => {
    assert.deepEqual(parseItemQuery(rooms, '?fields=price').fields, ['price']);
    const parse = createListParser(rooms);
    assert.throws(() => parse('?price=1', ''), { slug: 'bad-argument' });
    assert.throws(() => parse('?sort=price', ''), {
      errors: [{ parameter: 'sort', detail: '"price" is not a field; known: id' }],
    });
  });

  it('makes the view depend on the base URL, like a computed field', () => {
    assert.deepEqual([rooms.usesBaseUrl, view.usesBaseUrl], [true, true]);
    assert.equal(
      createView<Room>({ key: 'id', fields: { id: { column: 'id', schema: z.int32() } } }).usesBaseUrl,
      false,
    );
  });
});

describe('createView', () => {
  it('rejects a field whose name is not in snake_case or whose schema is not scalar', () => {
    const create = (name: string, schema: z.ZodType<Scalar>) =>
      createView<{ id: number }>({ key: 'id', fields: { [name]: { column: 'id', schema } } });
    for (const name of ['0', '__proto__', 'camelCase', 'a-b', ''])
      assert.throws(() => create(name, z.int32()), TypeError);
    assert.throws(() => create('id', z.array(z.string()) as unknown as z.ZodString), TypeError);
  });

  it('returns a frozen view', () => {
    assert.ok(Object.isFrozen(view) && Object.isFrozen(view.list) && Object.isFrozen(view.list[0]));
  });
});

describe('urlField', () => {
  interface Row {
    readonly id: string;
  }

  const apiUrl = 'https://example.test/api/v1/';
  const url = urlField<Row>({ column: 'id', schema: z.string().min(1), path: 'things/' });
  const things = createView<Row>({ key: 'id', fields: { url } });
  const parse = createListParser(things);
  const filterFor = (text: string) => parse(`?url=${encodeURIComponent(text)}`, apiUrl).filters[0]?.value;

  it('shows the base URL, the path and the encoded key', () => {
    assert.deepEqual(toPublicItem(things, { id: 'a b/c' }, undefined, apiUrl), { url: `${apiUrl}things/a%20b%2Fc` });
  });

  it('parses the key from every URL that it shows', () => {
    const key = fc.string({ unit: anyCharacter, minLength: 1, maxLength: 50 }).filter((text) => !text.includes('\0'));
    fc.assert(
      fc.property(key, (id) => {
        assert.equal(filterFor(String(toPublicItem(things, { id }, undefined, apiUrl)['url'])), id);
      }),
    );
  });

  it('returns the key with the type of its column', () => {
    const numbered = createView<{ id: number }>({
      key: 'id',
      fields: { url: urlField({ column: 'id', schema: z.int32() }) },
    });
    const { filters } = createListParser(numbered)(`url=${apiUrl}12`, apiUrl);
    assert.deepEqual(filters, [{ column: 'id', value: 12 }]);
  });

  it('rejects relative URLs, URLs of other servers, and URLs that are not of an item', () => {
    const ends = ['', '1/2', '1?a=b', '%zz', '%00'].map((end) => `${apiUrl}things/${end}`);
    for (const text of [...ends, 'https://other.test/api/v1/things/1', 'things/1', '/api/v1/things/1'])
      assert.throws(() => filterFor(text), { slug: 'bad-argument' });
  });
});

describe('createScalarReader', () => {
  const check = (schema: z.ZodType<Scalar>, text: string, expected: Scalar) =>
    assert.deepEqual(createScalarReader(schema)(text), { ok: true, value: expected });

  const refuse = (schema: z.ZodType<Scalar>, text: string, detail: RegExp) => {
    const parsed = createScalarReader(schema)(text);
    assert.ok(!parsed.ok, `accepted ${text}`);
    assert.match(parsed.detail, detail);
  };

  it('returns text unchanged if the schema accepts it', () => {
    check(z.string(), ' 1 ', ' 1 ');
    check(z.string().min(1).max(3), 'abc', 'abc');
    check(z.enum(['pending', 'confirmed']), 'pending', 'pending');
    check(z.uuid().toLowerCase(), '0B6F1C52-7D7E-4A57-9D43-5F0F6C1D2A01', '0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01');
    refuse(z.uuid(), '12', /UUID/);
    refuse(z.enum(['pending', 'confirmed']), 'lost', /^must be "pending" or "confirmed"$/);
  });

  it('parses plain decimal numbers that fit the column and JavaScript', () => {
    check(z.int32(), '-12', -12);
    check(z.int32().nullable(), '7', 7);
    check(z.number(), '1.50', 1.5);
    for (const text of ['1e3', ' 1', '+1', '0x10', '1.', '.5', '', 'NaN', 'Infinity', '1.5'])
      refuse(z.int32(), text, /must be an integer/);
    refuse(z.int32(), '2147483648', /^must be at most 2147483647$/);
    for (const text of ['1e3', '9007199254740993']) refuse(z.number(), text, /must be a number/);
  });

  it('parses only the exact words true and false', () => {
    check(z.boolean(), 'true', true);
    check(z.boolean(), 'false', false);
    for (const text of ['1', 'TRUE', 'yes', '']) refuse(z.boolean(), text, /true or false/);
  });

  it('throws for a schema that is not that of a scalar', () => {
    assert.throws(() => createScalarReader(z.null()), TypeError);
  });
});

describe('parseWholeNumber', () => {
  it('accepts only digits', () => {
    for (const [text, value] of Object.entries({ 0: 0, '007': 7, 9007199254740991: Number.MAX_SAFE_INTEGER }))
      assert.equal(parseWholeNumber(text), value);
    for (const text of ['', '-1', '+1', '1.0', '1e2', ' 1', '0x1', '١'])
      assert.equal(parseWholeNumber(text), undefined);
  });
});
