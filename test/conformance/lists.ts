/** Section 4, query arguments: pages, partial responses, filters, search and order, and arguments that are wrong. */
import assert from 'node:assert/strict';
import { below, callAsDemo, hotelBooking, type OpenDesk } from './desk.ts';

const lists = ['/v1/messages/', '/v2/messages/', '/v1/hotels/', '/v1/cars', '/v1/hotels/bookings/'];

interface Listed {
  readonly items: readonly Readonly<Record<string, string>>[];
  readonly offset: number;
  readonly limit: number;
  readonly total: number;
  readonly links: Readonly<Record<string, string>>;
}

export function listCases(desk: OpenDesk): void {
  const list = async (path: string): Promise<Listed> => (await callAsDemo(desk, path).expect(200)).body;
  const idsOf = ({ items }: Listed) => items.map(({ id }) => id);

  /** From one page on, by the link of that name, as long as there is one. */
  async function follow(path: string, relation: string): Promise<Listed[]> {
    const pages = [await list(path)];
    for (let link = pages[0]?.links[relation]; link !== undefined; link = pages.at(-1)?.links[relation]) {
      assert.ok(pages.length < 20, 'the links lead in a circle');
      pages.push(await list(below(desk, link)));
    }
    return pages;
  }

  describe('pages', () => {
    for (const path of lists) {
      it(`of ${path} start at 0 with at most 20 items, and tell the total`, async () => {
        const { items, offset, limit, total } = await list(path);
        assert.deepEqual({ offset, limit }, { offset: 0, limit: 20 });
        assert.equal(items.length, Math.min(total, 20));
      });

      it(`of ${path} lead from the first to the last, and back, without a gap or a repetition`, async () => {
        const everything = await list(`${path}?limit=100`);
        const forward = await follow(`${path}?limit=2`, 'next');
        assert.equal(forward.length, Math.ceil(everything.total / 2));
        assert.deepEqual(forward.flatMap(idsOf), idsOf(everything));
        const last = forward.at(-1)?.links['last'] ?? '';
        const backward = await follow(below(desk, last), 'prev');
        assert.deepEqual(backward.reverse().flatMap(idsOf), idsOf(everything));
      });

      it(`of ${path} lead on by a cursor as well, in any order`, async () => {
        for (const more of ['', '&sort=-id']) {
          const everything = await list(`${path}?limit=100${more}`);
          const walked = await follow(`${path}?after=start&limit=2${more}`, 'next');
          assert.deepEqual(walked.flatMap(idsOf), idsOf(everything));
          for (const { offset, links } of walked) assert.deepEqual([offset, links['last']], [undefined, undefined]);
        }
      });

      it(`of ${path} leave out the total where it is not wanted`, async () => {
        const everything = await list(`${path}?limit=100`);
        const walked = await follow(`${path}?limit=2&total=false`, 'next');
        assert.deepEqual(walked.flatMap(idsOf), idsOf(everything));
        for (const { total, links } of walked) assert.deepEqual([total, links['last']], [undefined, undefined]);
      });

      it(`of ${path} begin at one place, and at none that is made up`, async () => {
        const { links } = await list(`${path}?after=start&limit=1`);
        const after = new URLSearchParams(links['next']?.split('?')[1]).get('after') ?? '';
        for (const wrong of [
          `after=${after}&offset=1`,
          'after=x',
          `after=${after.slice(2)}`,
          `after=${after}&after=${after}`,
        ]) {
          await callAsDemo(desk, `${path}?${wrong}`).expect(400);
        }
      });

      it(`of ${path} tell the same links in the Link header`, async () => {
        const { headers, body } = await callAsDemo(desk, `${path}?limit=1&offset=1`).expect(200);
        const told = [...String(headers['link']).matchAll(/<([^>]*)>; rel="(\w+)"/g)].map(([, to, name]) => [name, to]);
        assert.deepEqual(Object.fromEntries(told), body.links);
        assert.deepEqual(Object.keys(body.links), ['self', 'first', 'prev', 'next', 'last']);
      });
    }

    it('keep the other arguments in their links', async () => {
      const { links } = await list('/v1/messages/?account_id=demo&limit=1&sort=-id&fields=id,content');
      const next = await list(below(desk, links['next'] ?? ''));
      assert.deepEqual(Object.keys(next.items[0] ?? {}), ['id', 'content']);
      const all = await list('/v1/messages/?account_id=demo&sort=-id');
      assert.deepEqual(idsOf(next), idsOf(all).slice(1, 2));
    });

    it('have no link to what is not there', async () => {
      const { links } = await list('/v1/messages/?limit=100');
      assert.deepEqual(Object.keys(links), ['self', 'first', 'last']);
    });

    it('are empty past the end, and the way back leads to the last one', async () => {
      const { items, offset, links } = await list('/v1/messages/?offset=1000&limit=2');
      assert.deepEqual({ items, offset }, { items: [], offset: 1000 });
      assert.equal(links['prev'], links['last']);
    });

    it('take a limit above 100 as 100, and say so', async () => {
      assert.equal((await list('/v1/messages/?limit=101')).limit, 100);
      assert.equal((await list('/v1/messages/?limit=999999')).limit, 100);
    });
  });

  describe('partial responses', () => {
    it('hold the fields asked for, in collections and items alike', async () => {
      const { items } = await list('/v1/messages/?fields=id,url');
      for (const one of items) assert.deepEqual(Object.keys(one), ['id', 'url']);
      await callAsDemo(desk, `/v1/hotels/bookings/${hotelBooking}?fields=status`).expect(200, { status: 'confirmed' });
    });

    for (const path of ['/v1/messages/', '/v1/messages/1', '/v1/hotels', `/v1/hotels/bookings/${hotelBooking}`]) {
      it(`are refused for an unknown field, which is named along with the known ones: ${path}`, async () => {
        const { body } = await callAsDemo(desk, `${path}?fields=id,colour`).expect(400);
        const [{ pointer, detail }] = body.errors;
        assert.equal(pointer, '#/query/fields');
        assert.match(detail, /colour.*\bid\b/);
      });
    }
  });

  describe('filters, search and order', () => {
    it('filter by a field', async () => {
      const { items, total } = await list('/v1/messages/?account_id=guest');
      assert.equal(items.length, total);
      assert.deepEqual([...new Set(items.map(({ account_id }) => account_id))], ['guest']);
      const bookings = await list('/v1/hotels/bookings/?status=pending');
      assert.deepEqual([...new Set(bookings.items.map(({ status }) => status))], ['pending']);
      assert.ok(bookings.total > 0);
    });

    it('filter by every field that is not made of others', async () => {
      for (const path of lists) {
        const [first = {}] = (await list(path)).items;
        for (const [name, value] of Object.entries(first).filter(([, shown]) => typeof shown !== 'object')) {
          const found = await list(`${path}?${name}=${encodeURIComponent(value)}`);
          assert.ok(idsOf(found).includes(first['id'] ?? ''), `${path} by ${name}`);
        }
      }
    });

    it('want all filters to hold', async () => {
      const { total } = await list('/v1/messages/?account_id=guest&id=1');
      assert.equal(total, 0);
    });

    it('search the text of a collection, in any case', async () => {
      const { items } = await list('/v1/hotels?q=BERLIN');
      assert.deepEqual(
        items.map(({ city }) => city),
        ['Berlin'],
      );
      assert.ok((await list('/v1/messages/?q=berlin')).total > 0);
      assert.equal((await list('/v1/messages/?q=%25')).total, 0);
    });

    it('sort by a field, either way', async () => {
      const cities = async (sort: string) => (await list(`/v1/hotels?sort=${sort}`)).items.map(({ city = '' }) => city);
      const ascending = await cities('city');
      assert.deepEqual(ascending, [...ascending].sort());
      assert.deepEqual(await cities('-city'), [...ascending].reverse());
    });
  });

  describe('arguments that are wrong', () => {
    const wrong = 'offset=-1&limit=0&fields=colour&sort=colour&colour=red&colour=blue&q=';

    for (const path of ['/v1/messages/', '/v2/accounts/', '/v1/hotels', '/v1/cars/bookings/']) {
      it(`are all told at once: ${path}`, async () => {
        const { body } = await callAsDemo(desk, `${path}?${wrong}`).expect(400);
        assert.equal(body.message, '400: Bad Request');
        const pointers = new Set(body.errors.map(({ pointer }: { pointer: string }) => pointer));
        const named = ['colour', 'fields', 'limit', 'offset', 'q', 'sort'].map((name) => `#/query/${name}`);
        assert.deepEqual([...pointers].sort(), named);
        for (const { detail } of body.errors) assert.ok(detail.length > 0);
      });
    }

    for (const path of ['/v1/messages/1', `/v1/hotels/bookings/${hotelBooking}`, '/v1/']) {
      it(`are refused where there is no list, too: ${path}`, async () => {
        const { body } = await callAsDemo(desk, `${path}?limit=1&sort=id`).expect(400);
        assert.deepEqual(
          body.errors.map(({ pointer }: { pointer: string }) => pointer),
          ['#/query/limit', '#/query/sort'],
        );
      });
    }

    for (const search of [
      'limit=',
      'limit=1.5',
      'limit=1e1',
      'limit=%20',
      'limit=1&limit=2',
      'offset=99999999999999999',
    ]) {
      it(`are read strictly: ${search}`, async () => {
        await callAsDemo(desk, `/v1/messages/?${search}`).expect(400);
      });
    }
  });
}
