/** SQLite through node:sqlite: durable settings, a reader beside the writer, prepared reads, and waiting for a busy file. */
import { accessSync, constants, mkdirSync, realpathSync, type Stats, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Compilable, CompiledQuery, Kysely, SqliteDialect } from 'kysely';
import {
  type Database,
  isSqliteBusy,
  type PreparedRead,
  StorageSetupError,
  StorageUnavailable,
  setupError,
  sqliteCodeOf,
  translateDriverError,
} from './database.ts';
import { createRowReader, createStatementCache, extendDialect } from './dialect.ts';
import { createGroupCommit } from './group-commit.ts';
import { migrate } from './migrations.ts';
import type { Tables } from './schema.ts';

const memory = ':memory:';

/** How long SQLite itself blocks the thread for a lock; `retryWhileBusy` waits longer without blocking. */
const blockMs = 10;

/** `path` is what follows `sqlite:`. */
export async function openSqlite(path: string, timeoutMs: number): Promise<Database> {
  const file = fileOf(path);
  try {
    return await open(file, timeoutMs);
  } catch (error) {
    throw setupError(`the database file ${file}`, error, remedyFor(error));
  }
}

function remedyFor(error: unknown): string {
  if (isSqliteBusy(error))
    return 'Another process writes to it, or changes its tables to this version: start again when it has finished';
  return (
    diskFaults[sqliteCodeOf(error) ?? 0] ??
    'Let DATABASE_URL name a SQLite file in a directory that this user can write to, or sqlite::memory:'
  );
}

function fileOf(path: string): string {
  if (path === memory) return memory;
  if (path !== '' && !path.startsWith('//')) return resolve(path);
  throw new StorageSetupError(
    `sqlite:${path} names no file: write sqlite:./path, sqlite:/absolute/path or sqlite::memory:`,
  );
}

/** One level at a time: Node's own `recursive` would try for ever where /proc refuses. */
function makeDirectory(path: string): void {
  const isThere = () => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  if (isThere()) return;
  makeDirectory(dirname(path));
  try {
    mkdirSync(path);
  } catch (cause) {
    // Another process may have made it meanwhile.
    if (!isThere()) throw cause;
  }
}

async function open(file: string, timeoutMs: number): Promise<Database> {
  if (file !== memory) makeDirectory(dirname(file));
  const writer = new DatabaseSync(file, { timeout: blockMs });
  let reader = writer;
  try {
    const patiently: Patiently = (run) => retryWhileBusy(run, { timeoutMs });
    await configure(writer, patiently);
    // On a single connection, a read would see what another request's transaction has not committed yet.
    if (file !== memory) reader = new DatabaseSync(file, { readOnly: true, timeout: blockMs });
    // On the writer, the snapshot would be a transaction around what others write.
    const snapshot = reader === writer ? undefined : createReadSnapshot(reader);
    const findFileFault = file === memory ? () => undefined : createFileCheck(file);
    const disk = createDiskCheck();
    const kysely = openKysely({ writer, snapshot, patiently, findFileFault, disk });
    await migrateAlone(writer, kysely, patiently);
    return createDatabase({ writer, reader, snapshot, kysely, findFileFault, disk });
  } catch (error) {
    closeAll(reader, writer);
    throw error;
  }
}

/** Runs a statement again while another process writes. */
type Patiently = <T>(run: () => T | Promise<T>) => Promise<T>;

async function configure(writer: DatabaseSync, patiently: Patiently): Promise<void> {
  await patiently(() => writer.exec('pragma journal_mode = WAL'));
  // FULL: a confirmed booking survives a power cut. NORMAL would lose the last ones in WAL mode.
  writer.exec('pragma synchronous = FULL');
  writer.exec('pragma foreign_keys = ON');
  // SQLite's own lower() handles only ASCII, but a search for "zürich" must find "ZÜRICH".
  writer.function('lower', { deterministic: true }, (text) => (typeof text === 'string' ? text.toLowerCase() : text));
}

