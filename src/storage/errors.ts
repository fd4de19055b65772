/** What can go wrong between us and a database, and the one error each kind becomes. */

/** The database cannot be reached, is too busy or is closed: later it may work. Clients read 503. */
export class StorageUnavailable extends Error {
  override readonly name = 'StorageUnavailable';

  constructor(cause: unknown) {
    super('the database is unavailable', { cause });
  }
}

/** The database cannot be used as it is set up: the message names the place and the remedy, for people at a terminal. */
export class StorageSetupError extends Error {
  override readonly name = 'StorageSetupError';
}

/** What a driver threw, as StorageUnavailable if waiting can help; anything else is a bug and stays as it is. */
export function translateDriverError(error: unknown): unknown {
  return isUnavailable(error) ? new StorageUnavailable(error) : error;
}

/** The write lock of a SQLite file is with someone else (SQLITE_BUSY and its extended codes). */
export function isSqliteBusy(error: unknown): boolean {
  return sqliteCodeOf(error) === 5;
}

/** For a person: what the driver said. */
export function messageOf(error: unknown): string {
  if (error instanceof StorageUnavailable) return messageOf(error.cause);
  // Node reports a refused connection to a name with several addresses as an AggregateError without a message.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join(', ');
  return error instanceof Error ? error.message : String(error);
}

/**
 * PostgreSQL: classes 08 (connection), 40 (a
 * transaction undone for the sake of another), 53 (out of resources) and 57 (operator intervention: shutting down,
 * cancelled by a time-out), 55P03 (lock not to be had), and the codes of a socket.
 */
const unavailableCode = /^(?:(?:08|40|53|57)[0-9A-Z]{3}$|55P03$|E(?:CONN|PIPE|TIMEDOUT|HOST|NET|NOTFOUND|AI_))/;

/** SQLite's result codes (sqlite.org/rescode.html): BUSY, LOCKED, READONLY, IOERR, FULL, CANTOPEN, PROTOCOL. */
const unavailableSqliteCodes: ReadonlySet<number | undefined> = new Set([5, 6, 8, 10, 13, 14, 15]);

/** What pg throws without a code, and node:sqlite after it was closed. */
const unavailableMessage =
  /^(?:timeout exceeded when trying to connect|Query read timeout|Connection terminated|Client has encountered a connection error|Cannot use a pool after calling end|Client was closed|database is not open|statement has been finalized)/;

function isUnavailable(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(isUnavailable);
  if (unavailableSqliteCodes.has(sqliteCodeOf(error))) return true;
  return unavailableCode.test(codeOf(error)) || (error instanceof Error && unavailableMessage.test(error.message));
}

/** The primary code: an extended one has its details in the higher bits. Undefined for errors that are not SQLite's. */
function sqliteCodeOf(error: unknown): number | undefined {
  if (codeOf(error) !== 'ERR_SQLITE_ERROR') return undefined;
  return Number((error as { readonly errcode?: unknown }).errcode) & 0xff;
}

function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return '';
  return String(error.code);
}
