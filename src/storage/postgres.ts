/** PostgreSQL through a pool with time-outs; its driver, pg, is loaded when a database is opened. */
import { type Compilable, Kysely, PostgresDialect } from 'kysely';
import type { Pool, PoolConfig } from 'pg';
import {
  type Database,
  type DatabaseOptions,
  messageOf,
  type Parameter,
  type PreparedRead,
  StorageSetupError,
  translateDriverError,
} from './database.ts';
import { extendDialect } from './dialect.ts';
import { migrate } from './migrations.ts';
import type { Tables } from './schema.ts';

/** Far below a request's own time-out of 30 s, so that no request hangs on the database. Parameters in the URL win. */
const limits: PoolConfig = {
  max: 10,
  connectionTimeoutMillis: 3_000,
  idleTimeoutMillis: 30_000,
  statement_timeout: 5_000,
  // A little longer than the server's own, for when the network is gone.
  query_timeout: 6_000,
  idle_in_transaction_session_timeout: 10_000,
  keepAlive: true,
  application_name: 'frontdesk',
};

export async function openPostgres(url: string, logger: DatabaseOptions['logger']): Promise<Database> {
  const name = nameOf(url);
  const { default: pg } = await import('pg');
  const pool = new pg.Pool({ ...limits, connectionString: url });
  surviveBrokenConnections(pool, logger);
  const dialect = extendDialect(new PostgresDialect({ pool }), { around: translated });
  const kysely = new Kysely<Tables>({ dialect });
  try {
    await migrate(kysely, 'postgres');
  } catch (error) {
    await pool.end();
    throw setupError(name, error);
  }
  return createDatabase(pool, kysely);
}

/** A connection may break at any time; without a listener, its `error` event would end the process. */
function surviveBrokenConnections(pool: Pool, logger: DatabaseOptions['logger']): void {
  pool.on('connect', (client) => {
    client.on('error', (error) => logger?.warn({ err: error }, 'a connection to the database broke'));
  });
  // The pool emits the same errors once more.
  pool.on('error', () => {});
}

function createDatabase(pool: Pool, kysely: Kysely<Tables>): Database {
  let prepared = 0;
  return Object.freeze({
    dialect: 'postgres',
    kysely,
    prepareFirst<Row>(query: Compilable<Row>) {
      prepared += 1;
      return prepareFirst<Row>(pool, query.compile().sql, `first_${prepared}`);
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

/** pg prepares a named statement once on each connection and later sends only its name. */
function prepareFirst<Row>(pool: Pool, text: string, name: string): PreparedRead<Row> {
  return async function readFirst(...parameters: readonly Parameter[]) {
    const { rows } = await translated(() => pool.query({ name, text, values: [...parameters] }));
    return rows[0] as Row | undefined;
  };
}

async function translated<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw translateDriverError(error);
  }
}

function setupError(name: string, error: unknown): StorageSetupError {
  return new StorageSetupError(
    `cannot use the PostgreSQL database ${name}: ${messageOf(error)}. ` +
      'Start it, or let DATABASE_URL name one that this user can create tables in',
    { cause: error },
  );
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
