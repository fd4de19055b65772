/** Opens SQLite databases with node:sqlite: durable writes, a separate reader, and retries while the file is busy. */
import { closeSync, openSync, statSync } from 'node:fs';
import { dirname, isAbsolute, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Compilable, Kysely, SqliteDialect } from 'kysely';
import { makeFolders } from '#foundation';
import {
  type Database,
  isSqliteBusy,
  type PreparedRead,
  StorageSetupError,
  StorageUnavailable,
  setupError,
  type Transact,
  translateDriverError,
} from './database.ts';
import { createRowReader, createStatementCache, extendDialect } from './dialect.ts';
import { createGroupCommit } from './group-commit.ts';
import { migrate } from './migrations.ts';
import type { Tables } from './schema.ts';
import { createDiskCheck, createFileCheck, type DiskCheck, diskFaultOf, findReadFault } from './sqlite-faults.ts';

const memory = ':memory:';

/** How long SQLite itself blocks the thread to wait for a lock. `retryWhileBusy` waits longer without blocking. */
const blockMs = 10;

/** `path` is the URL without `sqlite:`. */
export async function openSqlite(path: string, timeoutMs: number): Promise<Database> {
  const file = fileOf(path);
  try {
    if (isAbsolute(path)) requireDirectory(dirname(file));
    return await open(file, timeoutMs);
  } catch (error) {
    throw setupError(`the database file ${file}`, error, remedyFor(error));
  }
}

function remedyFor(error: unknown): string {
  if (isSqliteBusy(error))
    return 'Another process is writing to it or upgrading its tables: start again when it has finished';
  return (
    diskFaultOf(error) ??
    'Set DATABASE_URL to a SQLite file in a directory that this user can write to, or to sqlite::memory:'
  );
}

function fileOf(path: string): string {
  if (path === memory) return memory;
  if (path !== '' && !path.startsWith('//')) return resolve(path);
  throw new StorageSetupError(
    `sqlite:${path} is not the path of a file: write sqlite:./path, sqlite:/absolute/path or sqlite::memory:`,
  );
}

async function open(file: string, timeoutMs: number): Promise<Database> {
  const isFile = file !== memory;
  if (isFile) {
    await makeFolders(dirname(file), { mode: 0o700 });
    createPrivately(file);
  }
  const writer = new DatabaseSync(file, { timeout: blockMs });
  let reader = writer;
  try {
    const retry: Retry = (run) => retryWhileBusy(run, { timeoutMs });
    await configure(writer, retry);
    // A separate reader does not see the uncommitted writes of other requests.
    if (isFile) reader = new DatabaseSync(file, { readOnly: true, timeout: blockMs });
    // No snapshots on the writer: their transaction would include the writes of other requests.
    const snapshot = isFile ? createReadSnapshot(reader) : undefined;
    const findFileFault = isFile ? createFileCheck(file) : () => undefined;
    const connection: Connection = { writer, reader, snapshot, retry, findFileFault, disk: createDiskCheck() };
    const kysely = openKysely(connection);
    await migrateExclusively(connection, kysely);
    return createDatabase(connection, kysely);
  } catch (error) {
    closeAll(reader, writer);
    throw error;
  }
}

/** For an absolute path, which is probably misspelt if its directory does not exist. */
function requireDirectory(path: string): void {
  if (isDirectory(path)) return;
  throw new StorageSetupError(
    `there is no directory ${path}. Set DATABASE_URL to a file in an existing directory, or create this one`,
  );
}

/**
 * Creates a missing file, readable for its owner only. SQLite would let everyone read it, and gives its other files the
 * mode of this one.
 */
