/** The port: an open database, and the two errors that it throws. */
import type { Compilable, Kysely, Transaction } from 'kysely';
import type { Tables } from './schema.ts';

export type Dialect = 'sqlite' | 'postgres';

export interface Database {
  readonly dialect: Dialect;
  /** Every query through it rejects with StorageUnavailable while the database is away or busy. */
  readonly kysely: Kysely<Tables>;
  readonly transact: Transact;
  /**
   * Prepares a hot read, once, at start. It sees what is committed (in `sqlite::memory:`, which has one connection, also
   * an open transaction); what another process commits may appear only in the next turn of the event loop. The values
   * in the query are placeholders: each call passes all of its values, in the order of the SQL. Name the columns: a
   * prepared `select *` fails in PostgreSQL as soon as a newer process adds one.
   */
  readonly prepareFirst: <Row>(query: Compilable<Row>) => PreparedRead<Row>;
  /** Why the database cannot serve now, as a sentence without its address; undefined while it can. Never rejects. */
  readonly findFault: () => Promise<string | undefined>;
  /** A second call does nothing. */
  readonly close: () => Promise<void>;
}

/**
 * Runs `work` in a transaction, and settles when it has ended: what was written is on disk then. When `work` throws, its
 * writes are undone. In SQLite, works that arrive together run one after the other and share the commit. `work` must use
 * the transaction alone, and must change nothing else: in SQLite it may run again when another work of its group throws.
 */
export type Transact = <T>(work: (transaction: Transaction<Tables>) => Promise<T>) => Promise<T>;

/** Reads at most one row: SQLite returns it, PostgreSQL a promise of it. Throws or rejects StorageUnavailable. */
export type PreparedRead<Row> = (...parameters: readonly Parameter[]) => Row | undefined | Promise<Row | undefined>;

export type Parameter = string | number | null;

export interface DatabaseOptions {
  /** `sqlite:./path`, `sqlite::memory:` or `postgres://user:password@host:port/database`. */
  readonly url: string;
  /** Connections to PostgreSQL. @default 10 */
  readonly pool?: number;
  /** How long a request waits for a connection, for a statement, or for another writer of a SQLite file. @default 5000 */
  readonly timeoutMs?: number;
  /** Logs connections that break while idle. */
  readonly logger?: {
    readonly warn: (fields: object, message?: string) => void;
  };
}

/** The database cannot be reached, is too busy or is closed; a later attempt may succeed. Clients read 503. */
export class StorageUnavailable extends Error {
  override readonly name = 'StorageUnavailable';

  constructor(cause: unknown) {
    super('the database is unavailable', { cause });
  }
}

/** The database cannot be used as it is set up. The message is for an operator: it names the database and the remedy. */
export class StorageSetupError extends Error {
  override readonly name = 'StorageSetupError';
}

/** `place`: what cannot be used, without its password. `remedy`: what an operator can do, unless the error says it itself. */
export function setupError(place: string, error: unknown, remedy: string): StorageSetupError {
  const reason = error instanceof StorageSetupError ? error.message : `${messageOf(error)}. ${remedy}`;
  return new StorageSetupError(`cannot use ${place}: ${reason}`, { cause: error });
}

/** Turns a driver's error into StorageUnavailable where waiting can help; any other error is a bug and stays as it is. */
export function translateDriverError(error: unknown): unknown {
  return isUnavailable(error) ? new StorageUnavailable(error) : error;
}

/** Another connection has the write lock of the SQLite file (SQLITE_BUSY and its extended codes). */
export function isSqliteBusy(error: unknown): boolean {
  return sqliteCodeOf(error) === 5;
}

/** The driver's message, for an operator. */
export function messageOf(error: unknown): string {
  if (error instanceof StorageUnavailable) return messageOf(error.cause);
  // Node reports a refused connection to a name with several addresses as an AggregateError without a message.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join(', ');
  return error instanceof Error ? error.message : String(error);
}

export const databasePoolSize = 10;
export const databaseTimeoutMs = 5000;

/**
 * PostgreSQL's classes 08 (connection), 28 (the password was changed, or the user may not log in), 40 (transaction rolled
 * back because of another one), 53 (out of resources) and 57 (operator intervention: shutting down, cancelled by a
 * time-out), 25006 (a standby, which is read-only), 3D000 (no such database, as while it is restored), 55P03 (lock not
 * available), and the codes of sockets.
 */
const unavailableCode =
  /^(?:(?:08|28|40|53|57)[0-9A-Z]{3}$|25006$|3D000$|55P03$|E(?:CONN|PIPE|TIMEDOUT|HOST|NET|NOTFOUND|AI_))/;

/** SQLite's result codes (sqlite.org/rescode.html): BUSY, LOCKED, READONLY, IOERR, FULL, CANTOPEN, PROTOCOL. */
const unavailableSqliteCodes: ReadonlySet<number | undefined> = new Set([5, 6, 8, 10, 13, 14, 15]);

/** Errors without a code: pg's own, and those of node:sqlite after `close()`. */
const unavailableMessage =
  /^(?:timeout exceeded when trying to connect|Query read timeout|Connection terminated|Client has encountered a connection error|Cannot use a pool after calling end|Client was closed|database is not open|statement has been finalized)/;

function isUnavailable(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(isUnavailable);
  if (unavailableSqliteCodes.has(sqliteCodeOf(error))) return true;
  // A certificate may have expired, or be another one since the start.
  if (unavailableCode.test(codeOf(error)) || isAboutTls(error)) return true;
  return error instanceof Error && unavailableMessage.test(error.message);
}

/** The primary code; the higher bits of an extended code hold details. Undefined if the error is not SQLite's. */
export function sqliteCodeOf(error: unknown): number | undefined {
  if (codeOf(error) !== 'ERR_SQLITE_ERROR') return undefined;
  return Number((error as { readonly errcode?: unknown }).errcode) & 0xff;
}

/** The certificate (OpenSSL's codes and Node's), a server without TLS, or one whose pg_hba.conf has no entry without TLS. */
export function isAboutTls(error: unknown): boolean {
  return (
    /CERT|^(?:UNABLE_TO_VERIFY|ERR_TLS|ERR_SSL|EPROTO)/.test(codeOf(error)) ||
    /^The server does not support SSL|, (?:no encryption|SSL off)$/.test(messageOf(error))
  );
}

/** Empty if the error has none. */
export function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return '';
  return String(error.code);
}
