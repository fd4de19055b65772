/** A page costs no more questions than it must; what it holds is in the storage contract. */
import assert from 'node:assert/strict';
import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely';
import type { ListQuery } from '#query';
import { type Database, openDatabase, selectPage, type Tables } from '#storage';
import { narrow, pageOf } from '../../src/storage/select-page.ts';

const everything: ListQuery<{ id: string; name: string }> = {
  offset: 0,
  limit: 2,
  fields: undefined,
  filters: [],
  search: undefined,
  sort: [{ column: 'id', descending: false }],
};

describe('selectPage', () => {
  let database: Database;

  beforeEach(async () => {
    database = await openDatabase({ url: 'sqlite::memory:' });
    const names = ['a', 'b', 'c'];
    await database.kysely
      .insertInto('accounts')
      .values(names.map((name) => ({ id: name, name })))
      .execute();
  });

  afterEach(() => database.close());

  const check = async (list: Partial<typeof everything>, total: number, questions: number) => {
    let asked = 0;
    const counting = database.kysely.withPlugin({
      transformQuery({ node }) {
        asked += 1;
        return node;
      },
      transformResult: async ({ result }) => result,
    });
    const accounts = counting.selectFrom('accounts').select(['id', 'name']);
    const page = await selectPage(database, accounts, { ...everything, ...list });
    assert.deepEqual([page.total, asked], [total, questions]);
  };

  it('asks once when the page is not full, for then it ends the list', async () => {
    await check({ limit: 20 }, 3, 1);
    await check({ offset: 2 }, 3, 1);
    await check({ filters: [{ column: 'name', value: 'x' }] }, 0, 1);
  });

  it('asks for the total when the page is full or past the end', async () => {
    await check({}, 3, 2);
    await check({ offset: 1 }, 3, 2);
    await check({ offset: 9 }, 3, 2);
  });
});

describe('the SQL of a page', () => {
  const postgres = new Kysely<Tables>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (kysely) => new PostgresIntrospector(kysely),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  });

  it('searches by the letters of the database’s own collation in PostgreSQL, with LIKE’s signs escaped', () => {
    const list = { ...everything, search: { text: '5%_\\', columns: ['name', 'id'] as const } };
    const query = postgres.selectFrom('accounts').select(['id', 'name']);
    const { sql, parameters } = pageOf('postgres', narrow('postgres', query, list), list).compile();
    assert.equal(
      sql,
      'select "id", "name" from "accounts" where ' +
        `(lower("name" collate "default") like lower($1) escape '\\' or lower("id" collate "default") like lower($2) escape '\\') ` +
        'order by "id" asc limit $3 offset $4',
    );
    assert.deepEqual(parameters, ['%5\\%\\_\\\\%', '%5\\%\\_\\\\%', 2, 0]);
  });
});
