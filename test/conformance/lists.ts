/** Lists: pages and cursors, partial responses, filters, search and order, and rejected arguments. */
import assert from 'node:assert/strict';
import { below, callAsDemo, hotelBooking, type OpenDesk, pointersOf } from './desk.ts';

/** Public lists, the list of the user's own bookings, and lists of what can be booked. */
const lists = ['/v1/messages/', '/v2/messages/', '/v1/hotels/bookings/', '/v1/hotels/', '/v1/cars'];

interface Page {
  readonly items: readonly Readonly<Record<string, string>>[];
  readonly offset: number;
  readonly limit: number;
  readonly total: number;
  readonly links: Readonly<Record<string, string>>;
}

export function listCases(desk: OpenDesk): void {
  const list = async (path: string): Promise<Page> => (await callAsDemo(desk, path).expect(200)).body;
  const idsOf = (...pages: readonly Page[]) => pages.flatMap(({ items }) => items.map(({ id }) => id));

  /** Returns the page and all pages that follow by links of this relation. */
  async function follow(path: string, relation: string): Promise<Page[]> {
    const pages = [await list(path)];
    for (let link = pages[0]?.links[relation]; link !== undefined; link = pages.at(-1)?.links[relation]) {
      assert.ok(pages.length < 20, 'the links form a cycle');
      pages.push(await list(below(desk, link)));
    }
    return pages;
  }

  for (const path of lists) {
    describe(`the pages of ${path}`, () => {
      let everything: Page;

      before(async () => {
        everything = await list(`${path}?limit=100`);
      });

      it('start at offset 0 with at most 20 items, and contain the total', async () => {
        const { items, offset, limit, total } = await list(path);
        assert.deepEqual({ offset, limit, total }, { offset: 0, limit: 20, total: everything.items.length });
        assert.equal(items.length, Math.min(total, 20));
      });

      it('link from the first to the last and back, without gaps or repetitions', async () => {
        const forward = await follow(`${path}?limit=2`, 'next');
        assert.equal(forward.length, Math.ceil(everything.total / 2));
        assert.deepEqual(idsOf(...forward), idsOf(everything));
        const backward = await follow(below(desk, forward.at(-1)?.links['last'] ?? ''), 'prev');
        assert.deepEqual(idsOf(...backward.reverse()), idsOf(everything));
      });

      for (const [first, all, absent] of [
        ['after=start', '', 'offset'],
        ['after=start&sort=-id', '&sort=-id', 'offset'],
        ['total=false', '', 'total'],
      ] as const) {
        it(`continue without ${absent} or a last page: ${first}`, async () => {
          const pages = await follow(`${path}?${first}&limit=2`, 'next');
          assert.deepEqual(idsOf(...pages), idsOf(await list(`${path}?limit=100${all}`)));
          for (const { links, ...page } of pages)
            assert.deepEqual([page[absent], links['last']], [undefined, undefined]);
        });
      }

      it('reject an invalid cursor, two cursors, and a cursor with an offset', async () => {
        const { links } = await list(`${path}?after=start&limit=1`);
        const after = new URLSearchParams(links['next']?.split('?')[1]).get('after') ?? '';
        for (const wrong of ['x', after.slice(2), `${after}&offset=1`, `${after}&after=${after}`])
          await callAsDemo(desk, `${path}?after=${wrong}`).expect(400);
      });

      it('have the same links in the Link header', async () => {
        const { headers, body } = await callAsDemo(desk, `${path}?limit=1&offset=1`).expect(200);
        const inHeader = [...String(headers['link']).matchAll(/<([^>]*)>; rel="(\w+)"/g)];
        assert.deepEqual(Object.fromEntries(inHeader.map(([, to, name]) => [name, to])), body.links);
        assert.deepEqual(Object.keys(body.links), ['self', 'first', 'prev', 'next', 'last']);
      });

      it('can be filtered by every scalar field', async () => {
        const [first = {}] = everything.items;
        for (const [name, value] of Object.entries(first).filter(([, shown]) => typeof shown !== 'object')) {
          const found = await list(`${path}?${name}=${encodeURIComponent(value)}`);
          assert.ok(idsOf(found).includes(first['id']), name);
        }
      });
    });
  }

  describe('partial responses', () => {
    it('contain the requested fields, in lists and items', async () => {
      const { items } = await list('/v1/messages/?fields=id,url');
      for (const one of items) assert.deepEqual(Object.keys(one), ['id', 'url']);
      await callAsDemo(desk, `/v1/hotels/bookings/${hotelBooking}?fields=status`).expect(200, { status: 'confirmed' });
    });

    it('are rejected for an unknown field, with a list of the known ones', async () => {
      for (const path of ['/v1/messages/', '/v1/messages/1', '/v1/hotels', `/v1/hotels/bookings/${hotelBooking}`]) {
        const { body } = await callAsDemo(desk, `${path}?fields=id,colour`).expect(400);
        assert.deepEqual(pointersOf(body), ['fields']);
        assert.match(body.errors[0].detail, /colour.*\bid\b/);
      }
    });
  });

  describe('filters, search and order', () => {
    it('filter by fields, all of which must match', async () => {
      const { items, total } = await list('/v1/messages/?account_id=guest');
      assert.equal(items.length, total);
      assert.deepEqual([...new Set(items.map(({ account_id }) => account_id))], ['guest']);
      const bookings = await list('/v1/hotels/bookings/?status=pending');
      assert.deepEqual([...new Set(bookings.items.map(({ status }) => status))], ['pending']);
      assert.equal((await list('/v1/messages/?account_id=guest&id=1')).total, 0);
    });

    it('search text without regard to case, and treat a percent sign literally', async () => {
      const { items } = await list('/v1/hotels?q=BERLIN');
      assert.deepEqual([...new Set(items.map(({ city }) => city))], ['Berlin']);
      assert.ok((await list('/v1/messages/?q=berlin')).total > 0);
      assert.equal((await list('/v1/messages/?q=%25')).total, 0);
    });

    it('sort by a field in either direction', async () => {
      const cities = async (sort: string) => (await list(`/v1/hotels?sort=${sort}`)).items.map(({ city = '' }) => city);
      const ascending = await cities('city');
      assert.deepEqual(ascending, ascending.toSorted());
      assert.deepEqual(await cities('-city'), ascending.toReversed());
    });
  });

  describe('wrong arguments', () => {
    const wrong = 'offset=-1&limit=0&fields=colour&sort=colour&colour=red&colour=blue&q=';
    const named = ['colour', 'fields', 'limit', 'offset', 'q', 'sort'];

    for (const path of ['/v1/messages/', '/v2/accounts/', '/v1/hotels', '/v1/cars/bookings/']) {
      it(`are all reported together: ${path}`, async () => {
        const { body } = await callAsDemo(desk, `${path}?${wrong}`).expect(400);
        assert.equal(body.message, '400: Bad Request');
        assert.deepEqual([...new Set(pointersOf(body))].sort(), named);
        for (const { detail } of body.errors) assert.ok(detail.length > 0);
      });
    }

    it('are rejected at resources that are not lists', async () => {
      for (const path of ['/v1/messages/1', `/v1/hotels/bookings/${hotelBooking}`, '/v1/']) {
        const { body } = await callAsDemo(desk, `${path}?limit=1&sort=id`).expect(400);
        assert.deepEqual(pointersOf(body), ['limit', 'sort']);
      }
    });
  });
}
