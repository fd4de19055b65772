/** `fields` names the members of a partial item. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parseFields, parseSort } from '../../src/query/fields.ts';
import { createHotelView } from './hotel-view.ts';

const view = createHotelView();
const names = [...view.fields.keys()];

describe('parseFields', () => {
  const check = (text: string, fields: readonly string[] | undefined) =>
    assert.deepEqual(parseFields(view, text), { ok: true, value: fields });

  const refuse = (text: string, detail: string) => assert.deepEqual(parseFields(view, text), { ok: false, detail });

  it('returns names in the order of the view, each once, and undefined for all of them', () => {
    check('city,id', ['id', 'city']);
    check('id,id,id', ['id']);
    for (const all of ['*', 'id,*', names.toReversed().join(',')]) check(all, undefined);
  });

  it('names the unknown and the known fields', () => {
    refuse('id,ctiy', '"ctiy" is no field; known: id, name, city, open, code');
    refuse('a,b', '"a", "b" are no fields; known: id, name, city, open, code');
  });

  it('accepts only exact public names', () => {
    for (const text of ['town', 'ID', ' id', 'id,', ',', '__proto__', 'constructor']) {
      assert.ok(!parseFields(view, text).ok, text);
    }
  });

  it('repeats only a few of many unknown names', () => {
    const reading = parseFields(view, Array.from({ length: 500 }, (_, index) => `x${index}`).join(','));
    assert.ok(!reading.ok && reading.detail.length < 200);
  });

  it('returns exactly the names that were asked for, in any order and number', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...names), { minLength: 1 }), (asked) => {
        const reading = parseFields(view, asked.join(','));
        const expected = names.filter((name) => asked.includes(name));
        assert.deepEqual(reading.ok && (reading.value ?? names), expected);
      }),
    );
  });
});

describe('parseSort', () => {
  const check = (text: string, ...expected: readonly [column: string, descending: boolean][]) =>
    assert.deepEqual(parseSort(view, text), {
      ok: true,
      value: expected.map(([column, descending]) => ({ column, descending })),
    });

  const refuse = (text: string, detail: RegExp) => {
    const reading = parseSort(view, text);
    assert.ok(!reading.ok, `took ${text}`);
    assert.match(reading.detail, detail);
  };

  it('returns columns in the given order, and the key at the end unless it is named', () => {
    check('city', ['town', false], ['id', false]);
    check('-city,name', ['town', true], ['name', false], ['id', false]);
    check('-id', ['id', true]);
    check('id,name', ['id', false], ['name', false]);
    check('code', ['stars', false], ['id', false]);
  });

  it('names the unknown and the known fields', () => {
    refuse('town', /"town" is no field; known: id, name/);
    refuse('name,', /"" is no field/);
    refuse('--name', /"-name" is no field/);
    refuse('+name', /"\+name" is no field/);
  });

  it('refuses a field that is named twice', () => refuse('name,-name', /names name more than once/));
});
