/** `sort` names an order, and every order is made total. */
import assert from 'node:assert/strict';
import { parseSort, withTieBreaker } from '../../src/query/sort.ts';
import { createHotelView } from './hotel-view.ts';

const view = createHotelView();

describe('parseSort', () => {
  const check = (text: string, ...expected: readonly [column: string, descending: boolean][]) =>
    assert.deepEqual(parseSort(view, text), {
      ok: true,
      sort: expected.map(([column, descending]) => ({ column, descending })),
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

describe('withTieBreaker', () => {
  it('sorts by the key when nothing else is wanted', () => {
    assert.deepEqual(withTieBreaker<{ id: number }>([], 'id'), [{ column: 'id', descending: false }]);
  });
});
