/** A single item takes `fields` and nothing else. */
import assert from 'node:assert/strict';
import type { Problem } from '#http';
import { parseItemQuery } from '#query';
import { createHotelView } from './hotel-view.ts';

const view = createHotelView();

describe('parseItemQuery', () => {
  const check = (search: string, fields: readonly string[] | undefined) =>
    assert.deepEqual(parseItemQuery(view, search), { fields });

  it('returns the fields that are asked for', () => {
    check('', undefined);
    check('?', undefined);
    check('?fields=*', undefined);
    check('?fields=city,id', ['id', 'city']);
  });

  it('refuses all other arguments at once, and names the known one', () => {
    assert.throws(
      () => parseItemQuery(view, '?limit=1&fields=x&city=Bern&a=&a='),
      ({ slug, errors = [] }: Problem) => {
        assert.equal(slug, 'bad-argument');
        const names = [...new Set(errors.map(({ parameter }) => parameter))];
        assert.deepEqual(names.toSorted(), ['a', 'city', 'fields', 'limit']);
        const limit = errors.find(({ parameter }) => parameter === 'limit');
        assert.equal(limit?.detail, '"limit" is no argument here; known: fields');
        return true;
      },
    );
  });
});
