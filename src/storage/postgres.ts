/** PostgreSQL through a pool with time-outs; its driver, pg, is loaded when a database is opened. */
import { createHash } from 'node:crypto';
import { type Compilable, Kysely, PostgresDialect } from 'kysely';
import type { Pool, PoolConfig } from 'pg';
import {
  codeOf,
  type Database,
  type DatabaseOptions,
  isAboutTls,
  messageOf,
  type Parameter,
  type PreparedRead,
  StorageSetupError,
  setupError,
  translateDriverError,
} from './database.ts';
import { extendDialect } from './dialect.ts';
import { migrate } from './migrations.ts';
import type { Tables } from './schema.ts';

export interface PostgresOptions extends DatabaseOptions {
  readonly pool: number;
  readonly timeoutMs: number;
}

export async function openPostgres({ url, logger, pool: size, timeoutMs }: PostgresOptions): Promise<Database> {
  const name = nameOf(url);
  const { default: pg } = await import('pg');
  const pool = new pg.Pool({ ...limits(size, timeoutMs), connectionString: url });
  surviveBrokenConnections(pool, logger);
  const dialect = extendDialect(new PostgresDialect({ pool }), { around: translated, begin });
  const kysely = new Kysely<Tables>({ dialect });
  try {
    await requireUnicode(pool);
    await migrate(kysely, 'postgres', { schema: await findSchema(pool) });
  } catch (error) {
    await pool.end();
    throw setupError(`the PostgreSQL database ${name}`, error, remedyFor(error));
  }
  return createDatabase(pool, kysely);
}

function remedyFor(error: unknown): string {
  if (isAboutTls(error))
    return 'Let DATABASE_URL say how: ?sslmode=verify-full&sslrootcert=/path/to/ca.pem, no-verify for any certificate, disable for no TLS';
  // PgBouncer refuses each parameter of a connection that it does not know.
  if (messageOf(error).startsWith('unsupported startup parameter'))
    return 'Let the pooler ignore it, in pgbouncer.ini: ignore_startup_parameters = statement_timeout, idle_in_transaction_session_timeout';
  // The server is there, and refuses the user (28000) or the password (28P01); or it asks for one, and the URL has none.
  if (codeOf(error).startsWith('28') || messageOf(error).startsWith('SASL'))
    return 'Correct the user and the password in DATABASE_URL, or let pg_hba.conf of the server accept them';
  return 'Start the server, create the database (createdb), or let DATABASE_URL name one that this user can create tables in';
}

/**
 * Transactions take a lock and then read what the one before them wrote. Under `repeatable read` they would not see it,
 * and a server, a database or a user may have that as the default.
 */
const begin = 'begin isolation level read committed';

/** In LATIN1 and the like a client's text could not be compared with any row. SQL_ASCII keeps the bytes as they come. */
async function requireUnicode(pool: Pool): Promise<void> {
  const { rows } = await pool.query<{ server_encoding: string }>('show server_encoding');
  const encoding = rows[0]?.server_encoding ?? '';
  if (['UTF8', 'SQL_ASCII'].includes(encoding)) return;
  throw new StorageSetupError(
    `its encoding ${encoding} lacks letters that clients may send. ` +
      'Create it again with UTF8: createdb --encoding UTF8 --template template0 NAME',
  );
}

/** Where the tables are, or go: other schemas may have tables of another frontdesk, or of another program with Kysely. */
async function findSchema(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ schema: string | null }>(`
    select coalesce(
      (select nspname from pg_class join pg_namespace on pg_namespace.oid = relnamespace
        where pg_class.oid = to_regclass('kysely_migration')),
      current_schema()
    ) as schema`);
  const schema = rows[0]?.schema ?? undefined;
  if (schema !== undefined) return schema;
  throw new StorageSetupError(
    'its search_path names no schema that is there and open to this user. ' +
      'Create one (create schema), or let DATABASE_URL name another: ?options=-c%20search_path%3DNAME',
  );
}

