/** The query string of a single item, which accepts only `fields`. */
import assert from 'node:assert/strict';
import type { Problem } from '#http';
import { parseItemQuery } from '#query';
import { createHotelView } from './hotel-view.ts';

const view = createHotelView();

describe('parseItemQuery', () => {
  const check = (search: string, fields: readonly string[] | undefined) =>
    assert.deepEqual(parseItemQuery(view, search), { fields });

  it('returns the requested fields', () => {
    check('', undefined);
    check('?', undefined);
    check('?fields=*', undefined);
    check('?fields=city,id', ['id', 'city']);
  });

  it('reports all other arguments together, and lists the known one', () => {
    assert.throws(
      () => parseItemQuery(view, '?limit=1&fields=x&city=Bern&a=&a='),
      ({ slug, errors = [] }: Problem) => {
        assert.equal(slug, 'bad-argument');
        const names = [...new Set(errors.map(({ parameter }) => parameter))];
        assert.deepEqual(names.toSorted(), ['a', 'city', 'fields', 'limit']);
        const limit = errors.find(({ parameter }) => parameter === 'limit');
        assert.equal(limit?.detail, '"limit" is not an argument here; known: fields');
        return true;
      },
    );
  });
});
