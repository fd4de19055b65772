/** The extensions of Kysely's dialects: retries, immediate transactions, visible errors and cached statements. */
import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { mock } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { CompiledQuery, Kysely, SqliteDialect, sql } from 'kysely';
import { type Database, StorageUnavailable } from '../../../src/travel/storage/database.ts';
import { createStatementCache, type DialectOptions, extendDialect } from '../../../src/travel/storage/dialect.ts';
import { openDatabase } from '../../../src/travel/storage/open-database.ts';

describe('extendDialect', () => {
  const open = (around: DialectOptions['around'] = (run) => run()) => {
    const prepared: string[] = [];
    const cache = createStatementCache(new DatabaseSync(':memory:'));
    const prepare = (text: string) => {
      prepared.push(text);
      return cache.prepare(text);
    };
    const dialect = new SqliteDialect({ database: { close: cache.close, prepare } });
    const begin: DialectOptions['begin'] = (connection) =>
      connection.executeQuery(CompiledQuery.raw('begin immediate'));
    const extended = extendDialect(dialect, { around, begin });
    return { kysely: new Kysely<unknown>({ dialect: extended }), prepared };
  };

  it('runs `around` once for each acquired connection and each statement', async () => {
    let runs = 0;
    const { kysely, prepared } = open((run) => {
      runs += 1;
      return run();
    });
    for (let time = 0; time < 3; time += 1) await sql`select 1`.execute(kysely);
    assert.deepEqual([prepared.length, runs], [3, 6]);
    await kysely.destroy();
  });

  it('lets `around` retry a failed statement', async () => {
    const { kysely, prepared } = open((run) => run().catch(run));
    await assert.rejects(sql`select nonsense`.execute(kysely), /no such column/);
    assert.equal(prepared.length, 2);
    await kysely.destroy();
  });

  it('begins a transaction with the given function', async () => {
    const { kysely, prepared } = open();
    await kysely.transaction().execute((transaction) => sql`select 1`.execute(transaction));
    assert.deepEqual(prepared, ['begin immediate', 'select 1', 'commit']);
    await kysely.destroy();
  });
});

describe('a transaction in SQLite', () => {
  let database: Database;

  beforeEach(async () => {
    database = await openDatabase({ url: 'sqlite::memory:' });
  });

  afterEach(() => database.close());

  const insert = (kysely: Database['kysely'], id: string, name = 'A') =>
    kysely.insertInto('accounts').values({ id, name }).execute();
  const ids = async () => {
    const rows = await database.kysely.selectFrom('accounts').select('id').execute();
    return rows.map(({ id }) => id);
  };

  it('throws StorageUnavailable when the disk is full, not the error of a second rollback', async () => {
    const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(database.kysely);
    await sql`pragma max_page_count = ${sql.lit((rows[0]?.page_count ?? 0) + 4)}`.execute(database.kysely);
    const filling = database.kysely.transaction().execute(async (transaction) => {
      for (let id = 0; id < 100; id += 1) await insert(transaction, String(id), 'x'.repeat(4_000));
    });
    await assert.rejects(filling, (error) => error instanceof StorageUnavailable && /full/.test(String(error.cause)));
    assert.deepEqual(await ids(), []);
    await database.kysely.transaction().execute((transaction) => insert(transaction, 'a'));
    assert.deepEqual(await ids(), ['a']);
  });

  it('delays the statements of other requests on the same connection until it ends', async () => {
    const failing = database.kysely.transaction().execute(async (transaction) => {
      await insert(transaction, 'rolled back');
      await nextTurn();
      throw new Error('on purpose');
    });
    const other = insert(database.kysely, 'other');
    await assert.rejects(failing, /on purpose/);
    await other;
    assert.deepEqual(await ids(), ['other']);
  });
});

describe('createStatementCache', () => {
  let connection: DatabaseSync;

  beforeEach(() => {
    connection = new DatabaseSync(':memory:');
  });

  afterEach(() => connection.close());

  it('prepares each SQL text once', () => {
    const prepare = mock.method(connection, 'prepare');
    const cache = createStatementCache(connection);
    for (let time = 0; time < 3; time += 1) assert.deepEqual(cache.prepare('select 1 as a').all([]), [{ a: 1 }]);
    assert.equal(prepare.mock.callCount(), 1);
  });

  it('does not cache a statement that failed to prepare', () => {
    const cache = createStatementCache(connection);
    assert.throws(() => cache.prepare('select * from t'), /no such table/);
    connection.exec('create table t (id); insert into t values (1)');
    assert.equal([...cache.prepare('select * from t').all([])].length, 1);
  });

  it('supports two concurrent iterations over the same SQL', () => {
    connection.exec('create table t (id); insert into t values (1), (2)');
    const cache = createStatementCache(connection);
    const next = (rows: Iterator<unknown>) => (rows.next().value as { id: number }).id;
    const [one, two] = [0, 1].map(() => cache.prepare('select id from t').iterate([])) as [
      IterableIterator<unknown>,
      IterableIterator<unknown>,
    ];
    assert.deepEqual([next(one), next(two), next(one), next(two)], [1, 1, 2, 2]);
  });
});
