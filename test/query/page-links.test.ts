/** Links lead through a collection page by page, without repeating or skipping. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createListParser, cursorLinks, formatLinkHeader, offsetLinks, type PageLinks } from '#query';
import { createHotelView, place } from './hotel-view.ts';

const parse = createListParser(createHotelView(), { searchable: ['name'] });
const path = '/travel/v1/hotels/';
const searchOf = (link: string) => link.slice(link.indexOf('?'));
const counts = { limit: fc.integer({ min: 1, max: 100 }), total: fc.integer({ min: 0, max: 1000 }) };

/** The offsets that the links lead to. */
function offsets(offset: number, limit: number, total: number): Record<string, number> {
  const links = offsetLinks({ offset, limit, total, path, search: '' });
  return Object.fromEntries(
    Object.entries(links).map(([relation, link]) => [relation, parse(searchOf(link), place).offset]),
  );
}

describe('pageLinks', () => {
  const check = (offset: number, limit: number, total: number, expected: Readonly<Record<string, number>>) =>
    assert.deepEqual(offsets(offset, limit, total), expected);

  it('leaves prev out on the first page and next out on the last', () => {
    check(0, 20, 45, { self: 0, first: 0, next: 20, last: 40 });
    check(20, 20, 45, { self: 20, first: 0, prev: 0, next: 40, last: 40 });
    check(40, 20, 45, { self: 40, first: 0, prev: 20, last: 40 });
  });

  it('has one page when everything fits', () => {
    check(0, 20, 20, { self: 0, first: 0, last: 0 });
    check(0, 20, 0, { self: 0, first: 0, last: 0 });
  });

  it('leads back to the last page from past the end', () => {
    check(45, 20, 45, { self: 45, first: 0, prev: 40, last: 40 });
    check(1000, 20, 40, { self: 1000, first: 0, prev: 20, last: 20 });
    check(5, 20, 0, { self: 5, first: 0, prev: 0, last: 0 });
  });

  it('never leads before the beginning', () => check(5, 20, 45, { self: 5, first: 0, prev: 0, next: 25, last: 40 }));

  it('visits every item exactly once by following next from first, and ends at last', () => {
    fc.assert(
      fc.property(counts.limit, counts.total, (limit, total) => {
        const seen: number[] = [];
        let at: Record<string, number> = offsets(0, limit, total);
        for (;;) {
          const from = at['self'] ?? 0;
          for (let item = from; item < Math.min(from + limit, total); item += 1) seen.push(item);
          if (at['next'] === undefined) break;
          at = offsets(at['next'], limit, total);
        }
        assert.deepEqual(seen, [...Array(total).keys()]);
        assert.equal(at['self'], at['last']);
      }),
      { numRuns: 50 },
    );
  });

  it('leads back with prev to where next came from', () => {
    fc.assert(
      fc.property(counts.limit, counts.total, fc.nat(1100), (limit, total, offset) => {
        const { next } = offsets(offset, limit, total);
        if (next !== undefined) assert.equal(offsets(next, limit, total)['prev'], offset);
      }),
    );
  });

  it('keeps the other arguments in their order and says offset and limit last', () => {
    const links = offsetLinks({
      offset: 0,
      limit: 5,
      total: 9,
      path,
      search: '?sort=-name&limit=5&q=a+b&offset=0&city=Bern',
    });
    assert.equal(links.next, `${path}?sort=-name&q=a%20b&city=Bern&offset=5&limit=5`);
  });

  it('says the limit that holds, not the one that was asked for', () => {
    const { limit } = parse('?limit=500', place);
    assert.equal(
      offsetLinks({ offset: 0, limit, total: 9, path, search: '?limit=500' }).self,
      `${path}?offset=0&limit=100`,
    );
  });

  it('makes links that ask for the same list at another offset', () => {
    const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter((value) => !value.includes('\0'));
    fc.assert(
      fc.property(text, text, counts.limit, fc.nat(500), (q, city, limit, offset) => {
        const search = `?${new URLSearchParams({ q, city, limit: String(limit), offset: String(offset), fields: 'id,city' })}`;
        const query = parse(search, place);
        const links: PageLinks = offsetLinks({ offset, limit, total: 300, path, search });
        for (const link of Object.values<string>({ ...links })) {
          assert.ok(link.startsWith(`${path}?`));
          assert.deepEqual({ ...parse(searchOf(link), place), offset }, query);
        }
      }),
    );
  });
});

describe('pageLinks without a total', () => {
  const links = (offset: number, hasMore: boolean) =>
    offsetLinks({ offset, limit: 20, total: undefined, hasMore, path, search: '?total=false' });

  it('leaves out last, and goes on for as long as there is more', () => {
    assert.deepEqual(links(20, true), {
      self: `${path}?total=false&offset=20&limit=20`,
      first: `${path}?total=false&offset=0&limit=20`,
      prev: `${path}?total=false&offset=0&limit=20`,
      next: `${path}?total=false&offset=40&limit=20`,
    });
    assert.deepEqual(Object.keys(links(0, false)), ['self', 'first']);
  });
});

describe('walkLinks', () => {
  it('go on behind the last row, and begin anew from the start', () => {
    const search = '?city=Bern&after=Wabc&limit=5&total=false';
    assert.deepEqual(cursorLinks({ limit: 5, next: 'Wdef', path, search }), {
      self: `${path}?city=Bern&total=false&after=Wabc&limit=5`,
      first: `${path}?city=Bern&total=false&after=start&limit=5`,
      next: `${path}?city=Bern&total=false&after=Wdef&limit=5`,
    });
  });

  it('end on the last page', () => {
    assert.deepEqual(Object.keys(cursorLinks({ limit: 5, next: undefined, path, search: '?after=start' })), [
      'self',
      'first',
    ]);
  });
});

describe('formatLinkHeader', () => {
  it('gives each link with its relation', () => {
    const links = offsetLinks({ offset: 0, limit: 20, total: 30, path: '/v1/hotels/', search: '' });
    assert.equal(
      formatLinkHeader(links),
      '</v1/hotels/?offset=0&limit=20>; rel="self", </v1/hotels/?offset=0&limit=20>; rel="first", ' +
        '</v1/hotels/?offset=20&limit=20>; rel="next", </v1/hotels/?offset=20&limit=20>; rel="last"',
    );
  });

  it('holds the same links and nothing else, whatever the query', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.nat(100), (search, offset) => {
        const links = offsetLinks({ offset, limit: 20, total: 70, path: '/v1/hotels/', search });
        const header = formatLinkHeader(links);
        if (header === undefined) return;
        assert.match(header, /^[\x20-\x7e]*$/);
        const found = [...header.matchAll(/<([^<>]*)>; rel="([a-z]+)"(?:, |$)/g)].map(([, link, name]) => [name, link]);
        assert.deepEqual(Object.fromEntries(found), links);
      }),
    );
  });

  it('is left out beyond 4 KiB, which a proxy in front of us would take for our failure', () => {
    const headerOf = (length: number) =>
      formatLinkHeader(cursorLinks({ limit: 1, next: undefined, path: '/', search: `?name=${'x'.repeat(length)}` }));
    const empty = headerOf(0)?.length ?? 0;
    const most = Math.floor((4096 - empty) / 2);
    assert.equal(headerOf(most)?.length, 4095);
    assert.equal(headerOf(most + 1), undefined);
    assert.equal(
      formatLinkHeader(offsetLinks({ offset: 0, limit: 1, total: 9, path: '/', search: `?name=${'"'.repeat(2000)}` })),
      undefined,
    );
  });
});
