/** Page links: following them visits each item of a collection exactly once. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createListParser, cursorLinks, formatLinkHeader, offsetLinks, type PageLinks } from '#query';
import { anyCharacter } from '../support/any-character.ts';
import { baseUrl, createHotelView } from './hotel-view.ts';

const parse = createListParser(createHotelView(), { searchable: ['name'] });
const path = '/travel/v1/hotels/';
const searchOf = (link: string) => link.slice(link.indexOf('?'));
const counts = { limit: fc.integer({ min: 1, max: 100 }), total: fc.integer({ min: 0, max: 1000 }) };

/** Returns the offset in each link. */
function offsets(offset: number, limit: number, total: number): Record<string, number> {
  const links = offsetLinks({ offset, limit, total, path, search: '' });
  return Object.fromEntries(
    Object.entries(links).map(([relation, link]) => [relation, parse(searchOf(link), baseUrl).offset]),
  );
}

describe('offsetLinks', () => {
  const check = (offset: number, limit: number, total: number, expected: Readonly<Record<string, number>>) =>
    assert.deepEqual(offsets(offset, limit, total), expected);

  it('has prev and next if such pages exist, and prev is the last page when beyond the end', () => {
    check(0, 20, 45, { self: 0, first: 0, next: 20, last: 40 });
    check(20, 20, 45, { self: 20, first: 0, prev: 0, next: 40, last: 40 });
    check(5, 20, 45, { self: 5, first: 0, prev: 0, next: 25, last: 40 });
    check(40, 20, 45, { self: 40, first: 0, prev: 20, last: 40 });
    check(45, 20, 45, { self: 45, first: 0, prev: 40, last: 40 });
    check(0, 20, 20, { self: 0, first: 0, last: 0 });
    check(0, 20, 0, { self: 0, first: 0, last: 0 });
    check(5, 20, 0, { self: 5, first: 0, prev: 0, last: 0 });
    check(1000, 20, 40, { self: 1000, first: 0, prev: 20, last: 20 });
  });

  it('visits every item exactly once when following next from first to last', () => {
    fc.assert(
      fc.property(counts.limit, fc.nat(200), (limit, total) => {
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

  it('returns to the same page with next and then prev', () => {
    fc.assert(
      fc.property(counts.limit, counts.total, fc.nat(1100), (limit, total, offset) => {
        const { next } = offsets(offset, limit, total);
        if (next !== undefined) assert.equal(offsets(next, limit, total)['prev'], offset);
      }),
    );
  });

  it('preserves the other arguments in their order, and appends the offset and the limit of the page', () => {
    const search = '?sort=-name&limit=500&q=a+b&offset=0&city=Bern';
    const { limit } = parse(search, baseUrl);
    const links = offsetLinks({ offset: 0, limit, total: 109, path, search });
    assert.equal(links.next, `${path}?sort=-name&q=a%20b&city=Bern&offset=100&limit=100`);
  });

  it('requests the same list at another offset', () => {
    const text = fc
      .string({ unit: anyCharacter, minLength: 1, maxLength: 20 })
      .filter((value) => !value.includes('\0'));
    fc.assert(
      fc.property(text, text, counts.limit, fc.nat(500), (q, city, limit, offset) => {
        const search = `?${new URLSearchParams({ q, city, limit: String(limit), offset: String(offset), fields: 'id,city' })}`;
        const query = parse(search, baseUrl);
        const links: PageLinks = offsetLinks({ offset, limit, total: 300, path, search });
        for (const link of Object.values<string>({ ...links })) {
          assert.ok(link.startsWith(`${path}?`));
          assert.deepEqual({ ...parse(searchOf(link), baseUrl), offset }, query);
        }
      }),
    );
  });
});

describe('offsetLinks without a total', () => {
  const links = (offset: number, hasMore: boolean) =>
    offsetLinks({ offset, limit: 20, total: undefined, hasMore, path, search: '?total=false' });

  it('has no last, and has next while there are more rows', () => {
    const at = (offset: number) => `${path}?total=false&offset=${offset}&limit=20`;
    assert.deepEqual(links(20, true), { self: at(20), first: at(0), prev: at(0), next: at(40) });
    assert.deepEqual(links(0, false), { self: at(0), first: at(0) });
  });
});

describe('cursorLinks', () => {
  it('has next unless it is the last page, and first is `start`', () => {
    const search = '?city=Bern&after=Wabc&limit=5&total=false';
    const at = (cursor: string) => `${path}?city=Bern&total=false&after=${cursor}&limit=5`;
    const [self, first] = [at('Wabc'), at('start')];
    assert.deepEqual(cursorLinks({ limit: 5, next: 'Wdef', path, search }), { self, first, next: at('Wdef') });
    assert.deepEqual(cursorLinks({ limit: 5, next: undefined, path, search }), { self, first });
  });
});

describe('formatLinkHeader', () => {
  it('contains each link with its relation', () => {
    const links = offsetLinks({ offset: 0, limit: 20, total: 30, path: '/v1/hotels/', search: '' });
    assert.equal(
      formatLinkHeader(links),
      '</v1/hotels/?offset=0&limit=20>; rel="self", </v1/hotels/?offset=0&limit=20>; rel="first", ' +
        '</v1/hotels/?offset=20&limit=20>; rel="next", </v1/hotels/?offset=20&limit=20>; rel="last"',
    );
  });

  it('contains exactly the links, for any query string', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), fc.nat(100), (search, offset) => {
        const links = offsetLinks({ offset, limit: 20, total: 70, path: '/v1/hotels/', search });
        const header = formatLinkHeader(links);
        if (header === undefined) return;
        assert.match(header, /^[\x20-\x7e]*$/);
        const found = [...header.matchAll(/<([^<>]*)>; rel="([a-z]+)"(?:, |$)/g)].map(([, link, name]) => [name, link]);
        assert.deepEqual(Object.fromEntries(found), links);
      }),
    );
  });

  it('omits the header beyond 4 KiB, which a proxy in front of the gateway might reject', () => {
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
