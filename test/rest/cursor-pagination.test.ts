/** Cursor pagination over HTTP, with rows of a database. */
import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import fc from 'fast-check';
import request from 'supertest';
import { z } from 'zod';
import { createRepresentations } from '#http';
import { createListParser, createView } from '#query';
import { collection, createResourceApp } from '#rest';
import { type AccountRow, createPageReader, type Database, openDatabase } from '#storage';

interface Page {
  readonly items: readonly AccountRow[];
  readonly links: Readonly<Record<string, string>>;
}

describe('pagination by cursor', () => {
  let database: Database;
  let handler: RequestListener;

  before(async () => {
    database = await openDatabase({ url: 'sqlite::memory:' });
    handler = createAccounts(database);
  });

  after(() => database.close());

  async function fill(names: readonly string[]): Promise<void> {
    await database.kysely.deleteFrom('accounts').execute();
    const rows = names.map((name, index) => ({ id: `a${index}`, name }));
    if (rows.length > 0) await database.kysely.insertInto('accounts').values(rows).execute();
  }

  const read = async (link: string): Promise<Page> => (await request(handler).get(link).expect(200)).body;

  /** Returns a page and all that follow it by `next`. Calls `between` after each page. */
  async function pages(from: string, between: () => Promise<unknown> = async () => {}): Promise<Page[]> {
    const found: Page[] = [];
    for (let link: string | undefined = from; link !== undefined; link = found.at(-1)?.links['next']) {
      assert.ok(found.length < 50, 'the links form a loop');
      found.push(await read(link));
      await between();
    }
    return found;
  }

  const idsOf = (found: readonly Page[]) => found.flatMap(({ items }) => items.map(({ id }) => id));

  it('returns the same items as pagination by offset, in any order', async () => {
    const names = fc.array(fc.constantFrom('Ann', 'Bob', 'bob', 'Zoë', 'Ann & Bob', ''), { maxLength: 12 });
    const sort = fc.constantFrom('id', '-id', 'name', '-name', 'name,-id', '-name,-id');
    await fc.assert(
      fc.asyncProperty(names, sort, fc.integer({ min: 1, max: 5 }), async (all, order, limit) => {
        await fill(all);
        const byOffset = await pages(`/accounts/?sort=${order}&limit=${limit}`);
        const byCursor = await pages(`/accounts/?sort=${order}&limit=${limit}&after=start`);
        assert.deepEqual(idsOf(byCursor), idsOf(byOffset));
        assert.equal(byCursor.length, byOffset.length);
      }),
      { numRuns: 20 },
    );
  });

  it('does not repeat items when rows are inserted before its position, unlike offsets', async () => {
    const insertFirst = (id: number) =>
      database.kysely
        .insertInto('accounts')
        .values({ id: `a-${id}`, name: '' })
        .execute();
    const walk = async (position: string) => {
      await fill(['a', 'b', 'c', 'd', 'e']);
      const inserted: number[] = [];
      const between = () => insertFirst(inserted.push(0));
      return idsOf(await pages(`/accounts/?limit=2&${position}`, between));
    };
    assert.deepEqual(await walk('after=start'), ['a0', 'a1', 'a2', 'a3', 'a4']);
    const repeated = await walk('offset=0');
    assert.ok(repeated.length > new Set(repeated).size);
  });

  it('applies filters and the search', async () => {
    await fill(['Ann', 'Bob', 'Anna', 'Annabel']);
    assert.deepEqual(idsOf(await pages('/accounts/?q=ann&limit=1&after=start')), ['a0', 'a2', 'a3']);
  });

  it('responds 400 when a cursor would be too long for a URL', async () => {
    await fill(['x'.repeat(5000), 'y'.repeat(5000)]);
    const { body } = await request(handler).get('/accounts/?sort=name&limit=1&after=start').expect(400);
    assert.match(body.errors[0].detail, /too long/);
    assert.deepEqual(idsOf(await pages('/accounts/?limit=1&after=start')), ['a0', 'a1']);
  });
});

function createAccounts(database: Database): RequestListener {
  const view = createView<AccountRow>({
    key: 'id',
    fields: { id: { column: 'id', schema: z.string() }, name: { column: 'name', schema: z.string() } },
  });
  const readPage = createPageReader(database, () => database.kysely.selectFrom('accounts').selectAll());
  const accounts = collection<AccountRow>({
    docs: { operationId: 'listAccounts', summary: 'List accounts' },
    path: '/accounts/',
    title: 'Accounts',
    view,
    parser: createListParser(view, { searchable: ['name'] }),
    find: (_ctx, query) => readPage(undefined, query),
  });
  return createResourceApp({ representations: createRepresentations(), routes: [accounts] }).callback();
}
