/** Walking by the place behind a row gives exactly the list that offsets give, on both databases and in every order. */
import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { Kysely, PostgresDialect, type SelectQueryBuilder, SqliteDialect, sql } from 'kysely';
import pg from 'pg';
import type { ListQuery } from '#query';
import { selectPage } from '#storage';
import { rememberStatements } from '../../src/storage/remembered-statements.ts';
import { pageOf } from '../../src/storage/select-page.ts';

interface Thing {
  readonly id: number;
  readonly city: string;
  readonly stars: number;
  readonly seen: string | null;
}

interface Things {
  readonly things: Thing;
}

interface Opened {
  readonly dialect: 'sqlite' | 'postgres';
  readonly kysely: Kysely<Things>;
}

const thing = fc.record({
  id: fc.integer({ min: 1, max: 1000 }),
  city: fc.constantFrom('', 'Bern', 'bern', 'Ulm', 'Ulm ', 'Zürich', '10', '9'),
  stars: fc.integer({ min: -2, max: 2 }),
  seen: fc.constantFrom(null, 'a', 'b'),
});

const things = fc.uniqueArray(thing, { selector: ({ id }) => id, maxLength: 25 });

const sortOf = fc
  .uniqueArray(fc.constantFrom('city', 'stars', 'seen'), { maxLength: 3 })
  .chain((columns) =>
    fc.tuple(
      ...[...columns, 'id' as const].map((column) =>
        fc.record({ column: fc.constant(column), descending: fc.boolean() }),
      ),
    ),
  )
  .map((orders) => orders.map((order) => ({ ...order, isNullable: order.column === 'seen' })));

type Sort = ListQuery<Thing>['sort'];

const listOf = (sort: Sort, page: Partial<ListQuery<Thing>>): ListQuery<Thing> => ({
  offset: 0,
  limit: 100,
  fields: undefined,
  filters: [],
  search: undefined,
  sort,
  ...page,
});

const valuesOf = (sort: Sort, row: Thing) => sort.map(({ column }) => row[column]);

async function prepare(
  { kysely }: Opened,
  rows: readonly Thing[],
): Promise<SelectQueryBuilder<Things, 'things', Thing>> {
  await kysely.deleteFrom('things').execute();
  if (rows.length > 0)
    await kysely
      .insertInto('things')
      .values([...rows])
      .execute();
  return kysely.selectFrom('things').selectAll();
}

/** All rows, page by page; `between` happens after each page. */
async function walk(
  opened: Opened,
  sort: Sort,
  limit: number,
  between: (last: Thing) => Promise<void> = async () => {},
) {
  const query = opened.kysely.selectFrom('things').selectAll();
  const rows: Thing[] = [];
  for (let after: ListQuery<Thing>['after'] = []; ; ) {
    const page = await selectPage(opened, query, listOf(sort, { limit, after, isCounted: false }));
    assert.ok(page.items.length <= limit);
    rows.push(...page.items);
    const last = page.items.at(-1);
    if (page.hasMore !== true || last === undefined) return rows;
    assert.ok(rows.length < 200, 'the walk does not end');
    after = valuesOf(sort, last);
    await between(last);
  }
}

