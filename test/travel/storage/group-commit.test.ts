/** Group commit: concurrent transactions of a SQLite file share a commit, settle after it, and fail individually. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sql } from 'kysely';
import { type Database, StorageUnavailable } from '../../../src/travel/storage/database.ts';
import { openDatabase } from '../../../src/travel/storage/open-database.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';

describe('transactions of a SQLite file', () => {
  const writeFiles = temporaryFiles();
  let database: Database;
  /** Sees the file like another process would: only what is committed. */
  let other: DatabaseSync;

  beforeEach(async () => {
    const file = join(await writeFiles(), 'test.db');
    database = await openDatabase({ url: `sqlite:${file}` });
    other = new DatabaseSync(file);
  });

  afterEach(async () => {
    await database.close();
    if (other.isOpen) other.close();
  });

  const committed = () =>
    other
      .prepare('select id from accounts order by id')
      .all()
      .map(({ id }) => id);

  const insert = (id: string, then = () => {}) =>
    database.transact(async (transaction) => {
      await transaction.insertInto('accounts').values({ id, name: id }).execute();
      then();
      return id;
    });

  it('share a commit when they are concurrent, and settle after it', async () => {
    const seen: unknown[] = [];
    const ids = ['a', 'b', 'c', 'd'];
    const works = ids.map((id) => insert(id, () => seen.push(committed())));
    assert.deepEqual(await works[0], 'a');
    assert.deepEqual(committed(), ids);
    assert.deepEqual(await Promise.all(works), ids);
    assert.deepEqual(
      seen,
      ids.map(() => []),
    );
  });

  it('are undone individually when they throw, and reject after the commit', async () => {
    const refused = insert('b', () => {
      throw new Error('refused');
    });
    const works = [insert('a'), refused.catch((error) => [error.message, committed()]), insert('c')];
    assert.deepEqual(await Promise.all(works), ['a', ['refused', ['a', 'c']], 'c']);
  });

  it('run again when one of them throws after it has written, but not when it throws before', async () => {
    const runs = { a: 0, b: 0, c: 0 };
    const refuse = (id: 'b', writes: boolean) =>
      database.transact(async (transaction) => {
        runs[id] += 1;
        if (writes) await transaction.insertInto('accounts').values({ id, name: id }).execute();
        await transaction.selectFrom('accounts').select('id').execute();
        throw new Error('refused');
      });
    const insertCounted = (id: 'a' | 'c') => insert(id, () => (runs[id] += 1));
    for (const [writes, expected] of [
      [false, 1],
      [true, 2],
    ] as const) {
      Object.assign(runs, { a: 0, b: 0, c: 0 });
      const works = [insertCounted('a'), refuse('b', writes), insertCounted('c')];
      const results = await Promise.allSettled(works);
      assert.deepEqual(
        results.map(({ status }) => status),
        ['fulfilled', 'rejected', 'fulfilled'],
      );
      assert.deepEqual([runs.a, runs.b], [expected, expected]);
      // It comes after the failing one, so it does not run until that one has been undone.
      assert.equal(runs.c, 1);
      assert.deepEqual(committed(), ['a', 'c']);
      await sql`delete from accounts`.execute(database.kysely);
    }
  });

  it('see the writes of those before them', async () => {
    const count = () =>
      database.transact(async (transaction) => {
        const { rows } = await sql<{ n: number }>`select count(*) as n from accounts`.execute(transaction);
        return rows[0]?.n;
      });
    assert.deepEqual(await Promise.all([insert('a'), count(), insert('b'), count()]), ['a', 1, 'b', 2]);
  });

  it('all fail and leave no writes when the commit fails', async () => {
    await sql`create table child (parent text references accounts deferrable initially deferred)`.execute(
      database.kysely,
    );
    const orphan = () => database.transact((transaction) => sql`insert into child values ('x')`.execute(transaction));
    const refused = () =>
      insert('x', () => {
        throw new Error('refused');
      });
    // The second group runs again with savepoints, because one call throws after it has written.
    for (const works of [() => [insert('a'), orphan(), insert('b')], () => [insert('a'), refused(), orphan()]]) {
      const results = await Promise.allSettled(works());
      const reasons = results.map((result) => result.status === 'rejected' && String(result.reason));
      for (const reason of reasons) assert.match(String(reason), /FOREIGN KEY/);
      assert.deepEqual(committed(), []);
    }
    assert.equal(await insert('c'), 'c');
  });

  it('all fail when SQLite rolls back the transaction by itself, and later ones succeed', async () => {
    const breakOff = () =>
      database.transact(async (transaction) => {
        await sql`rollback`.execute(transaction);
        throw new Error('the disk is full');
      });
    const results = await Promise.allSettled([insert('a'), breakOff()]);
    assert.deepEqual(
      results.map((result) => result.status === 'rejected' && result.reason.message),
      ['the disk is full', 'the disk is full'],
    );
    assert.deepEqual(committed(), []);
    assert.equal(await insert('b'), 'b');
  });

  it('commit after at most 64, so that the first does not wait forever', async () => {
    let endless = true;
    let committed = 0;
    const add = async (): Promise<void> => {
      // Starts the next one from within, so that one is always waiting.
      await database.transact(async () => void (endless && void add().then(() => (committed += 1))));
    };
    await add();
    endless = false;
    assert.ok(committed <= 64);
  });

  it('fail with StorageUnavailable when the database is closed', async () => {
    await database.close();
    await assert.rejects(insert('a'), StorageUnavailable);
  });
});
