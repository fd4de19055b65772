/** Pages of collections whose rows are in an array, asked for as a client does. */
import assert from 'node:assert/strict';
import request from 'supertest';
import { z } from 'zod';
import { createView, type Order } from '#query';
import { collection, createResourceApp, pageOf } from '#rest';

interface City {
  readonly id: number;
  readonly name: string;
  readonly country: string | null;
  readonly capital?: boolean;
}

const cities: readonly City[] = [
  { id: 3, name: 'Łódź', country: 'PL' },
  { id: 1, name: 'Bern', country: 'CH', capital: true },
  { id: 4, name: 'bergen', country: 'NO', capital: false },
  { id: 2, name: 'Atlantis', country: null },
  { id: 5, name: 'Oslo', country: 'NO', capital: true },
];

const view = createView<City>({
  key: 'id',
  fields: {
    id: { column: 'id', schema: z.int() },
    name: { column: 'name', schema: z.string() },
    country: { column: 'country', schema: z.string().nullable() },
  },
});

function serve(rows: readonly City[], defaultSort?: readonly Order<City>[]) {
  return createResourceApp({
    routes: [
      collection<City>({
        docs: { operationId: 'listCities', summary: 'List cities' },
        path: '/cities/',
        title: 'Cities',
        view,
        searchable: ['name'],
        ...(defaultSort && { defaultSort }),
        find: async (_ctx, query) => pageOf(rows, query),
      }),
    ],
  }).callback();
}

describe('pageOf', () => {
  const handler = serve(cities);

  async function pageAt(path: string, of = handler) {
    const { body } = await request(of).get(path).expect(200);
    const { items, total, links } = body;
    return { ids: items.map(({ id }: City) => id), total, next: links.next };
  }

  /** Returns the page at the path, and those that its `next` links lead to. */
  async function follow(path: string): Promise<readonly Awaited<ReturnType<typeof pageAt>>[]> {
    const page = await pageAt(path);
    return page.next === undefined ? [page] : [page, ...(await follow(page.next))];
  }

  for (const [search, ids] of [
    ['', [1, 2, 3, 4, 5]],
    ['?sort=-id', [5, 4, 3, 2, 1]],
    ['?sort=country,-name', [2, 1, 4, 5, 3]],
    ['?sort=-country', [3, 4, 5, 1, 2]],
    ['?country=NO', [4, 5]],
    ['?country=NO&name=Oslo', [5]],
    ['?q=BER', [1, 4]],
    [`?q=${encodeURIComponent('łÓ')}`, [3]],
    ['?q=none', []],
    ['?offset=9', []],
  ] as const)
    it(`selects and sorts rows: ${decodeURIComponent(search)}`, async () => {
      const { ids: found, total } = await pageAt(`/cities/${search}`);
      assert.deepEqual(found, ids);
      assert.equal(total, search === '?offset=9' ? 5 : ids.length);
    });

  it('sorts by the default order, then by the key', async () => {
    const sorted = serve(cities, [{ column: 'country', descending: false }]);
    assert.deepEqual((await pageAt('/cities/', sorted)).ids, [2, 1, 4, 5, 3]);
  });

  for (const order of ['', 'sort=country&', 'sort=-country,name&'])
    it(`reaches every row once, by offset and by cursor: ${order}`, async () => {
      const { ids: all } = await pageAt(`/cities/?${order}`);
      for (const [start, total] of [
        ['offset=0', 5],
        ['after=start', 5],
        ['after=start&total=false', undefined],
      ] as const) {
        const pages = await follow(`/cities/?${order}limit=2&${start}`);
        assert.deepEqual(
          pages.flatMap(({ ids }) => ids),
          all,
        );
        assert.deepEqual(
          pages.map((page) => page.total),
          [total, total, total],
        );
      }
    });

  it('does not change the array', async () => {
    const rows = Object.freeze([...cities]);
    await pageAt('/cities/?sort=-name', serve(rows));
    assert.deepEqual(rows, cities);
  });
});
