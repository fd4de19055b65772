/** Opens the database of a URL: SQLite or PostgreSQL. */
import { travelSettings } from '../settings.ts';
import { type Database, type DatabaseOptions, StorageSetupError } from './database.ts';

/** Opens and migrates a database. Rejects with a StorageSetupError that identifies the database and the remedy. */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { databasePool, databaseTimeoutMs } = travelSettings;
  const { url, pool = databasePool.default, timeoutMs = databaseTimeoutMs.default, logger } = options;
  if (url.startsWith('sqlite:')) {
    // Loaded on demand: Node versions without node:sqlite must still load the rest, to report that they are too old.
    const { openSqlite } = await import('./sqlite.ts');
    return openSqlite(url.slice('sqlite:'.length), timeoutMs);
  }
  if (/^postgres(?:ql)?:\/\//.test(url)) {
    const { openPostgres } = await import('./postgres.ts');
    return openPostgres({ url, pool, timeoutMs, logger });
  }
  throw new StorageSetupError(
    `unsupported scheme ${JSON.stringify(schemeOf(url))} in DATABASE_URL: ` +
      'write sqlite:./path, sqlite::memory: or postgres://user:password@host:port/database',
  );
}

/** Returns only the scheme, because the rest may contain a password. */
function schemeOf(url: string): string {
  return /^[a-z][a-z0-9+.-]*:/i.exec(url)?.[0] ?? '';
}