interface Connection {
  readonly writer: DatabaseSync;
  readonly snapshot: ReadSnapshot | undefined;
  readonly patiently: Patiently;
  readonly findFileFault: () => string | undefined;
  readonly disk: DiskCheck;
}

function openKysely({ writer, snapshot, patiently, findFileFault, disk }: Connection): Kysely<Tables> {
  const dialect = new SqliteDialect({ database: createStatementCache(writer) });
  return new Kysely<Tables>({
    dialect: extendDialect(dialect, {
      around: (run) => runStatement(() => patiently(run), { snapshot, disk }),
      // SQLite writes on into a file that was deleted, and a booking there would be lost.
      beforeTransaction() {
        const fault = findFileFault();
        if (fault !== undefined) throw new StorageUnavailable(new Error(fault));
      },
      // Immediate: a transaction that reads first could otherwise be refused the write lock when it comes to write.
      begin: 'begin immediate',
      needsRollback: () => writer.isOpen && writer.isTransaction,
    }),
  });
}

async function runStatement<T>(
  run: () => Promise<T>,
  { snapshot, disk }: Pick<Connection, 'snapshot' | 'disk'>,
): Promise<T> {
  try {
    return await run();
  } catch (error) {
    disk.failed(error);
    throw translateDriverError(error);
  } finally {
    snapshot?.end();
  }
}

/**
 * Kysely takes no lock for SQLite; the write lock of the file keeps apart two processes that start at once. When a
 * migration fails, closing the connection rolls all of it back.
 */
async function migrateAlone(writer: DatabaseSync, kysely: Kysely<Tables>, patiently: Patiently): Promise<void> {
  await patiently(() => writer.exec('begin immediate'));
  await migrate(kysely, 'sqlite');
  writer.exec('commit');
}

interface Parts {
  /** In memory, writer and reader are the same connection. */
  readonly writer: DatabaseSync;
  readonly reader: DatabaseSync;
  readonly snapshot: ReadSnapshot | undefined;
  readonly kysely: Kysely<Tables>;
  readonly findFileFault: () => string | undefined;
  readonly disk: DiskCheck;
}

function createDatabase({ writer, reader, snapshot, kysely, findFileFault, disk }: Parts): Database {
  return Object.freeze({
    dialect: 'sqlite',
    kysely,
    transact: createGroupCommit(kysely, createChangeCount(writer)),
    prepareFirst: <Row>(query: Compilable<Row>) => prepareFirst<Row>(reader, snapshot, query.compile().sql),
    async findFault() {
      return findFileFault() ?? (canRead(reader) ? disk.findFault(kysely) : 'The database cannot be read.');
    },
    async close() {
      closeAll(reader, writer);
    },
  } satisfies Database);
}

/** Counts what foreign keys change as well. A statement that failed has changed nothing. */
function createChangeCount(writer: DatabaseSync): () => number | undefined {
  const count = writer.prepare('select total_changes()');
  // An object would cost as much as the count, which each transaction asks for.
  count.setReturnArrays(true);
  return () => (writer.isOpen && writer.isTransaction ? Number(Object(count.get())[0]) : undefined);
}

function closeAll(reader: DatabaseSync, writer: DatabaseSync): void {
  if (reader.isOpen) reader.close();
  if (writer.isOpen) writer.close();
}

/** Returns what has become of the file since it was opened, if that keeps bookings from being stored. */
function createFileCheck(file: string): () => string | undefined {
  const opened = statSync(file);
  // What was committed last is in there alone. SQLite names it after the file that a link leads to.
  const log = `${realpathSync(file)}-wal`;
  let openedLog: FileState;
  return function findFileFault() {
    const found = statOf(file);
    if (found === 'unknown') return 'The database file cannot be reached: let this user into its directory.';
    if (found === undefined) return 'The database file was deleted: put it back, or restart the server for a new one.';
    if (!isSame(found, opened))
      return 'The database file was replaced: restart the server, so that it uses the new one.';
    // SQLite makes it with the first transaction.
    openedLog ??= statOf(log);
    if (openedLog !== undefined && !isSame(statOf(log), openedLog))
      return "The database's log, the file that ends in -wal, was deleted or replaced: stop the server, which saves it, and start it again.";
    return isWritable(file, found) ? undefined : 'The database file is read-only: make it writable.';
  };
}

