/** SQLite files: created if missing, durable, shared with other processes, and reported with a remedy if unusable. */
import assert from 'node:assert/strict';
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { sql } from 'kysely';
import { type Database, StorageSetupError } from '../../../src/travel/storage/database.ts';
import { openDatabase } from '../../../src/travel/storage/open-database.ts';
import { createReadSnapshot, retryWhileBusy } from '../../../src/travel/storage/sqlite.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';

let directory: string;
let file: string;

describe('SQLite', () => {
  const writeFiles = temporaryFiles();

  beforeEach(async () => {
    directory = await writeFiles();
    file = join(directory, 'test.db');
  });

  describe('a SQLite database', () => {
    let database: Database;
    let other: DatabaseSync;

    afterEach(async () => {
      await database?.close();
      if (other?.isOpen) other.close();
    });

    it('creates its file and the directories of a relative path', async () => {
      const path = join(directory, 'a', 'b', 'test.db');
      database = await openDatabase({ url: `sqlite:${relative('.', path)}` });
      assert.ok(existsSync(path));
    });

    it('keeps its files and the directories that it creates unreadable for other users', async () => {
      const parts = ['new', 'new/inner', 'new/inner/test.db', 'new/inner/test.db-wal', 'new/inner/test.db-shm'];
      database = await openDatabase({ url: `sqlite:${relative('.', join(directory, 'new', 'inner', 'test.db'))}` });
      const modes = parts.map((part) => statSync(join(directory, part)).mode & 0o777);
      assert.deepEqual(modes, [0o700, 0o700, 0o600, 0o600, 0o600]);
    });

    it('keeps the mode of an existing file', async () => {
      writeFileSync(file, '', { mode: 0o640 });
      database = await openDatabase({ url: `sqlite:${file}` });
      assert.equal(statSync(file).mode & 0o777, 0o640 & ~process.umask());
    });

    it('survives a power failure, allows reads during writes, and checks foreign keys', async () => {
      database = await openDatabase({ url: `sqlite:${file}` });
      const pragma = async (name: string) => {
        const { rows } = await sql<Record<string, unknown>>`pragma ${sql.raw(name)}`.execute(database.kysely);
        return Object.values(rows[0] ?? {})[0];
      };
      assert.equal(await pragma('journal_mode'), 'wal');
      assert.equal(await pragma('synchronous'), 2);
      assert.equal(await pragma('foreign_keys'), 1);
    });

    it('waits for another writer without blocking the event loop', async () => {
      database = await openDatabase({ url: `sqlite:${file}` });
      other = new DatabaseSync(file);
      other.exec('begin immediate');
      const insertion = database.kysely.insertInto('accounts').values({ id: 'a', name: 'A' }).execute();
      setImmediate(() => other.exec('commit'));
      await insertion;
    });

    it('can be read while a transaction waits for another writer', async () => {
      database = await openDatabase({ url: `sqlite:${file}` });
      other = new DatabaseSync(file);
      other.exec('begin immediate');
      const insertion = database.transact((transaction) =>
        transaction.insertInto('accounts').values({ id: 'a', name: 'A' }).execute(),
      );
      const read = () => database.kysely.selectFrom('accounts').select('id').execute();
      assert.deepEqual(await read(), []);
      other.exec('commit');
      await insertion;
      assert.deepEqual(await read(), [{ id: 'a' }]);
    });

    it('waits for another process that is migrating the same empty file', async () => {
      other = new DatabaseSync(file);
      other.exec('pragma journal_mode = WAL; begin immediate');
      const opening = openDatabase({ url: `sqlite:${file}` });
      setImmediate(() => other.exec('commit'));
      database = await opening;
    });

    it('is not ready when its file is damaged, and says so', async () => {
      database = await openDatabase({ url: `sqlite:${file}` });
      for (const path of [file, `${file}-wal`]) writeFileSync(path, Buffer.alloc(statSync(path).size, 'x'));
      assert.equal(await database.findFault(), 'The database cannot be read: file is not a database.');
    });

    it('is reported with a hint to wait when another process keeps it locked', async () => {
      other = new DatabaseSync(file);
      other.exec('pragma journal_mode = WAL; begin immediate');
      await assert.rejects(
        openDatabase({ url: `sqlite:${file}`, timeoutMs: 20 }),
        /database is locked\. Another process is writing to it or upgrading its tables: start again when/,
      );
    });

    describe('is reported with its path and the remedy when it is', () => {
      const refuse = (path: string, reason: RegExp) =>
        assert.rejects(openDatabase({ url: `sqlite:${path}` }), (error) => {
          assert.ok(error instanceof StorageSetupError);
          assert.ok(error.message.includes(resolve(path)), error.message);
          assert.match(error.message, reason);
          assert.match(error.message, /Set DATABASE_URL to/);
          return true;
        });

      it('at an absolute path whose directory does not exist, which is not created', async () => {
        const missing = join(directory, 'misspelt');
        await refuse(join(missing, 'test.db'), /there is no directory .*misspelt\. .* or create this one/);
        assert.ok(!existsSync(missing));
      });

      it('in a directory that cannot be created', async () => {
        writeFileSync(file, '');
        await refuse(relative('.', join(file, 'test.db')), /EEXIST|ENOTDIR/);
      });

      it('in a directory that the system does not allow, such as /proc', function () {
        if (process.platform !== 'linux') this.skip();
        return refuse(relative('.', '/proc/nowhere/deep/test.db'), /ENOENT.*\/proc\/nowhere'/);
      });

      it('a directory', () => refuse(directory, /unable to open/));

      it('a file of another type', async () => {
        writeFileSync(file, 'not a database at all, '.repeat(100));
        await refuse(file, /not a database/);
      });

      it('a database of another program, whose tables are not changed', async () => {
        other = new DatabaseSync(file);
        other.exec('create table cars (plate text)');
        await refuse(file, /table cars already exists/);
        const tables = other.prepare(`select name from sqlite_master where type = 'table' and name not like 'sqlite%'`);
        assert.deepEqual(
          tables.all().map(({ name }) => name),
          ['cars'],
        );
      });
    });

    it('lets prepared reads see what a statement has written in the same turn', async () => {
      database = await openDatabase({ url: `sqlite:${file}` });
      const find = database.prepareFirst(database.kysely.selectFrom('accounts').select('name').where('id', '=', ''));
      assert.deepEqual([find('demo'), find('demo')], [undefined, undefined]);
      await database.kysely.insertInto('accounts').values({ id: 'demo', name: 'Demo' }).execute();
      assert.deepEqual([find('demo'), find('demo')], [{ name: 'Demo' }, { name: 'Demo' }]);
    });
  });

  describe('createReadSnapshot', () => {
    let writer: DatabaseSync;
    let reader: DatabaseSync;
    let end: () => void;
    let read: () => unknown;

    beforeEach(() => {
      writer = new DatabaseSync(file);
      writer.exec('pragma journal_mode = WAL');
      writer.exec('create table counters (value integer); insert into counters values (0)');
      reader = new DatabaseSync(file, { readOnly: true });
      const snapshot = createReadSnapshot(reader);
      const statement = reader.prepare('select value from counters');
      end = snapshot.end;
      read = () => {
        snapshot.begin();
        return statement.get()?.['value'];
      };
    });

    afterEach(() => {
      if (reader.isOpen) reader.close();
      writer.close();
    });

    it('does not begin a transaction for a single read in a turn', async () => {
      read();
      assert.equal(reader.isTransaction, false);
      await nextTurn();
      assert.equal(reader.isTransaction, false);
    });

    it('shows the same state to the second and later reads of a turn, and a new one to the next turn', async () => {
      read();
      assert.equal(read(), 0);
      writer.exec('update counters set value = 1');
      assert.equal(read(), 0);
      await nextTurn();
      assert.deepEqual([read(), read()], [1, 1]);
    });

    it('can be ended early, so that the next read sees what was written', () => {
      read();
      read();
      writer.exec('update counters set value = 1');
      end();
      assert.deepEqual([read(), read()], [1, 1]);
    });

    it('allows its connection to be closed within the turn', async () => {
      read();
      read();
      reader.close();
      await nextTurn();
    });
  });

  describe('retryWhileBusy', () => {
    const busy = Object.assign(new Error('database is locked'), { code: 'ERR_SQLITE_ERROR', errcode: 5 });

    /**
     * Runs a statement that takes `blockMs` and fails `failures` times with `error`. Returns the pauses, and the result
     * or message.
     */
    const run = async (failures: number, error: Error, { timeoutMs = 1000, blockMs = 0 } = {}) => {
      const pauses: number[] = [];
      let left = failures;
      let elapsedMs = 0;
      const statement = () => {
        elapsedMs += blockMs;
        if (left === 0) return 'row';
        left -= 1;
        throw error;
      };
      const wait = async (pauseMs: number) => {
        elapsedMs += pauseMs;
        pauses.push(pauseMs);
      };
      const options = { timeoutMs, now: () => elapsedMs, wait };
      const result = await retryWhileBusy(statement, options).catch(({ message }: Error) => message);
      return { pauses, result };
    };

    it('retries after growing pauses until the file is free', async () => {
      assert.deepEqual(await run(0, busy), { pauses: [], result: 'row' });
      assert.deepEqual(await run(3, busy), { pauses: [1, 2, 3], result: 'row' });
    });

    it('throws the last error after the time-out, and any other error immediately', async () => {
      assert.deepEqual(await run(9, busy, { timeoutMs: 3 }), { pauses: [1, 2], result: 'database is locked' });
      assert.deepEqual(await run(1, new Error('syntax')), { pauses: [], result: 'syntax' });
    });

    it('counts the time that SQLite itself waits for the lock', async () => {
      const late = await run(9, busy, { timeoutMs: 30, blockMs: 10 });
      assert.deepEqual(late, { pauses: [1, 2], result: 'database is locked' });
    });
  });
});
