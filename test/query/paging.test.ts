/** Paging: links that visit each item exactly once, and cursors, which contain the position after a row. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { z } from 'zod';
import { Problem } from '#http';
import {
  createListParser,
  createView,
  cursorLinks,
  formatCursor,
  formatLinkHeader,
  offsetLinks,
  type PageLinks,
  urlField,
} from '#query';
import { anyCharacter } from '../support/any-character.ts';
import { baseUrl, createHotelView, type Hotel, hotel } from './hotel-view.ts';

const view = createHotelView();
const parse = createListParser(view, { searchable: ['name'], defaultSort: [{ column: 'name', descending: false }] });

function detailOf(search: string): string {
  try {
    parse(search, baseUrl);
  } catch (error) {
    assert.ok(error instanceof Problem && error.slug === 'bad-argument');
    const [fault, ...others] = error.errors ?? [];
    assert.deepEqual([fault?.parameter, others], ['after', []], search);
    return fault?.detail ?? '';
  }
  return assert.fail(`accepted ${search}`);
}

/** Returns the cursor after a row, in the order of `search`. */
function cursorOf(row: Hotel, search = ''): string {
  return formatCursor(view, parse(search, baseUrl).sort, row, baseUrl) ?? assert.fail('no cursor');
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('a cursor', () => {
  it('contains the values of its row for the columns of the order', () => {
    const { after, offset } = parse(`?after=${cursorOf(hotel)}`, baseUrl);
    assert.deepEqual([after, offset], [['Astoria', 7], 0]);
    assert.deepEqual(parse(`?sort=code,-id&after=${cursorOf(hotel, '?sort=code,-id')}`, baseUrl).after, [4, 7]);
    assert.deepEqual(parse(`?city=Bern&after=${cursorOf(hotel)}`, baseUrl).after, ['Astoria', 7]);
  });

  it('is `start` for the first page', () => {
    assert.deepEqual(parse('?after=start', baseUrl).after, []);
    assert.equal(parse('', baseUrl).after, undefined);
  });

  it('survives formatting and parsing, for every row and order', () => {
    const row = fc.record({
      id: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
      name: fc.string({ unit: anyCharacter, maxLength: 20 }).filter((text) => !text.includes('\0')),
      town: fc
        .string({ unit: anyCharacter, maxLength: 50 })
        .filter((text) => !text.includes('\0') && !/\p{Surrogate}/u.test(text)),
      stars: fc.integer({ min: 0, max: 8 }),
      open: fc.boolean(),
    });
    const term = fc.constantFrom('id', '-id', 'name', '-name', 'city', '-city', 'open', 'code', '-code');
    const sort = fc.uniqueArray(term, { selector: (text) => text.replace('-', ''), minLength: 1 });
    fc.assert(
      fc.property(row, sort, (one, terms) => {
        const search = `?sort=${terms.join()}`;
        const query = parse(`${search}&after=${cursorOf(one, search)}`, baseUrl);
        assert.deepEqual(
          query.after,
          query.sort.map(({ column }) => one[column]),
        );
      }),
    );
  });

  it('prefers a field that shows the column unchanged, so that it does not depend on the base URL', () => {
    const schema = z.int32();
    const fields = { url: urlField<{ id: number }>({ column: 'id', schema }), id: { column: 'id' as const, schema } };
    const placed = createView<{ id: number }>({ key: 'id', fields });
    const { sort } = createListParser(placed)('', '');
    const [one, other] = ['http://a/', 'http://b/'].map((at) => formatCursor(placed, sort, { id: 3 }, at));
    assert.equal(one, other);
  });

  it('is rejected together with an offset, and for another order', () => {
    assert.match(detailOf('?after=start&offset=0'), /offset/);
    assert.match(detailOf(`?sort=-name&after=${cursorOf(hotel)}`), /another order/);
    assert.match(detailOf(`?sort=city,id&after=${cursorOf(hotel)}`), /another order/);
  });

  const broken: readonly (readonly [string, string])[] = [
    ['is not base64url', 'a+b%2F'],
    ['is not JSON', 'abcd'],
    ['is not an array', encode({ 0: 'name,id' })],
    ['is empty', encode([])],
    ['has too few values', encode(['name,id', 'Astoria'])],
    ['has too many values', encode(['name,id', 'Astoria', '7', '8'])],
    ['has a value that is not a string', encode(['name,id', 'Astoria', 7])],
    ['has a value of another type', encode(['name,id', 'Astoria', 'seven'])],
    ['has a number that is too large for the column', encode(['name,id', 'Astoria', '99999999999'])],
    ['has a text that is too long for the column', encode(['name,id', 'x'.repeat(51), '7'])],
    ['has a NUL', encode(['name,id', 'a\0', '7'])],
    ['has null for a column without nulls', encode(['name,id', null, '7'])],
    ['is too long', 'W'.repeat(3000)],
    ['is `start` in upper case', 'START'],
  ];

  for (const [what, text] of broken)
    it(`is rejected when it ${what}`, () =>
      assert.match(detailOf(`?after=${text}`), /is not a cursor of this list.*start/));

  it('is parsed or rejected with a problem, for any text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.jsonValue().map(encode), fc.base64String()), (text) => {
        try {
          parse(`?after=${encodeURIComponent(text)}`, baseUrl);
        } catch (error) {
          assert.ok(error instanceof Problem);
        }
      }),
    );
  });

  it('is undefined when it would be too long for a URL', () => {
    const { sort } = parse('?sort=city', baseUrl);
    assert.equal(formatCursor(view, sort, { ...hotel, town: 'x'.repeat(5000) }, baseUrl), undefined);
  });

  it('can contain null for a nullable column', () => {
    const nullable = createView<{ id: number; seen: string | null }>({
      key: 'id',
      fields: { id: { column: 'id', schema: z.int32() }, seen: { column: 'seen', schema: z.string().nullable() } },
    });
    const read = createListParser(nullable);
    const { sort } = read('?sort=seen', '');
    assert.deepEqual(sort[0], { column: 'seen', descending: false, isNullable: true });
    const cursor = formatCursor(nullable, sort, { id: 1, seen: null }, '');
    assert.deepEqual(read(`?sort=seen&after=${cursor}`, '').after, [null, 1]);
  });
});

describe('total', () => {
  it('is counted unless total=false', () => {
    assert.equal(parse('?total=false', baseUrl).wantsTotal, false);
    assert.notEqual(parse('?total=true', baseUrl).wantsTotal, false);
    assert.throws(() => parse('?total=no', baseUrl), { slug: 'bad-argument' });
  });
});

describe('the order of a list', () => {
  it('can only have columns that items show, because cursors reveal their values', () => {
    const fields = { id: { column: 'id', schema: z.int32() } } as const;
    for (const [key, defaultSort] of [
      ['id', [{ column: 'at', descending: true }]],
      ['at', []],
    ] as const) {
      const view = createView<{ id: number; at: string }>({ key, fields });
      assert.throws(() => createListParser(view, { defaultSort }), /cannot be ordered by at/);
    }
  });
});

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
