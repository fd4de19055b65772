/** The interface of an open database, its errors, and the classification of driver errors. */
import type { Compilable, Kysely, Transaction } from 'kysely';
import { codeOf, messageOf } from '#foundation';
import type { Tables } from './schema.ts';

export type Dialect = 'sqlite' | 'postgres';

export interface Database {
  readonly dialect: Dialect;
  /**
   * Every query through it rejects with StorageUnavailable while the database is unreachable or busy. Use `transact` for
   * transactions: one of `kysely` does not wait while another process writes to a SQLite file.
   */
  readonly kysely: Kysely<Tables>;
  readonly transact: Transact;
  /**
   * Prepares a frequent read once, at startup. The values in `query` are placeholders: each call passes all of its
   * values in the order of the SQL. List the columns by name, because a prepared `select *` fails in PostgreSQL as soon
   * as a newer process adds a column.
   *
   * A read sees committed data. In `sqlite::memory:`, which has a single connection, it also sees the writes of an open
   * transaction. Commits of other processes may become visible only in the next turn of the event loop.
   */
  readonly prepareFirst: <Row>(query: Compilable<Row>) => PreparedRead<Row>;
  /** Checks the database. Returns a sentence about what is wrong, without the address, or undefined. Never rejects. */
  readonly findFault: () => Promise<string | undefined>;
  /** Calling it again has no effect. */
  readonly close: () => Promise<void>;
}

/**
 * Runs `work` in a transaction and settles after the commit, when its writes are on disk. If `work` throws, its writes
 * are undone. In SQLite, concurrent calls run one after the other and share a commit. `work` must only use the
 * transaction and have no other side effects, because in SQLite it may run again when another call of its group throws.
 *
 * Name in `locks` what `work` locks first. In PostgreSQL, calls that share a name run one after the other, so that they
 * do not wait for each other with a connection each. SQLite does not need it.
 */
export type Transact = <T>(
  work: (transaction: Transaction<Tables>) => Promise<T>,
  locks?: readonly string[],
) => Promise<T>;

/** Reads at most one row: synchronously in SQLite, as a promise in PostgreSQL. Fails with StorageUnavailable. */
export type PreparedRead<Row> = (...parameters: readonly Parameter[]) => Row | undefined | Promise<Row | undefined>;

export type Parameter = string | number | null;

export interface DatabaseOptions {
  /** `sqlite:./path`, `sqlite::memory:` or `postgres://user:password@host:port/database`. */
  readonly url: string;
  /** The maximum number of connections to PostgreSQL. @default 10 */
  readonly pool?: number;
  /** How long to wait for a connection, a statement, or another writer of a SQLite file. @default 5000 */
  readonly timeoutMs?: number;
  /** Logs connections that break while idle. */
  readonly logger?: { readonly warn: (fields: object, message?: string) => void } | undefined;
}

/** The database cannot be reached, is too busy or is closed. A later attempt may succeed. Clients get 503. */
export class StorageUnavailable extends Error {
  override readonly name = 'StorageUnavailable';

  constructor(cause: unknown) {
    super('the database is unavailable', { cause });
  }
}

/** The database cannot be used with its current setup. The message identifies the database and the remedy. */
export class StorageSetupError extends Error {
  override readonly name = 'StorageSetupError';
}

/** Wraps an error. `database` describes the database without its password. A StorageSetupError has its own remedy. */
export function setupError(database: string, error: unknown, remedy: string): StorageSetupError {
  const reason = error instanceof StorageSetupError ? error.message : `${driverMessage(error)}. ${remedy}`;
  return new StorageSetupError(`cannot use ${database}: ${reason}`, { cause: error });
}

/** Converts driver errors that may be temporary to StorageUnavailable. Returns others, which are bugs, unchanged. */
export function translateDriverError(error: unknown): unknown {
  return isUnavailable(error) ? new StorageUnavailable(error) : error;
}

/** True if another connection has the write lock of the SQLite file (SQLITE_BUSY and its extended codes). */
export function isSqliteBusy(error: unknown): boolean {
  return sqliteCodeOf(error) === 5;
}

/** Returns the driver's message, for the operator. */
export function driverMessage(error: unknown): string {
  return messageOf(error instanceof StorageUnavailable ? error.cause : error);
}

/**
 * PostgreSQL's classes 08 (connection), 28 (the password was changed, or the user may not log in), 40 (transaction
 * rolled back because of another one), 53 (out of resources) and 57 (operator intervention: shutting down, or cancelled
 * by a time-out), and its codes 25006 (a standby, which is read-only), 3D000 and 42P01 (no such database or table, for
 * example during a restore), 42501 (the user lost a right) and 55P03 (lock not available). Also the codes of system
 * errors: the socket of a local server, for example, does not exist (ENOENT) while that server restarts.
 */
const unavailableCode = /^(?:(?:08|28|40|53|57)[0-9A-Z]{3}$|25006$|3D000$|42P01$|42501$|55P03$|E(?:AI_)?[A-Z]+$)/;

/** SQLite's result codes (sqlite.org/rescode.html): BUSY, LOCKED, READONLY, IOERR, FULL, CANTOPEN, PROTOCOL. */
const unavailableSqliteCodes: ReadonlySet<number | undefined> = new Set([5, 6, 8, 10, 13, 14, 15]);

/** Errors without a code: those of pg itself, and those of node:sqlite after `close()`. */
const unavailableMessage =
  /^(?:timeout exceeded when trying to connect|Query read timeout|Connection terminated|Client has encountered a connection error|Cannot use a pool after calling end|Client was closed|database is not open|statement has been finalized)/;

function isUnavailable(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(isUnavailable);
  if (unavailableSqliteCodes.has(sqliteCodeOf(error))) return true;
  // TLS worked at startup, but the certificate may have expired or been replaced since.
  if (unavailableCode.test(codeOf(error)) || isTlsError(error)) return true;
  return error instanceof Error && unavailableMessage.test(error.message);
}

/** Returns SQLite's primary result code, without the details of an extended code. Undefined for other errors. */
export function sqliteCodeOf(error: unknown): number | undefined {
  if (codeOf(error) !== 'ERR_SQLITE_ERROR') return undefined;
  return Number((error as { readonly errcode?: unknown }).errcode) & 0xff;
}

/**
 * True if TLS was the problem: an invalid certificate (by the codes of OpenSSL and Node), a server without TLS, or a
 * server that requires TLS in pg_hba.conf.
 */
export function isTlsError(error: unknown): boolean {
  return (
    /CERT|^(?:UNABLE_TO_VERIFY|ERR_TLS|ERR_SSL|EPROTO)/.test(codeOf(error)) ||
    /^The server does not support SSL|, (?:no encryption|SSL off)$/.test(driverMessage(error))
  );
}