function describeWalks(open: () => Opened): void {
  it('gives the list that an offset gives', async () => {
    await fc.assert(
      fc.asyncProperty(things, sortOf, fc.integer({ min: 1, max: 6 }), async (rows, sort, limit) => {
        const query = await prepare(open(), rows);
        const { items } = await selectPage(open(), query, listOf(sort, {}));
        assert.deepEqual(await walk(open(), sort, limit), items);
      }),
      { numRuns: 60 },
    );
  });

  it('neither repeats nor leaves out a row while others are put in behind it', async () => {
    await fc.assert(
      fc.asyncProperty(things, things, sortOf, async (rows, more, sort) => {
        const query = await prepare(open(), rows);
        const { items: before } = await selectPage(open(), query, listOf(sort, {}));
        const others = more.map((one) => ({ ...one, id: one.id + 1000 }));
        const walked = await walk(open(), sort, 2, async () => {
          const next = others.pop();
          if (next !== undefined) await open().kysely.insertInto('things').values(next).execute();
        });
        const ids = walked.map(({ id }) => id);
        assert.equal(new Set(ids).size, ids.length);
        assert.deepEqual(
          ids.filter((id) => id <= 1000),
          before.map(({ id }) => id),
        );
      }),
      { numRuns: 40 },
    );
  });

  it('counts the whole list, wherever the page is, unless nobody wants to know', async () => {
    const rows = [1, 2, 3, 4, 5].map((id) => ({ id, city: 'Ulm', stars: 0, seen: null }));
    const query = await prepare(open(), rows);
    const sort = [{ column: 'id', descending: false }] as const;
    const page = async (asked: Partial<ListQuery<Thing>>) => {
      const { items, total, hasMore } = await selectPage(open(), query, listOf(sort, { limit: 2, ...asked }));
      return { ids: items.map(({ id }) => id), total, hasMore };
    };
    assert.deepEqual(await page({ after: [] }), { ids: [1, 2], total: 5, hasMore: true });
    assert.deepEqual(await page({ after: [4] }), { ids: [5], total: 5, hasMore: false });
    assert.deepEqual(await page({ after: [3], isCounted: false }), { ids: [4, 5], total: undefined, hasMore: false });
    assert.deepEqual(await page({ offset: 2, isCounted: false }), { ids: [3, 4], total: undefined, hasMore: true });
    assert.deepEqual(await page({ offset: 3, isCounted: false }), { ids: [4, 5], total: undefined, hasMore: false });
    assert.deepEqual(await page({ after: [1], filters: [{ column: 'stars', value: 1 }] }), {
      ids: [],
      total: 0,
      hasMore: false,
    });
  });
}

const table = (text: string) =>
  `create table things (id int primary key, city text${text} not null, stars int not null, seen text${text})`;

describe('pages behind a row: SQLite', () => {
  const kysely = new Kysely<Things>({
    dialect: new SqliteDialect({ database: rememberStatements(new DatabaseSync(':memory:')) }),
  });
  before(() => sql.raw(table('')).execute(kysely));
  after(() => kysely.destroy());
  describeWalks(() => ({ dialect: 'sqlite', kysely }));

  it('are found by an index, in one direction and in two', async () => {
    await sql`create index things_by_city on things (city, id)`.execute(kysely);
    const plan = async (descending: boolean) => {
      const sort = [
        { column: 'city', descending: false },
        { column: 'id', descending },
      ] as const;
      const list = listOf(sort, { after: ['Ulm', 5] });
      const { query, ...compiled } = pageOf('sqlite', kysely.selectFrom('things').selectAll(), list).compile();
      const explained = { ...compiled, query, sql: `explain query plan ${compiled.sql}` };
      const { rows } = await kysely.executeQuery<{ detail: string }>(explained);
      return rows.map(({ detail }) => detail).join('; ');
    };
    assert.match(await plan(false), /^SEARCH things USING INDEX things_by_city \(\(city,id\)>\(\?,\?\)\)$/);
    assert.match(await plan(true), /^SEARCH things USING INDEX things_by_city \(city>\?\)/);
  });
});

const server = process.env['TEST_POSTGRES_URL'];

describe('pages behind a row: PostgreSQL', () => {
  if (server === undefined) {
    it('are tested where TEST_POSTGRES_URL names a server');
    return;
  }
  // A temporary table is seen by its own connection alone, and goes with it.
  const pool = new pg.Pool({ connectionString: server, max: 1, idleTimeoutMillis: 0 });
  const kysely = new Kysely<Things>({ dialect: new PostgresDialect({ pool }) });
  before(() => sql.raw(table(' collate "C"').replace('create', 'create temporary')).execute(kysely));
  after(() => kysely.destroy());
  describeWalks(() => ({ dialect: 'postgres', kysely }));
});
