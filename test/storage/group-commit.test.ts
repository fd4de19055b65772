/** Transactions of a SQLite file that arrive together: one commit, each undone alone, none answered before it is on disk. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sql } from 'kysely';
import { type Database, openDatabase, StorageUnavailable } from '#storage';
import { temporaryFiles } from '../support/temporary-files.ts';

describe('transactions of a SQLite file', () => {
  const writeFiles = temporaryFiles();
  let database: Database;
  /** As another process sees the file: what is committed, and nothing else. */
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

  it('share a commit where they arrive together, and are answered after it', async () => {
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

  it('are undone alone when they throw, and the refusal too comes after the commit', async () => {
    const refused = insert('b', () => {
      throw new Error('refused');
    });
    const works = [insert('a'), refused.catch((error) => [error.message, committed()]), insert('c')];
    assert.deepEqual(await Promise.all(works), ['a', ['refused', ['a', 'c']], 'c']);
  });

  it('run again when one of them throws after it has written, and not for one that threw before', async () => {
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
      // It ran after the other, and so only when that one was undone.
      assert.equal(runs.c, 1);
      assert.deepEqual(committed(), ['a', 'c']);
      await sql`delete from accounts`.execute(database.kysely);
    }
  });

  it('see what those before them wrote', async () => {
    const count = () =>
      database.transact(async (transaction) => {
        const { rows } = await sql<{ n: number }>`select count(*) as n from accounts`.execute(transaction);
        return rows[0]?.n;
      });
    assert.deepEqual(await Promise.all([insert('a'), count(), insert('b'), count()]), ['a', 1, 'b', 2]);
  });

  it('all fail when the commit does, and nothing of them is kept', async () => {
    await sql`create table child (parent text references accounts deferrable initially deferred)`.execute(
      database.kysely,
    );
    const orphan = database.transact((transaction) => sql`insert into child values ('x')`.execute(transaction));
    const results = await Promise.allSettled([insert('a'), orphan, insert('b')]);
    assert.deepEqual(
      results.map(({ status }) => status),
      ['rejected', 'rejected', 'rejected'],
    );
    assert.deepEqual(committed(), []);
    assert.equal(await insert('c'), 'c');
  });

  it('all fail when SQLite gives up the transaction in the middle, and later ones do not', async () => {
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

  it('commit after 64 of them, so that the first does not wait for ever', async () => {
    let endless = true;
    let answers = 0;
    const add = async (): Promise<void> => {
      // Asks for the next one from within, so that there is always one that waits.
      await database.transact(async () => void (endless && void add().then(() => (answers += 1))));
    };
    await add();
    endless = false;
    assert.ok(answers <= 64);
  });

  it('fail as unavailable when the database is closed', async () => {
    await database.close();
    await assert.rejects(insert('a'), StorageUnavailable);
  });
});
