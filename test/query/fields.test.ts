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

  it('gives names in the order of the view, each once', () => {
    check('city,id', ['id', 'city']);
    check('id,id,id', ['id']);
  });

  it('takes the star, and every name together, as all of them', () => {
    check('*', undefined);
    check('id,*', undefined);
    check(names.toReversed().join(','), undefined);
  });

  it('names what it does not know and what it knows', () => {
    refuse('id,ctiy', '"ctiy" is no field; known: id, name, city, open, code');
    refuse('a,b', '"a", "b" are no fields; known: id, name, city, open, code');
  });

  it('knows public names only, without blanks, in their case', () => {
    for (const text of ['town', 'ID', ' id', 'id,', ',', '__proto__', 'constructor']) {
      assert.ok(!parseFields(view, text).ok, text);
    }
  });

  it('says back a few of many inventions', () => {
    const reading = parseFields(view, Array.from({ length: 500 }, (_, index) => `x${index}`).join(','));
    assert.ok(!reading.ok && reading.detail.length < 200);
  });

  it('gives exactly the names that were asked for, in whatever order and number', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...names), { minLength: 1 }), (asked) => {
        const reading = parseFields(view, asked.join(','));
        assert.ok(reading.ok);
        assert.deepEqual(
          reading.value ?? names,
          names.filter((name) => asked.includes(name)),
        );
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

  it('gives columns by weight and ends with the key', () => {
    check('city', ['town', false], ['id', false]);
    check('-city,name', ['town', true], ['name', false], ['id', false]);
  });

  it('adds no key where the client named it', () => {
    check('-id', ['id', true]);
    check('id,name', ['id', false], ['name', false]);
  });

  it('sorts a computed field by its column', () => check('code', ['stars', false], ['id', false]));

  it('names what it does not know and what it knows', () => {
    refuse('town', /"town" is no field; known: id, name/);
    refuse('name,', /"" is no field/);
    refuse('--name', /"-name" is no field/);
    refuse('+name', /"\+name" is no field/);
  });

  it('refuses a field that is named twice', () => refuse('name,-name', /names name more than once/));
});
