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
  return codeOf(error).startsWith('SQLITE_BUSY');
}

/** For a person: what the driver said. */
export function messageOf(error: unknown): string {
  if (error instanceof StorageUnavailable) return messageOf(error.cause);
  // Node reports a refused connection to a name with several addresses as an AggregateError without a message.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join(', ');
  return error instanceof Error ? error.message : String(error);
}

/**
 * SQLite: result codes of a file that is locked, gone, broken or full. PostgreSQL: classes 08 (connection), 40 (a
 * transaction undone for the sake of another), 53 (out of resources) and 57 (operator intervention: shutting down,
 * cancelled by a time-out), 55P03 (lock not to be had), and the codes of a socket.
 */
const unavailableCode =
  /^(?:SQLITE_(?:BUSY|LOCKED|CANTOPEN|IOERR|FULL|PROTOCOL|READONLY)|(?:08|40|53|57)[0-9A-Z]{3}$|55P03$|E(?:CONN|PIPE|TIMEDOUT|HOST|NET|NOTFOUND|AI_))/;

/** What pg and better-sqlite3 throw without a code. */
const unavailableMessage =
  /^(?:timeout exceeded when trying to connect|Query read timeout|Connection terminated|Client has encountered a connection error|Cannot use a pool after calling end|Client was closed|The database connection is not open)/;

function isUnavailable(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(isUnavailable);
  return unavailableCode.test(codeOf(error)) || (error instanceof Error && unavailableMessage.test(error.message));
}

function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return '';
  return String(error.code);
}
