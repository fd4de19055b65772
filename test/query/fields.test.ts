/** The arguments `fields` and `sort`, which list names of fields. */
import assert from 'node:assert/strict';
import { parseFields, parseSort } from '../../src/query/fields.ts';
import { createHotelView } from './hotel-view.ts';

const view = createHotelView();
const names = [...view.fields.keys()];

describe('parseFields', () => {
  const check = (text: string, fields: readonly string[] | undefined) =>
    assert.deepEqual(parseFields(view, text), { ok: true, value: fields });

  const refuse = (text: string, detail: string) => assert.deepEqual(parseFields(view, text), { ok: false, detail });

  it('returns each name once, in the order of the view, and undefined for all fields', () => {
    check('city,id', ['id', 'city']);
    check('id,id,id', ['id']);
    for (const all of ['*', 'id,*', names.toReversed().join(',')]) check(all, undefined);
  });

  it('lists known fields, and at most five unknown ones', () => {
    refuse('id,ctiy', '"ctiy" is not a field; known: id, name, city, open, code');
    refuse('a,b,c,d,e', '"a", "b", "c", "d", "e" are not fields; known: id, name, city, open, code');
    refuse('a,b,c,d,e,f', '"a", "b", "c", "d", "e" and others are not fields; known: id, name, city, open, code');
  });

  it('accepts only exact public names', () => {
    for (const text of ['town', 'ID', ' id', 'id,', ',', '__proto__', 'constructor']) {
      assert.ok(!parseFields(view, text).ok, text);
    }
  });
});

describe('parseSort', () => {
  const check = (text: string, ...expected: readonly [column: string, descending: boolean][]) =>
    assert.deepEqual(parseSort(view, text), {
      ok: true,
      value: expected.map(([column, descending]) => ({ column, descending })),
    });

  const refuse = (text: string, detail: RegExp) => {
    const parsed = parseSort(view, text);
    assert.ok(!parsed.ok, `accepted ${text}`);
    assert.match(parsed.detail, detail);
  };

  it('returns columns in the given order, followed by the key unless it is among them', () => {
    check('city', ['town', false], ['id', false]);
    check('-city,name', ['town', true], ['name', false], ['id', false]);
    check('-id', ['id', true]);
    check('id,name', ['id', false], ['name', false]);
    check('code', ['stars', false], ['id', false]);
  });

  it('lists known fields, and at most five unknown ones', () => {
    refuse('town', /"town" is not a field; known: id, name/);
    refuse('name,', /"" is not a field/);
    refuse('--name', /"-name" is not a field/);
    refuse('+name', /"\+name" is not a field/);
  });

  it('rejects a field that is listed twice', () => refuse('name,-name', /lists name more than once/));
});
