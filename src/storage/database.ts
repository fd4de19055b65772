/** One open database: Kysely for everything, and a shorter way for the reads that every request makes. */
import type { Compilable, Kysely } from 'kysely';
import { StorageSetupError } from './errors.ts';
import type { Dialect } from './migrations.ts';
import { openPostgres } from './postgres.ts';
import type { Tables } from './schema.ts';

export interface DatabaseOptions {
  /** `sqlite:./path`, `sqlite::memory:` or `postgres://user:password@host:port/database`. */
  readonly url: string;
  /** Hears of connections that break while idle. */
  readonly logger?: {
    readonly warn: (fields: object, message?: string) => void;
  };
}

/** A prepared read of at most one row: at once from SQLite, later from PostgreSQL. Throws or rejects StorageUnavailable. */
export type First<Row> = (...parameters: readonly Parameter[]) => Row | undefined | Promise<Row | undefined>;

export type Parameter = string | number | null;

export interface Database {
  readonly dialect: Dialect;
  /** Every query through it that finds the database away or busy rejects with StorageUnavailable. */
  readonly kysely: Kysely<Tables>;
  /**
   * Prepares a hot read of what is committed, once, at start (in `sqlite::memory:`, with its one connection, it sees
   * an open transaction as well). What another process commits may show in the next turn of the event loop only. The
   * values in the query only mark the places: each call of the result hands in all of them anew, in the order in which
   * they stand in the SQL. Name its columns: a prepared `select *` fails in PostgreSQL as soon as a newer process adds
   * a column.
   */
  readonly first: <Row>(query: Compilable<Row>) => First<Row>;
  /** Whether a query gets an answer now; never rejects. */
  readonly isReady: () => Promise<boolean>;
  /** For when nothing uses it any more. A second call does nothing. */
  readonly close: () => Promise<void>;
}

/** Opens and migrates. Rejects with StorageSetupError, which names the place and the remedy. */
export async function openDatabase({ url, logger }: DatabaseOptions): Promise<Database> {
  if (url.startsWith('sqlite:')) {
    // Late, because an older Node has no node:sqlite, and must be able to load the rest to say that it is too old.
    const { openSqlite } = await import('./sqlite.ts');
    return openSqlite(url.slice('sqlite:'.length));
  }
  if (/^postgres(?:ql)?:\/\//.test(url)) return openPostgres(url, logger);
  throw new StorageSetupError(
    `cannot tell the kind of database from its URL (scheme ${JSON.stringify(schemeOf(url))}): ` +
      'write sqlite:./path, sqlite::memory: or postgres://user:password@host:port/database',
  );
}

/** Nothing behind the scheme is said: it may hold a password. */
function schemeOf(url: string): string {
  return /^[a-z][a-z0-9+.-]*:/i.exec(url)?.[0] ?? '';
}
