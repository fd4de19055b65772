/** Rows in PostgreSQL, through a pool of pg's, which is loaded only when somebody asks for it. */
import { type Compilable, Kysely, PostgresDialect } from 'kysely';
import type { Pool, PoolConfig } from 'pg';
import type { Database, DatabaseOptions, First, Parameter } from './database.ts';
import { messageOf, StorageSetupError, translateDriverError } from './errors.ts';
import { guardDialect } from './guarded-dialect.ts';
import { migrate } from './migrations.ts';
import type { Tables } from './schema.ts';

/** No request may hang on a database: its own time-out is 30 s. A parameter in the URL wins over these. */
const limits: PoolConfig = {
  max: 10,
  connectionTimeoutMillis: 3_000,
  idleTimeoutMillis: 30_000,
  statement_timeout: 5_000,
  // A little later than the server's own, for the case that the network is gone.
  query_timeout: 6_000,
  idle_in_transaction_session_timeout: 10_000,
  keepAlive: true,
  application_name: 'frontdesk',
};

export async function openPostgres(url: string, logger: DatabaseOptions['logger']): Promise<Database> {
  const place = placeOf(url);
  const { default: pg } = await import('pg');
  const pool = new pg.Pool({ ...limits, connectionString: url });
  surviveBrokenConnections(pool, logger);
  const dialect = guardDialect(new PostgresDialect({ pool }), { around: translated });
  const kysely = new Kysely<Tables>({ dialect });
  try {
    await migrate(kysely, 'postgres');
  } catch (error) {
    await pool.end();
    throw setupError(place, error);
  }
  return createDatabase(pool, kysely);
}

/** A connection may break at any time; unheard, its `error` event would bring the server down. */
function surviveBrokenConnections(pool: Pool, logger: DatabaseOptions['logger']): void {
  pool.on('connect', (client) => {
    client.on('error', (error) => logger?.warn({ err: error }, 'a connection to the database broke'));
  });
  // The pool tells of the same errors once more.
  pool.on('error', () => {});
}

function createDatabase(pool: Pool, kysely: Kysely<Tables>): Database {
  let prepared = 0;
  return Object.freeze({
    dialect: 'postgres',
    kysely,
    first<Row>(query: Compilable<Row>) {
      prepared += 1;
      return createFirst<Row>(pool, query.compile().sql, `first_${prepared}`);
    },
    isReady: () =>
      pool.query('select 1').then(
        () => true,
        () => false,
      ),
    async close() {
      if (!pool.ending) await pool.end();
    },
  } satisfies Database);
}

/** pg prepares a named statement once on each connection and later sends its name alone. */
function createFirst<Row>(pool: Pool, text: string, name: string): First<Row> {
  return async function first(...parameters: readonly Parameter[]) {
    const { rows } = await translated(() => pool.query({ name, text, values: [...parameters] }));
    return rows[0] as Row | undefined;
  };
}

async function translated<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw translateDriverError(error);
  }
}

function setupError(place: string, error: unknown): StorageSetupError {
  return new StorageSetupError(
    `cannot use the PostgreSQL database ${place}: ${messageOf(error)}. ` +
      'Start it, or let DATABASE_URL name one that this user can create tables in',
    { cause: error },
  );
}

/** Host and database, never the password. */
function placeOf(url: string): string {
  if (!URL.canParse(url)) {
    throw new StorageSetupError(
      'the postgres:// URL cannot be read: percent-encode the special characters in its user and password',
    );
  }
  const { host, pathname } = new URL(url);
  return `${host}${pathname}`;
}
