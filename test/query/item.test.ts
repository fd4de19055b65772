/** A single item takes `fields` and nothing else. */
import assert from 'node:assert/strict';
import { Problem } from '#http';
import { parseItemQuery } from '#query';
import { createHotelView } from './hotel-view.ts';

const view = createHotelView();

describe('parseItemQuery', () => {
  const check = (search: string, fields: readonly string[] | undefined) =>
    assert.deepEqual(parseItemQuery(view, search), { fields });

  it('gives the fields that are asked for', () => {
    check('', undefined);
    check('?', undefined);
    check('?fields=*', undefined);
    check('?fields=city,id', ['id', 'city']);
  });

  it('refuses everything else, all at once', () => {
    assert.throws(
      () => parseItemQuery(view, '?limit=1&fields=x&city=Bern&a=&a='),
      (error) => {
        assert.ok(error instanceof Problem && error.slug === 'bad-argument');
        const pointers = error.errors?.map(({ pointer }) => pointer) ?? [];
        assert.deepEqual(
          [...new Set(pointers)].toSorted(),
          ['a', 'city', 'fields', 'limit'].map((name) => `#/query/${name}`),
        );
        return true;
      },
    );
  });

  it('names the one argument that it knows', () => {
    assert.throws(
      () => parseItemQuery(view, '?limit=1'),
      (error) =>
        error instanceof Problem && /"limit" is no argument here; known: fields/.test(error.errors?.[0]?.detail ?? ''),
    );
  });
});
