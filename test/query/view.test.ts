/** A row shows the fields that were asked for, under their public names, in the view's order. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { z } from 'zod';
import { createListParser, createView, parseItemQuery, type Scalar, toPublicItem, urlField } from '#query';
import { createScalarReader, parseWholeNumber } from '../../src/query/view.ts';
import { createHotelView, hotel, place } from './hotel-view.ts';

const view = createHotelView();

describe('present', () => {
  const check = (fields: readonly string[] | undefined, expected: object) => {
    const item = toPublicItem(view, hotel, fields, place);
    assert.deepEqual(item, expected);
    assert.deepEqual(Object.keys(item), Object.keys(expected));
  };

  it('shows every field in order when none is asked for', () => {
    check(undefined, { id: 7, name: 'Astoria', city: 'Bern', open: true, code: 's4' });
  });

  it('shows only what is asked for, in the order of the view', () => {
    check(['code', 'id'], { id: 7, code: 's4' });
    check([], {});
  });

  it('shows no column that the view does not name', () => {
    const row = { ...hotel, secret: 'x' };
    assert.ok(!('secret' in toPublicItem(view, row, undefined, place)));
    assert.deepEqual(toPublicItem(view, row, ['secret', 'town', '__proto__'], place), {});
  });

  it('shows of any choice of fields the same values as the whole item does', () => {
    const whole = toPublicItem(view, hotel, undefined, place);
    fc.assert(
      fc.property(fc.subarray(Object.keys(whole)), (names) => {
        const expected = Object.fromEntries(Object.entries(whole).filter(([name]) => names.includes(name)));
        assert.deepEqual(toPublicItem(view, hotel, names, place), expected);
      }),
    );
  });

  it('hands the place to computed fields', () => {
    const placed = createView<{ id: number }>({
      key: 'id',
      fields: { self: { column: 'id', schema: z.string(), toPublic: (id, at) => `${at}${id}` } },
    });
    assert.deepEqual(toPublicItem(placed, { id: 3 }, undefined, 'http://a/'), { self: 'http://a/3' });
  });
});

describe('a field that is only shown', () => {
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

  it('stands in its place, as plain data, and is absent where there is none', () => {
    assert.deepEqual(Object.entries(toPublicItem(rooms, { id: 1, cents: 250 }, undefined, 'x/')), [
      ['price', { amount: '2.50', at: 'x/' }],
      ['id', 1],
    ]);
    assert.deepEqual(toPublicItem(rooms, { id: 1, cents: null }, undefined, 'x/'), { id: 1 });
  });

  it('can be asked for by name, but neither filtered nor sorted by', () => {
    assert.deepEqual(parseItemQuery(rooms, '?fields=price').fields, ['price']);
    const parse = createListParser(rooms);
    assert.throws(() => parse('?price=1', ''), { slug: 'bad-argument' });
    assert.throws(() => parse('?sort=price', ''), {
      errors: [{ pointer: '#/query/sort', detail: '"price" is no field; known: id' }],
    });
  });

  it('makes the view depend on the place, as a computed field does', () => {
    assert.deepEqual([rooms.usesBaseUrl, view.usesBaseUrl], [true, true]);
    assert.equal(
      createView<Room>({ key: 'id', fields: { id: { column: 'id', schema: z.int32() } } }).usesBaseUrl,
      false,
    );
  });
});

describe('createView', () => {
  const refuse = (name: string) =>
    assert.throws(
      () => createView<{ id: number }>({ key: 'id', fields: { [name]: { column: 'id', schema: z.int32() } } }),
      TypeError,
    );

  it('refuses names that would not keep their order or their place in an object', () => {
    for (const name of ['0', '__proto__', 'camelCase', 'a-b', '']) refuse(name);
  });

  it('refuses a field without a scalar schema', () => {
    const schema = z.array(z.string()) as unknown as z.ZodString;
    assert.throws(() => createView<{ id: string }>({ key: 'id', fields: { id: { column: 'id', schema } } }), TypeError);
  });

  it('cannot be changed afterwards', () => {
    assert.ok(Object.isFrozen(view) && Object.isFrozen(view.list) && Object.isFrozen(view.list[0]));
  });
});

describe('urlField', () => {
  interface Row {
    readonly id: string;
  }

  const baseUrl = 'https://example.test/api/v1/';
  const url = urlField<Row>({ column: 'id', schema: z.string().min(1), path: 'things/' });
  const things = createView<Row>({ key: 'id', fields: { url } });
  const parse = createListParser(things);
  const filterFor = (text: string) => parse(`?url=${encodeURIComponent(text)}`, baseUrl).filters[0]?.value;

  it('shows the base URL, the path and the encoded key', () => {
    assert.deepEqual(toPublicItem(things, { id: 'a b/c' }, undefined, baseUrl), { url: `${baseUrl}things/a%20b%2Fc` });
  });

  it('finds the key again in every URL that it made', () => {
    const key = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 50 }).filter((text) => !text.includes('\0'));
    fc.assert(
      fc.property(key, (id) => {
        assert.equal(filterFor(String(toPublicItem(things, { id }, undefined, baseUrl)['url'])), id);
      }),
    );
  });

  it('turns the key back into the type of its column', () => {
    const numbered = createView<{ id: number }>({
      key: 'id',
      fields: { url: urlField({ column: 'id', schema: z.int32() }) },
    });
    const { filters } = createListParser(numbered)(`url=${baseUrl}12`, baseUrl);
    assert.deepEqual(filters, [{ column: 'id', value: 12 }]);
  });

  it('refuses URLs of other places, of nothing, and of more than an item', () => {
    const others = [
      'https://other.test/api/v1/things/1',
      `${baseUrl}things/`,
      `${baseUrl}things/1/2`,
      `${baseUrl}things/1?a=b`,
    ];
    for (const text of [...others, `${baseUrl}things/%zz`, 'things/1', '/api/v1/things/1']) {
      assert.throws(() => filterFor(text), { slug: 'bad-argument' });
    }
  });
});

describe('createScalarReader', () => {
  const check = (schema: z.ZodType<Scalar>, text: string, expected: Scalar) =>
    assert.deepEqual(createScalarReader(schema)(text), { ok: true, value: expected });

  const refuse = (schema: z.ZodType<Scalar>, text: string, detail: RegExp) => {
    const reading = createScalarReader(schema)(text);
    assert.ok(!reading.ok, `took ${text}`);
    assert.match(reading.detail, detail);
  };

  it('gives text as it stands, checked by the schema', () => {
    check(z.string(), ' 1 ', ' 1 ');
    check(z.enum(['pending', 'confirmed']), 'pending', 'pending');
    check(z.uuid().toLowerCase(), '0B6F1C52-7D7E-4A57-9D43-5F0F6C1D2A01', '0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01');
    refuse(z.uuid(), '12', /UUID/);
  });

  it('says which values an enum has', () => {
    refuse(z.enum(['pending', 'confirmed']), 'lost', /"pending"\|"confirmed"/);
  });

  it('reads numbers without blanks, exponents, signs of plus or hexadecimals', () => {
    check(z.int32(), '-12', -12);
    check(z.number(), '1.50', 1.5);
    for (const text of ['1e3', ' 1', '+1', '0x10', '1.', '.5', '', 'NaN', 'Infinity', '1.5']) {
      refuse(z.int32(), text, /must be an integer/);
    }
    refuse(z.number(), '1e3', /must be a number/);
  });

  it('refuses numbers that a column or JavaScript cannot hold', () => {
    refuse(z.int32(), '2147483648', /Too big/);
    refuse(z.number(), '9007199254740993', /must be a number/);
  });

  it('reads true and false and no other spelling of them', () => {
    check(z.boolean(), 'true', true);
    check(z.boolean(), 'false', false);
    for (const text of ['1', 'TRUE', 'yes', '']) refuse(z.boolean(), text, /true or false/);
  });

  it('sees through nullable and optional checks to the plain type', () => {
    check(z.int32().nullable(), '7', 7);
    check(z.string().min(1).max(3), 'abc', 'abc');
  });

  it('refuses at once a schema that no scalar fits', () => {
    assert.throws(() => createScalarReader(z.null()), TypeError);
  });
});

describe('parseWholeNumber', () => {
  const check = (text: string, expected: number | undefined) => assert.equal(parseWholeNumber(text), expected);

  it('takes digits alone', () => {
    check('0', 0);
    check('007', 7);
    check('9007199254740991', Number.MAX_SAFE_INTEGER);
    for (const text of ['', '-1', '+1', '1.0', '1e2', ' 1', '0x1', '١']) check(text, undefined);
  });
});
