/** A file of rows: made where it is missing, refused clearly where it cannot be. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sql } from 'kysely';
import { type Database, openDatabase, StorageSetupError } from '#storage';

describe('a SQLite database', () => {
  let directory: string;

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'frontdesk-'));
  });

  afterEach(() => rmSync(directory, { recursive: true }));

  const pragma = async (database: Database, name: string) => {
    const { rows } = await sql<Record<string, unknown>>`pragma ${sql.raw(name)}`.execute(database.kysely);
    return Object.values(rows[0] ?? {})[0];
  };

  it('makes the directories above its file', async () => {
    const file = join(directory, 'a', 'b', 'test.db');
    const database = await openDatabase({ url: `sqlite:${file}` });
    await database.close();
    assert.ok(existsSync(file));
  });

  it('finds a relative path from the working directory', async () => {
    const database = await openDatabase({ url: `sqlite:${relative('.', join(directory, 'test.db'))}` });
    await database.close();
    assert.ok(existsSync(join(directory, 'test.db')));
  });

  it('survives a power cut, lets readers read while it writes, and keeps foreign keys', async () => {
    const database = await openDatabase({ url: `sqlite:${join(directory, 'test.db')}` });
    assert.equal(await pragma(database, 'journal_mode'), 'wal');
    assert.equal(await pragma(database, 'synchronous'), 2);
    assert.equal(await pragma(database, 'foreign_keys'), 1);
    await database.close();
  });

  describe('that cannot be used', () => {
    const refuse = (path: string, reason: RegExp) =>
      assert.rejects(openDatabase({ url: `sqlite:${path}` }), (error) => {
        assert.ok(error instanceof StorageSetupError);
        assert.ok(error.message.includes(path), error.message);
        assert.match(error.message, reason);
        assert.match(error.message, /Let DATABASE_URL name/);
        return true;
      });

    it('names the path and the remedy when its directory cannot be made', async () => {
      writeFileSync(join(directory, 'file'), '');
      await refuse(join(directory, 'file', 'test.db'), /EEXIST|ENOTDIR/);
    });

    it('names the path and the remedy when it is a directory', () => refuse(directory, /unable to open/));

    it('names the path and the remedy when the file is something else', async () => {
      writeFileSync(join(directory, 'notes.txt'), 'not a database at all, '.repeat(100));
      await refuse(join(directory, 'notes.txt'), /not a database/);
    });

    it('names the path when it holds tables of something else, and leaves them alone', async () => {
      const file = join(directory, 'other.db');
      const other = new DatabaseSync(file);
      other.exec('create table cars (plate text)');
      await refuse(file, /table cars already exists/);
      assert.deepEqual(
        other
          .prepare(`select name from sqlite_master where type = 'table' and name not like 'sqlite%'`)
          .all()
          .map(({ name }) => name),
        ['cars'],
      );
      other.close();
    });
  });

  it('waits for a writer in this very process without blocking it', async () => {
    const file = join(directory, 'test.db');
    const database = await openDatabase({ url: `sqlite:${file}` });
    const writer = new DatabaseSync(file);
    writer.exec('begin immediate');
    let released = false;
    const insertion = database.kysely.insertInto('accounts').values({ id: 'a', name: 'A' }).execute();
    setImmediate(() => {
      released = true;
      writer.exec('commit');
    });
    await insertion;
    assert.ok(released);
    writer.close();
    await database.close();
  });

  it('lets two processes open an empty file at once, as the lock of the migration is the file’s', async () => {
    const file = join(directory, 'test.db');
    const other = new DatabaseSync(file);
    other.exec('pragma journal_mode = WAL');
    other.exec('begin immediate');
    const opening = openDatabase({ url: `sqlite:${file}` });
    setImmediate(() => other.exec('commit'));
    await (await opening).close();
    other.close();
  });
});