/** No request waits for the database without end. Parameters in the URL win. */
function limits(size: number, timeoutMs: number): PoolConfig {
  return {
    max: size,
    connectionTimeoutMillis: timeoutMs,
    idleTimeoutMillis: 30_000,
    // A little shorter than our own, which is for when the network is gone.
    statement_timeout: Math.ceil(timeoutMs * 0.8),
    query_timeout: timeoutMs,
    idle_in_transaction_session_timeout: 2 * timeoutMs,
    keepAlive: true,
    application_name: 'frontdesk',
  };
}

/** A connection may break at any time; without a listener, its `error` event would end the process. */
function surviveBrokenConnections(pool: Pool, logger: DatabaseOptions['logger']): void {
  pool.on('connect', (client) => {
    client.on('error', (error) => logger?.warn({ err: error }, 'a connection to the database broke'));
    endWhenSilent(client as unknown as PoolMember);
  });
  // The pool emits the same errors once more.
  pool.on('error', () => {});
}

interface PoolMember {
  query: (...parameters: readonly unknown[]) => unknown;
  readonly end: () => Promise<void>;
}

/** A connection that gave no answer in time would hold up the rollback, and the next request, as long again. */
function endWhenSilent(client: PoolMember): void {
  const query = client.query.bind(client);
  client.query = (...parameters) => {
    const result = query(...parameters);
    // With a callback, it is the pool that asks, and that ends the connection itself.
    if (result instanceof Promise) result.catch(endIfSilent);
    return result;
  };

  async function endIfSilent(error: Error): Promise<void> {
    if (error.message === 'Query read timeout') await client.end();
  }
}

function createDatabase(pool: Pool, kysely: Kysely<Tables>): Database {
  return Object.freeze({
    dialect: 'postgres',
    kysely,
    transact: (work) => kysely.transaction().execute(work),
    prepareFirst: <Row>(query: Compilable<Row>) => prepareFirst<Row>(pool, query.compile().sql),
    findFault: () => findFault(pool),
    async close() {
      if (!pool.ending) await pool.end();
    },
  } satisfies Database);
}

async function findFault(pool: Pool): Promise<string | undefined> {
  try {
    const { rows } = await pool.query<{ setting: string }>(
      `select current_setting('transaction_read_only') as setting`,
    );
    return rows[0]?.setting === 'on' ? 'The database is read-only, as a standby is.' : undefined;
  } catch {
    return 'The database gives no answer.';
  }
}

/**
 * pg prepares a named statement once on each connection and later sends only its name. A pooler that gives each
 * transaction another connection of the server may lead to one where the name is unknown, or was prepared by another
 * process: it means the same there, since it is made of the text. After that the text is sent each time.
 */
function prepareFirst<Row>(pool: Pool, text: string): PreparedRead<Row> {
  const name = `first_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
  let isNamed = true;
  async function find(values: Parameter[]): Promise<readonly unknown[]> {
    try {
      return (await pool.query({ text, values, ...(isNamed && { name }) })).rows;
    } catch (error) {
      if (!misplacedCodes.has(codeOf(error))) throw error;
      isNamed = false;
      return (await pool.query({ text, values })).rows;
    }
  }
  return async function readFirst(...parameters: readonly Parameter[]) {
    const [row] = await translated(() => find([...parameters]));
    return row as Row | undefined;
  };
}

/** A prepared statement of this name is there already, or is not there. */
const misplacedCodes: ReadonlySet<string> = new Set(['42P05', '26000']);

async function translated<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw translateDriverError(error);
  }
}

/** The host and the database, never the password. */
function nameOf(url: string): string {
  if (!URL.canParse(url)) {
    throw new StorageSetupError(
      'the postgres:// URL cannot be read: percent-encode the special characters in its user and password',
    );
  }
  const { host, pathname } = new URL(url);
  return `${host}${pathname}`;
}
