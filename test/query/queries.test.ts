/** The query strings of a collection and of an item: what clients can request, and how invalid requests are rejected. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { z } from 'zod';
import { Problem } from '#http';
import { createListParser, createView, type ListQuery, parseItemQuery } from '#query';
import { anyCharacter } from '../support/any-character.ts';
import { baseUrl, createHotelView, type Hotel } from './hotel-view.ts';

const view = createHotelView();
const parse = createListParser(view, {
  searchable: ['name', 'town'],
  defaultSort: [{ column: 'name', descending: false }],
});

const defaults: ListQuery<Hotel> = {
  offset: 0,
  limit: 20,
  fields: undefined,
  filters: [],
  search: undefined,
  sort: [
    { column: 'name', descending: false },
    { column: 'id', descending: false },
  ],
};

function faultsOf(search: string): readonly (readonly [string, string])[] {
  try {
    parse(search, baseUrl);
    return [];
  } catch (error) {
    assert.ok(error instanceof Problem && error.status === 400 && error.slug === 'bad-argument');
    return (error.errors ?? []).map(({ parameter = '', detail }) => [parameter, detail]);
  }
}

describe('createListParser', () => {
  const check = (search: string, expected: Partial<ListQuery<Hotel>>) =>
    assert.deepEqual(parse(search, baseUrl), { ...defaults, ...expected });

  const refuse = (search: string, name: string, detail: RegExp) => {
    const faults = faultsOf(search);
    assert.deepEqual(
      faults.map(([pointer]) => pointer),
      [name],
      search,
    );
    assert.match(faults[0]?.[1] ?? '', detail);
  };

  it('returns the same defaults object for every empty query string', () => {
    check('', {});
    assert.equal(parse('', baseUrl), parse('?', baseUrl));
  });

  it('returns frozen data', () => {
    for (const query of [parse('', baseUrl), parse('?city=Bern&q=a&fields=id&sort=name', baseUrl)])
      assert.ok(Object.values(query).every((value) => Object.isFrozen(value)) && Object.isFrozen(query));
  });

  it('parses offset and limit, and reduces a limit above 100 to 100', () => {
    check('?offset=40&limit=5', { offset: 40, limit: 5 });
    check(`?offset=${Number.MAX_SAFE_INTEGER}`, { offset: Number.MAX_SAFE_INTEGER });
    for (const text of ['100', '101', '9'.repeat(30)]) check(`?limit=${text}`, { limit: 100 });
    for (const text of ['0', '-1', '1.5', '1e1', 'ten', '0x10', '%201'])
      refuse(`?limit=${text}`, 'limit', /^must be a whole number, 1 or more; values above 100 are reduced to 100$/);
    for (const text of ['-1', '1.5', 'x', '9007199254740992', '9'.repeat(400)])
      refuse(`?offset=${text}`, 'offset', /0 to 9007199254740991/);
  });

  it('validates a filter by the schema of its field, and returns the value of the column', () => {
    check('?city=Bern&id=7', {
      filters: [
        { column: 'town', value: 'Bern' },
        { column: 'id', value: 7 },
      ],
    });
    check('?open=false', { filters: [{ column: 'open', value: false }] });
    check('?code=s4', { filters: [{ column: 'stars', value: 4 }] });
    refuse('?code=4', 'code', /^must match /);
    refuse('?code=s9', 'code', /not a value/);
    refuse('?id=seven', 'id', /an integer/);
    refuse(`?name=${'x'.repeat(51)}`, 'name', /^must have at most 50 characters$/);
    check(`?city=${'%22'.repeat(500)}`, { filters: [{ column: 'town', value: '"'.repeat(500) }] });
    refuse(`?city=${'x'.repeat(501)}`, 'city', /more than 500 characters/);
  });

  it('returns the search text with the searchable columns, and rejects `q` if there are none', () => {
    check('?q=50%25+off', { search: { text: '50% off', columns: ['name', 'town'] } });
    refuse(`?q=${'x'.repeat(201)}`, 'q', /200/);
    check(`?q=${encodeURIComponent('😀'.repeat(200))}`, {
      search: { text: '😀'.repeat(200), columns: ['name', 'town'] },
    });
    refuse(`?q=${encodeURIComponent('😀'.repeat(201))}`, 'q', /200/);
    const unsearchable = createListParser(view);
    assert.throws(() => unsearchable('?q=a', baseUrl), { slug: 'bad-argument' });
    assert.deepEqual(unsearchable('', baseUrl).sort, [{ column: 'id', descending: false }]);
  });

  it('parses fields and sort', () => {
    check('?fields=city,id', { fields: ['id', 'city'] });
    check('?sort=-id', { sort: [{ column: 'id', descending: true }] });
    refuse('?fields=town', 'fields', /"town" is not a field/);
    refuse('?sort=town', 'sort', /"town" is not a field/);
  });

  it('reports an unknown argument and lists the known ones', () => {
    refuse(
      '?pgae=2',
      'pgae',
      /^"pgae" is not an argument here; known: offset, limit, fields, sort, after, total, q, id, name, city, open, code$/,
    );
    for (const name of ['town', 'Limit', '__proto__', 'constructor', 'toString', 'limit%5B%5D']) {
      assert.equal(faultsOf(`?${name}=1`).length, 1, name);
    }
  });

  it('reports all invalid arguments together', () => {
    const pointers = faultsOf('?limit=0&limits=1&offset=-1&city=&fields=x&sort=y&id=z&name=a&name=b').map(([at]) => at);
    assert.deepEqual(pointers.toSorted(), ['city', 'fields', 'id', 'limit', 'limits', 'name', 'offset', 'sort']);
  });

  it('keeps no state between requests', () => {
    parse('?city=Bern&limit=3', baseUrl);
    check('', {});
    check('?offset=1', { offset: 1 });
  });

  it('returns a list query or throws bad-argument for any query string', () => {
    const text = fc.string({ unit: anyCharacter });
    const searches = fc.array(fc.tuple(text, text)).map((pairs) => String(new URLSearchParams(pairs)));
    fc.assert(
      fc.property(searches, (search) => {
        assert.ok(faultsOf(search).length > 0 || Object.isFrozen(parse(search, baseUrl)));
      }),
    );
  });

  it('throws for a view with a field that is named like an argument', () => {
    const hiding = createView<{ id: number }>({ key: 'id', fields: { limit: { column: 'id', schema: z.int32() } } });
    assert.throws(() => createListParser(hiding), TypeError);
  });
});

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
      (error) => {
        assert.ok(error instanceof Problem && error.slug === 'bad-argument');
        const { errors = [] } = error;
        const names = [...new Set(errors.map(({ parameter }) => parameter))];
        assert.deepEqual(names.toSorted(), ['a', 'city', 'fields', 'limit']);
        const limit = errors.find(({ parameter }) => parameter === 'limit');
        assert.equal(limit?.detail, '"limit" is not an argument here; known: fields');
        return true;
      },
    );
  });
});