function createPrivately(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch {
    // The file exists and keeps its mode, or SQLite cannot create it either and reports why.
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Retries a statement while another process is writing. */
type Retry = <T>(run: () => T | Promise<T>) => Promise<T>;

async function configure(writer: DatabaseSync, retry: Retry): Promise<void> {
  await retry(() => writer.exec('pragma journal_mode = WAL'));
  // With FULL, a confirmed booking survives a power failure. With NORMAL, WAL mode could lose the latest commits.
  writer.exec('pragma synchronous = FULL');
  writer.exec('pragma foreign_keys = ON');
}

/** The connections to a file, and what their operations share. */
interface Connection {
  readonly writer: DatabaseSync;
  /** The same as the writer if the database is in memory. */
  readonly reader: DatabaseSync;
  readonly snapshot: ReadSnapshot | undefined;
  readonly retry: Retry;
  readonly findFileFault: () => string | undefined;
  readonly disk: DiskCheck;
}

function openKysely(connection: Connection): Kysely<Tables> {
  const { writer, findFileFault } = connection;
  // Takes the write lock immediately. A transaction that reads first might fail to get it later.
  const beginImmediate = writer.prepare('begin immediate');
  const dialect = new SqliteDialect({ database: createStatementCache(writer) });
  return new Kysely<Tables>({
    dialect: extendDialect(dialect, {
      around: (run) => runAndReport(run, connection),
      // Does not wait for the write lock, because reads would have to wait for this connection meanwhile.
      begin() {
        const fault = findFileFault();
        // SQLite would keep writing to a deleted file, and bookings would be lost.
        if (fault !== undefined) throw new StorageUnavailable(new Error(fault));
        beginImmediate.run();
      },
      needsRollback: () => writer.isOpen && writer.isTransaction,
    }),
  });
}

async function runAndReport<T>(run: () => Promise<T>, { retry, snapshot, disk }: Connection): Promise<T> {
  try {
    return await retry(run);
  } catch (error) {
    disk.reportError(error);
    throw translateDriverError(error);
  } finally {
    snapshot?.end();
  }
}

/**
 * Migrates under the write lock of the file, in case another process starts at the same time. Kysely itself takes no
 * lock in SQLite. If a migration fails, closing the connection rolls back all of them.
 */
async function migrateExclusively({ writer, retry }: Connection, kysely: Kysely<Tables>): Promise<void> {
  await retry(() => writer.exec('begin immediate'));
  await migrate(kysely, 'sqlite');
  writer.exec('commit');
}

function createDatabase(connection: Connection, kysely: Kysely<Tables>): Database {
  const { writer, reader, findFileFault, disk } = connection;
  // Only the beginning can fail because the file is busy, so no work runs twice.
  const runTransaction: Transact = (work) => runAndReport(() => kysely.transaction().execute(work), connection);
  return Object.freeze({
    dialect: 'sqlite',
    kysely,
    transact: createGroupCommit(runTransaction, createChangeCount(writer)),
    prepareFirst: <Row>(query: Compilable<Row>) => prepareFirst<Row>(connection, query.compile().sql),
    findFault: async () => findFileFault() ?? findReadFault(reader) ?? disk.findFault(kysely),
    close: async () => closeAll(reader, writer),
  } satisfies Database);
}

/** Counts changed rows, including those changed by foreign keys. A failed statement changes none. */
function createChangeCount(writer: DatabaseSync): () => number | undefined {
  const count = writer.prepare('select total_changes()');
  count.setReturnArrays(true);
  return () => (writer.isOpen && writer.isTransaction ? Number(Object(count.get())[0]) : undefined);
}

function closeAll(reader: DatabaseSync, writer: DatabaseSync): void {
  if (reader.isOpen) reader.close();
  if (writer.isOpen) writer.close();
}

function prepareFirst<Row>({ reader, snapshot }: Connection, sql: string): PreparedRead<Row> {
  const statement = reader.prepare(sql);
  const toRow = createRowReader(statement);
  return function readFirst(...parameters) {
    try {
      snapshot?.begin();
      const values = statement.get(...parameters);
      return values && (toRow(values) as Row);
    } catch (error) {
      throw translateDriverError(error);
    }
  };
}

export interface ReadSnapshot {
  /** Call it before each read. The second and later reads of a turn see the same snapshot. */
  readonly begin: () => void;
  /** Call it after each write of this process, so that the next read sees it. */
  readonly end: () => void;
}

/**
 * Lets the reads in one turn of the event loop share a transaction. Without one, SQLite locks and unlocks the file for
 * each read.
 */
export function createReadSnapshot(reader: DatabaseSync): ReadSnapshot {
  const [begin, commit] = [reader.prepare('begin'), reader.prepare('commit')];
  let readsInTurn = 0;

  function end(): void {
    readsInTurn = 0;
    // On a closed connection `isTransaction` would throw, and in setImmediate that would end the process.
    if (reader.isOpen && reader.isTransaction) commit.run();
  }

  return Object.freeze({
    begin() {
      readsInTurn += 1;
      if (readsInTurn === 1) setImmediate(end);
      else if (readsInTurn === 2) begin.run();
    },
    end,
  });
}

export interface RetryOptions {
  readonly timeoutMs: number;
  /** Returns milliseconds of a clock that is never set. @default performance.now */
  readonly now?: () => number;
  /** Waits for a number of milliseconds. @default a timer */
  readonly wait?: (pauseMs: number) => Promise<unknown>;
}

/**
 * Retries a statement while another connection has the file's write lock. It does not block the event loop, which the
 * owner of the lock may need in order to release it. A statement that failed because the file was busy had no effect.
 */
export async function retryWhileBusy<T>(
  run: () => T | Promise<T>,
  { timeoutMs, now = () => performance.now(), wait = sleep }: RetryOptions,
): Promise<T> {
  const endsAtMs = now() + timeoutMs;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run();
    } catch (error) {
      const pauseMs = Math.min(attempt, 50);
      if (!isSqliteBusy(error) || now() + pauseMs > endsAtMs) throw error;
      await wait(pauseMs);
    }
  }
}
