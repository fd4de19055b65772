/** Reading pages: by row and by offset, with the same results in every order on both databases, and with few queries. */
import assert from 'node:assert/strict';
import { constants, DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { type CompiledQuery, Kysely, PostgresDialect, type SelectQueryBuilder, SqliteDialect, sql } from 'kysely';
import pg from 'pg';
import type { ListQuery } from '#query';
import { createStatementCache } from '../../../src/travel/storage/dialect.ts';
import { createPageReader } from '../../../src/travel/storage/select-page.ts';
import type { Slot } from '../../../src/travel/storage/statement.ts';
import { selectPage } from '../../support/select-page.ts';

interface Place {
  readonly id: number;
  readonly city: string;
  readonly stars: number;
  readonly seen: string | null;
}

interface Opened {
  readonly dialect: 'sqlite' | 'postgres';
  readonly kysely: Kysely<{ readonly places: Place }>;
}

type Sort = ListQuery<Place>['sort'];

const byId: Sort = [{ column: 'id', descending: false }];

const listOf = (list: Partial<ListQuery<Place>>): ListQuery<Place> => ({
  offset: 0,
  limit: 100,
  fields: undefined,
  filters: [],
  search: undefined,
  sort: byId,
  ...list,
});

const tableIn = (text: string) =>
  `create table places (id int primary key, city text${text} not null, stars int not null, seen text${text})`;

function openIn(connection: DatabaseSync): Kysely<{ readonly places: Place }> {
  return new Kysely({ dialect: new SqliteDialect({ database: createStatementCache(connection) }) });
}

const openInMemory = () => openIn(new DatabaseSync(':memory:'));

type Places = SelectQueryBuilder<{ readonly places: Place }, 'places', Place>;

/** Returns the compiled query of a page without running it. */
async function compiledFor(dialect: Opened['dialect'], query: Places, list: ListQuery<Place>): Promise<CompiledQuery> {
  const queries: CompiledQuery[] = [];
  const executeQuery = async (compiled: CompiledQuery) => {
    queries.push(compiled);
    return { rows: [] };
  };
  await selectPage(
    { dialect, kysely: { executeQuery, getExecutor: () => assert.fail('query builders do not need it') } },
    query,
    list,
  );
  return queries[0] ?? assert.fail('no query was run');
}

const places = fc.uniqueArray(
  fc.record({
    id: fc.integer({ min: 1, max: 1000 }),
    city: fc.constantFrom('', 'Bern', 'bern', 'Ulm', 'Ulm ', 'Zürich', '10', '9'),
    stars: fc.integer({ min: -2, max: 2 }),
    seen: fc.constantFrom(null, 'a', 'b'),
  }),
  { selector: ({ id }) => id, maxLength: 25 },
);

const sorts = fc
  .uniqueArray(fc.constantFrom('city', 'stars', 'seen'), { maxLength: 3 })
  .chain((columns) =>
    fc.tuple(
      ...[...columns, 'id' as const].map((column) =>
        fc.record({ column: fc.constant(column), descending: fc.boolean() }),
      ),
    ),
  )
  .map((orders) => orders.map((order) => ({ ...order, isNullable: order.column === 'seen' })));

function describePages({ dialect, kysely }: Opened): void {
  const query = kysely.selectFrom('places').selectAll();
  const readPage = createPageReader({ dialect, kysely }, () => query);
  const page = (list: Partial<ListQuery<Place>>) => readPage(undefined, listOf(list));

  const fill = async (rows: readonly Place[]) => {
    await kysely.deleteFrom('places').execute();
    if (rows.length > 0) await kysely.insertInto('places').values(rows).execute();
  };

  /** Reads all rows page by page, and runs `between` after each page. */
  async function walk(sort: Sort, limit: number, between = async () => {}): Promise<Place[]> {
    const rows: Place[] = [];
    for (let after: ListQuery<Place>['after'] = []; ; ) {
      const { items, hasMore } = await page({ sort, limit, after, wantsTotal: false });
      assert.ok(items.length <= limit);
      rows.push(...items);
      const last = items.at(-1);
      if (hasMore !== true || last === undefined) return rows;
      assert.ok(rows.length < 200, 'the pages never end');
      after = sort.map(({ column }) => last[column]);
      await between();
    }
  }

  it('returns the same rows in the same order, page by page, as one large page', async () => {
    await fc.assert(
      fc.asyncProperty(places, sorts, fc.integer({ min: 1, max: 6 }), async (rows, sort, limit) => {
        await fill(rows);
        assert.deepEqual(await walk(sort, limit), (await page({ sort })).items);
      }),
      { numRuns: 60 },
    );
  });

  it('neither repeats nor skips rows while others are inserted', async () => {
    await fc.assert(
      fc.asyncProperty(places, places, sorts, async (rows, more, sort) => {
        await fill(rows);
        const before = (await page({ sort })).items.map(({ id }) => id);
        const others = more.map((one) => ({ ...one, id: one.id + 1000 }));
        const walked = await walk(sort, 2, async () => {
          const next = others.pop();
          if (next !== undefined) await kysely.insertInto('places').values(next).execute();
        });
        const ids = walked.map(({ id }) => id);
        assert.equal(new Set(ids).size, ids.length);
        assert.deepEqual(
          ids.filter((id) => id <= 1000),
          before,
        );
      }),
      { numRuns: 40 },
    );
  });

  it('counts the whole list on every page, unless the query does not want a total', async () => {
    await fill([1, 2, 3, 4, 5].map((id) => ({ id, city: 'Ulm', stars: 0, seen: null })));
    const check = async (
      list: Partial<ListQuery<Place>>,
      ids: readonly number[],
      total?: number,
      hasMore?: boolean,
    ) => {
      const { items, ...rest } = await page({ limit: 2, ...list });
      const expected = { ids, total, ...(hasMore !== undefined && { hasMore }) };
      assert.deepEqual({ ids: items.map(({ id }) => id), ...rest }, expected);
    };
    await check({ after: [] }, [1, 2], 5, true);
    await check({ after: [4] }, [5], 5, false);
    await check({ after: [3], wantsTotal: false }, [4, 5], undefined, false);
    await check({ offset: 2, wantsTotal: false }, [3, 4], undefined, true);
    await check({ offset: 3, wantsTotal: false }, [4, 5], undefined, false);
    await check({ after: [1], filters: [{ column: 'stars', value: 1 }] }, [], 0, false);
  });
}

describe('createPageReader on SQLite', () => {
  const kysely = openInMemory();
  before(() => sql.raw(tableIn('')).execute(kysely));
  after(() => kysely.destroy());
  describePages({ dialect: 'sqlite', kysely });

  it('uses an index to find the rows after a given one, in orders with one or two directions', async () => {
    await sql`create index places_by_city on places (city, id)`.execute(kysely);
    const plan = async (descending: boolean) => {
      const sort = [{ column: 'city', descending: false } as const, { column: 'id', descending } as const];
      const list = listOf({ sort, after: ['Ulm', 5] });
      const compiled = await compiledFor('sqlite', kysely.selectFrom('places').selectAll(), list);
      const explained = { ...compiled, sql: `explain query plan ${compiled.sql}` };
      const { rows } = await kysely.executeQuery<{ detail: string }>(explained);
      return rows.map(({ detail }) => detail).join('; ');
    };
    assert.match(await plan(false), /^SEARCH places USING INDEX places_by_city \(\(city,id\)>\(\?,\?\)\)$/);
    assert.match(await plan(true), /^SEARCH places USING INDEX places_by_city \(city>\?\)/);
  });
});

const server = process.env['TEST_POSTGRES_URL'];

describe('createPageReader on PostgreSQL', () => {
  if (server === undefined) {
    it('needs TEST_POSTGRES_URL');
    return;
  }
  // A temporary table belongs to one connection, and is dropped with it.
  const pool = new pg.Pool({ connectionString: server, max: 1, idleTimeoutMillis: 0 });
  const kysely = new Kysely<{ readonly places: Place }>({ dialect: new PostgresDialect({ pool }) });
  before(() => sql.raw(tableIn(' collate "C"').replace('create', 'create temporary')).execute(kysely));
  after(() => kysely.destroy());
  describePages({ dialect: 'postgres', kysely });
});

describe('the queries of a page', () => {
  const kysely = openInMemory();
  before(async () => {
    await sql.raw(tableIn('')).execute(kysely);
    const rows = [1, 2, 3].map((id) => ({ id, city: 'Ulm', stars: 0, seen: null }));
    await kysely.insertInto('places').values(rows).execute();
  });
  after(() => kysely.destroy());

  const check = async (list: Partial<ListQuery<Place>>, total: number, queries: number) => {
    let run = 0;
    const counting = kysely.withPlugin({
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        run += 1;
        return result;
      },
    });
    const query = counting.selectFrom('places').selectAll();
    const page = await selectPage({ dialect: 'sqlite', kysely: counting }, query, listOf({ limit: 2, ...list }));
    assert.deepEqual([page.total, run], [total, queries]);
  };

  it('are one if the page is not full, because the list ends there', async () => {
    await check({ limit: 20 }, 3, 1);
    await check({ offset: 2 }, 3, 1);
    await check({ filters: [{ column: 'city', value: 'x' }] }, 0, 1);
  });

  it('are two if the page is full or beyond the end, because the total must be counted', async () => {
    await check({}, 3, 2);
    await check({ offset: 1 }, 3, 2);
    await check({ offset: 9 }, 3, 2);
  });

  it('are prepared once, even when limit and offset change', async () => {
    const connection = new DatabaseSync(':memory:');
    const other = openIn(connection);
    await sql.raw(tableIn('')).execute(other);
    let prepared = 0;
    // SQLite calls the authorizer whenever it prepares a statement.
    connection.setAuthorizer(() => {
      prepared += 1;
      return constants.SQLITE_OK;
    });
    const query = other.selectFrom('places').selectAll();
    const readBoth = async (limit: number, offset: number) => {
      await selectPage({ dialect: 'sqlite', kysely: other }, query, listOf({ limit, offset }));
      await selectPage({ dialect: 'sqlite', kysely: other }, query, listOf({ limit, after: [offset] }));
      return prepared;
    };
    assert.equal(await readBoth(2, 1), await readBoth(3, 4));
    await other.destroy();
  });

  it('are compiled once for all list queries that differ only in values', async () => {
    let compiled = 0;
    const counting = kysely.withPlugin({
      transformQuery({ node }) {
        compiled += 1;
        return node;
      },
      transformResult: async ({ result }) => result,
    });
    const places = counting.selectFrom('places').selectAll();
    const readPage = createPageReader({ dialect: 'sqlite', kysely }, (slot: Slot<number>) => {
      const below = slot((bound) => bound);
      return places.where('id', '<', below);
    });
    const check = async (below: number, list: Partial<ListQuery<Place>>, ids: readonly number[], total: number) => {
      const page = await readPage(below, listOf({ limit: 1, ...list }));
      assert.deepEqual({ ids: page.items.map(({ id }) => id), total: page.total }, { ids, total });
      return compiled;
    };
    const inCity = (value: string) => [{ column: 'city', value } as const];
    const search = (text: string) => ({ text, columns: ['city'] as const });
    for (const [first, second] of [
      [await check(3, {}, [1], 2), await check(4, { offset: 1, limit: 2 }, [2, 3], 3)],
      [await check(3, { after: [1] }, [2], 2), await check(4, { after: [2], limit: 2 }, [3], 3)],
      [await check(4, { filters: inCity('Ulm') }, [1], 3), await check(4, { filters: inCity('Bern') }, [], 0)],
      [await check(4, { search: search('u') }, [1], 3), await check(4, { search: search('x') }, [], 0)],
    ] as const)
      assert.equal(first, second);
    await check(4, { filters: [{ column: 'seen', value: null }] }, [1], 3);
    await check(4, { filters: [{ column: 'seen', value: 'a' }] }, [], 0);
    await check(4, { sort: [{ column: 'id', descending: true }] }, [3], 3);
  });

  it('search with the same SQL in both databases, and escape the wildcards of LIKE', async () => {
    const list = listOf({ limit: 2, search: { text: 'É%_\\', columns: ['city', 'seen'] } });
    const test = (column: string) => `replace(lower("${column}"), ?, ?) like ? escape '\\'`;
    const where = `(${test('city')} or ${test('seen')})`;
    for (const dialect of ['sqlite', 'postgres'] as const) {
      const compiled = await compiledFor(dialect, kysely.selectFrom('places').selectAll(), list);
      assert.equal(
        compiled.sql,
        `select * from "places" where ${where} order by "id" asc limit cast(? as bigint) offset cast(? as bigint)`,
      );
      const searched = ['É', 'é', '%é\\%\\_\\\\%'];
      assert.deepEqual(compiled.parameters, [...searched, ...searched, 2, 0]);
    }
  });
});
