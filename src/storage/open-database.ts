/** Opens the database that a URL names, and loads its driver only then. */
import {
  type Database,
  type DatabaseOptions,
  databasePoolSize,
  databaseTimeoutMs,
  StorageSetupError,
} from './database.ts';

/** Opens and migrates. Rejects with StorageSetupError, which names the database and the remedy. */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { url, timeoutMs = databaseTimeoutMs } = options;
  if (url.startsWith('sqlite:')) {
    // Late, because an older Node has no node:sqlite, and must load everything else to say that it is too old.
    const { openSqlite } = await import('./sqlite.ts');
    return openSqlite(url.slice('sqlite:'.length), timeoutMs);
  }
  if (/^postgres(?:ql)?:\/\//.test(url)) {
    const { openPostgres } = await import('./postgres.ts');
    return openPostgres({ pool: databasePoolSize, ...options, timeoutMs });
  }
  throw new StorageSetupError(
    `unknown kind of database in DATABASE_URL (scheme ${JSON.stringify(schemeOf(url))}): ` +
      'write sqlite:./path, sqlite::memory: or postgres://user:password@host:port/database',
  );
}

/** The scheme alone, since the rest may hold a password. */
function schemeOf(url: string): string {
  return /^[a-z][a-z0-9+.-]*:/i.exec(url)?.[0] ?? '';
}
