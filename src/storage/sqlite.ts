/** Rows in a SQLite file or in memory, through node:sqlite. */
import { mkdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type Compilable, Kysely, SqliteDialect } from 'kysely';
import type { Database, First } from './database.ts';
import { messageOf, StorageSetupError, translateDriverError } from './errors.ts';
import { guardDialect } from './guarded-dialect.ts';
import { migrate } from './migrations.ts';
import { patiently } from './patience.ts';
import { rememberStatements } from './remembered-statements.ts';
import type { Tables } from './schema.ts';
import { createSharedView, type SharedView } from './shared-view.ts';

const memory = ':memory:';

/** How long SQLite itself blocks the thread for a lock; longer waits leave the event loop free (see patience.ts). */
const blockMs = 10;

/** `path` is what follows `sqlite:`. */
export async function openSqlite(path: string): Promise<Database> {
  const place = placeOf(path);
  try {
    return await open(place);
  } catch (error) {
    throw new StorageSetupError(
      `cannot use the database file ${place}: ${messageOf(error)}. ` +
        'Let DATABASE_URL name a SQLite file in a directory that this user can write to, or sqlite::memory:',
      { cause: error },
    );
  }
}

async function open(place: string): Promise<Database> {
  if (place !== memory) mkdirSync(dirname(place), { recursive: true });
  const handle = new DatabaseSync(place, { timeout: blockMs });
  let reader = handle;
  try {
    await prepareHandle(handle);
    reader = openReader(handle, place);
    // With a single connection the one view would be a transaction around what others write.
    const view = reader === handle ? undefined : createSharedView(reader);
    const dialect = new SqliteDialect({ database: rememberStatements(handle) });
    // Immediate: a transaction that reads before it writes could otherwise lose its chance to write in between.
    const kysely = new Kysely<Tables>({
      dialect: guardDialect(dialect, { around: (ask) => guarded(ask, view), begin: 'begin immediate' }),
    });
    await migrateAlone(handle, kysely);
    return createDatabase({ handle, reader, view, kysely });
  } catch (error) {
    closeAll(reader, handle);
    throw error;
  }
}

async function prepareHandle(handle: DatabaseSync): Promise<void> {
  await patiently(() => handle.exec('pragma journal_mode = WAL'));
  // FULL: a confirmed booking survives a power cut. NORMAL would lose the last ones in WAL mode.
  handle.exec('pragma synchronous = FULL');
  handle.exec('pragma foreign_keys = ON');
  // SQLite's own lower() knows ASCII alone, and a search for "zürich" is to find "ZÜRICH".
  handle.function('lower', { deterministic: true }, (text) => (typeof text === 'string' ? text.toLowerCase() : text));
}

/**
 * Kysely takes no lock for SQLite; the write lock of the file keeps two processes that start at once apart. When a
 * migration fails, closing the handle rolls all of it back.
 */
async function migrateAlone(handle: DatabaseSync, kysely: Kysely<Tables>): Promise<void> {
  await patiently(() => handle.exec('begin immediate'));
  await migrate(kysely, 'sqlite');
  handle.exec('commit');
}

/** On the one handle, a read could see what a transaction of another request has not committed yet. */
function openReader(handle: DatabaseSync, place: string): DatabaseSync {
  return place === memory ? handle : new DatabaseSync(place, { readOnly: true, timeout: blockMs });
}

interface Parts {
  readonly handle: DatabaseSync;
  readonly reader: DatabaseSync;
  readonly view: SharedView | undefined;
  readonly kysely: Kysely<Tables>;
}

function createDatabase({ handle, reader, view, kysely }: Parts): Database {
  return Object.freeze({
    dialect: 'sqlite',
    kysely,
    first: <Row>(query: Compilable<Row>) => createFirst<Row>(reader, view, query.compile().sql),
    isReady: async () => canRead(reader),
    async close() {
      closeAll(reader, handle);
    },
  } satisfies Database);
}

/** In memory they are the same connection. */
function closeAll(reader: DatabaseSync, handle: DatabaseSync): void {
  if (reader.isOpen) reader.close();
  if (handle.isOpen) handle.close();
}

/** Asks for something that stands in the file. */
function canRead(reader: DatabaseSync): boolean {
  try {
    return reader.prepare('pragma schema_version').get() !== undefined;
  } catch {
    return false;
  }
}

function createFirst<Row>(reader: DatabaseSync, view: SharedView | undefined, sql: string): First<Row> {
  // The driver would look the name of each column up at each read.
  const statement = reader.prepare(sql);
  const names = statement.columns().map(({ name }) => name);
  statement.setReturnArrays(true);
  return function first(...parameters) {
    try {
      view?.enter();
      const values = statement.get(...parameters) as unknown as readonly unknown[] | undefined;
      return values && (rowOf(names, values) as Row);
    } catch (error) {
      throw translateDriverError(error);
    }
  };
}

function rowOf(names: readonly string[], values: readonly unknown[]): Record<string, unknown> {
  const row: Record<string, unknown> = {};
  for (let index = 0; index < names.length; index += 1) row[names[index] as string] = values[index];
  return row;
}

async function guarded<T>(ask: () => Promise<T>, view: SharedView | undefined): Promise<T> {
  try {
    return await patiently(ask);
  } catch (error) {
    throw translateDriverError(error);
  } finally {
    view?.leave();
  }
}

function placeOf(path: string): string {
  if (path === memory) return memory;
  if (path !== '' && !path.startsWith('//')) return resolve(path);
  throw new StorageSetupError(
    `sqlite:${path} names no file: write sqlite:./path, sqlite:/absolute/path or sqlite::memory:`,
  );
}
