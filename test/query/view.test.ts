/** A row shows the fields that were asked for, under their public names, in the view's order. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { z } from 'zod';
import { createListParser, createView, parseItemQuery, toPublicItem } from '#query';
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
