/** Statements that are compiled once and run with the values of each input. */
import assert from 'node:assert/strict';
import { sql } from 'kysely';
import type { Database } from '../../../src/travel/storage/database.ts';
import { openDatabase } from '../../../src/travel/storage/open-database.ts';
import { createStatement } from '../../../src/travel/storage/statement.ts';

describe('createStatement', () => {
  let database: Database;
  let built = 0;

  beforeEach(async () => {
    database = await openDatabase({ url: 'sqlite::memory:' });
    built = 0;
  });
  afterEach(() => database.close());

  it('reads the values of slots from the input, in the order of the SQL, and keeps other values', async () => {
    const run = createStatement<{ readonly a: string; readonly b: number | null }>((slot) => {
      built += 1;
      return sql`select ${slot(({ b }) => b)} as b, ${'constant'} as c, ${slot(({ a }) => a)} as a`;
    });
    for (const input of [
      { a: 'x', b: 1 },
      { a: "'", b: null },
    ]) {
      const { rows } = await run(database.kysely, input);
      assert.deepEqual(rows, [{ b: input.b, c: 'constant', a: input.a }]);
    }
    assert.equal(built, 1);
  });

  it('builds the query once per shape', async () => {
    const sum = createStatement<readonly number[], { readonly sum: number }>(
      (slot, terms) => {
        built += 1;
        const values = terms.map((_, index) => sql`${slot((others) => others[index])}`);
        return sql`select ${sql.join(values, sql` + `)} as sum`;
      },
      ({ length }) => length,
    );
    for (const [terms, expected, times] of [
      [[1, 2], 3, 1],
      [[3, 4], 7, 1],
      [[1, 2, 3], 6, 2],
      [[5, 5], 10, 2],
    ] as const) {
      const { rows } = await sum(database.kysely, terms);
      assert.deepEqual([rows[0]?.sum, built], [expected, times]);
    }
  });

  it('accepts queries of the query builder, and runs in a transaction', async () => {
    const insert = createStatement<string>((slot) => {
      const id = slot((name) => name);
      return database.kysely.insertInto('accounts').values({ id, name: id });
    });
    await database.transact(async (transaction) => {
      for (const id of ['a', 'b']) assert.equal((await insert(transaction, id)).numAffectedRows, 1n);
    });
    const { rows } = await sql`select id, name from accounts order by id`.execute(database.kysely);
    assert.deepEqual(rows, [
      { id: 'a', name: 'a' },
      { id: 'b', name: 'b' },
    ]);
  });
});