/** Undefined if there is no such file; unknown if the system does not say, as where this user may not enter its directory. */
type FileState = Stats | 'unknown' | undefined;

function statOf(file: string): FileState {
  try {
    return statSync(file, { throwIfNoEntry: false });
  } catch {
    return 'unknown';
  }
}

function isSame(found: FileState, opened: FileState): boolean {
  return (
    typeof found === 'object' && typeof opened === 'object' && found.ino === opened.ino && found.dev === opened.dev
  );
}

/** Asks for the mode as well, since the superuser may write to any file. */
function isWritable(file: string, { mode }: Stats): boolean {
  try {
    accessSync(file, constants.W_OK);
    return (mode & 0o222) !== 0;
  } catch {
    return false;
  }
}

interface DiskCheck {
  /** What a statement failed with. */
  readonly failed: (error: unknown) => void;
  /** Why the disk took no write, until it takes one. */
  readonly findFault: (kysely: Kysely<Tables>) => Promise<string | undefined>;
}

/** SQLite's FULL and IOERR, which a quota is. */
const diskFaults: Readonly<Record<number, string>> = {
  13: 'The disk of the database is full: make room on it.',
  10: 'The database file cannot be written: look at its disk.',
};

/**
 * A disk with room may be full before a booking ends, so that only a write can say: the one that failed, and from then on
 * one that changes nothing, since a server that is not ready gets no bookings.
 */
function createDiskCheck(): DiskCheck {
  let fault: string | undefined;
  return {
    failed(error) {
      fault = diskFaults[sqliteCodeOf(error) ?? 0] ?? fault;
    },
    async findFault(kysely) {
      if (fault === undefined) return undefined;
      try {
        await kysely.executeQuery(CompiledQuery.raw('pragma user_version = 0'));
        fault = undefined;
      } catch {
        // It is full still, or busy.
      }
      return fault;
    },
  };
}

/** Reads the schema's version, which is in the file and not in memory. */
function canRead(reader: DatabaseSync): boolean {
  try {
    return reader.prepare('pragma schema_version').get() !== undefined;
  } catch {
    return false;
  }
}

function prepareFirst<Row>(reader: DatabaseSync, snapshot: ReadSnapshot | undefined, sql: string): PreparedRead<Row> {
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
  /** Before each read. From the second read of a turn on, all of them see what was committed by then. */
  readonly begin: () => void;
  /** After a write of this process, so that the next read sees it. */
  readonly end: () => void;
}

/**
 * Lets the reads of one turn of the event loop share a transaction. Outside of one, SQLite locks and unlocks the file
 * around each read: two system calls, and half of what the read costs.
 */
export function createReadSnapshot(reader: DatabaseSync): ReadSnapshot {
  const [begin, commit] = [reader.prepare('begin'), reader.prepare('commit')];
  let readsInTurn = 0;

  function end(): void {
    readsInTurn = 0;
    // `isTransaction` throws on a closed connection, and from setImmediate that would end the process.
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
  /** All pauses together. */
  readonly timeoutMs: number;
  /** In milliseconds. @default a timer */
  readonly wait?: (pauseMs: number) => Promise<unknown>;
}

/**
 * Runs a statement again while another connection has the file's write lock, without blocking the event loop, which
 * the owner of the lock may need to release it. A statement that found the file busy has done nothing.
 */
export async function retryWhileBusy<T>(
  run: () => T | Promise<T>,
  { timeoutMs, wait = sleep }: RetryOptions,
): Promise<T> {
  let waitedMs = 0;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run();
    } catch (error) {
      const pauseMs = Math.min(attempt, 50);
      waitedMs += pauseMs;
      if (waitedMs > timeoutMs || !isSqliteBusy(error)) throw error;
      await wait(pauseMs);
    }
  }
}
