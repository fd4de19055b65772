/** Opens PostgreSQL databases with a connection pool, time-outs and turns. Loads the driver, pg, when first needed. */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Compilable, CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import type { Pool, PoolConfig } from 'pg';
import { codeOf, createOncePerMinute } from '#foundation';
import { type PostgresUrl, parsePostgresUrl } from '../postgres-url.ts';
import {
  type Database,
  type DatabaseOptions,
  driverMessage,
  isTlsError,
  type Parameter,
  type PreparedRead,
  StorageSetupError,
  StorageUnavailable,
  setupError,
  translateDriverError,
} from './database.ts';
import { extendDialect } from './dialect.ts';
import { migrate } from './migrations.ts';
import { requireSupported, serverOptions } from './postgres-servers.ts';
import type { Tables } from './schema.ts';

export interface PostgresOptions extends DatabaseOptions {
  readonly pool: number;
  readonly timeoutMs: number;
}

export async function openPostgres({ url, logger, pool: size, timeoutMs }: PostgresOptions): Promise<Database> {
  const parsed = requireUrl(url);
  const { default: pg } = await import('pg');
  const pool = new pg.Pool({
    ...poolConfig(size, timeoutMs),
    ...(await serverOptions(parsed, timeoutMs)),
  });
  handleConnectionErrors(pool, logger);
  replaceFailedConnections(pool);
  const dialect = extendDialect(new PostgresDialect({ pool }), {
    around: translateErrors,
    begin: (connection) => connection.executeQuery(begin),
  });
  const kysely = new Kysely<Tables>({ dialect });
  try {
    await requireUnicode(pool);
    await migrate(kysely, 'postgres', { schema: await findSchema(pool) });
  } catch (error) {
    await pool.end();
    throw setupError(`the PostgreSQL database ${parsed.name}`, error, remedyFor(causeOf(error)));
  }
  return createDatabase(pool, kysely, createTurns(timeoutMs));
}

function remedyFor(error: unknown): string {
  if (isTlsError(error))
    return 'Configure TLS in DATABASE_URL: ?sslmode=verify-full&sslrootcert=/path/to/ca.pem, no-verify to accept any certificate, or disable to use no TLS';
  // PgBouncer rejects startup parameters that it does not know.
  if (driverMessage(error).startsWith('unsupported startup parameter'))
    return 'Let the pooler ignore it, in pgbouncer.ini: ignore_startup_parameters = statement_timeout, idle_in_transaction_session_timeout';
  if (/ statement timeout$|^Query read timeout$/.test(driverMessage(error)))
    return 'End the sessions that lock its tables. If it needs more time to change the tables, raise DATABASE_TIMEOUT_MS for this start';
  if (codeOf(error).startsWith('57') || brokenConnection.test(driverMessage(error)))
    return 'The server ended the session or its statement. Start again, or read in the log of the server why it did so';
  if (codeOf(error) === '25006') return 'Name the primary in DATABASE_URL, among its hosts, or promote a standby';
  return (
    accessRemedy(error) ??
    'Start the server, create the database (createdb), or set DATABASE_URL to a database in which this user can create tables'
  );
}

/** What pg and Kysely say about a session that was ended before their last statement, such as that of a migration. */
const brokenConnection = /^(?:Client has encountered a connection error|Postgres connection has been discarded)/;

/** What to do when the server lets nobody in, or not this user, at the start or later. */
function accessRemedy(error: unknown): string | undefined {
  // Class 53 has the limits on connections, of the server and of the user.
  if (codeOf(error) === '53300')
    return 'End other sessions, raise max_connections of the server, or lower DATABASE_POOL of the processes that share it';
  // The server rejects the user (28000) or the password (28P01), or it requires a password and the URL has none.
  if (codeOf(error).startsWith('28') || driverMessage(error).startsWith('SASL'))
    return 'Correct the user and the password in DATABASE_URL, or let pg_hba.conf of the server accept them';
  return undefined;
}

/**
 * Sets the isolation level explicitly. Our transactions take a lock and then read what the previous transaction wrote.
 * With `repeatable read`, which may be the default of a server, database or user, they would not see it.
 */
const begin = CompiledQuery.raw('begin isolation level read committed');

/** Rejects encodings such as LATIN1, which cannot represent all text that clients send. SQL_ASCII accepts any bytes. */
async function requireUnicode(pool: Pool): Promise<void> {
  const { rows } = await pool.query<{ server_encoding: string }>('show server_encoding');
  const encoding = rows[0]?.server_encoding ?? '';
  if (['UTF8', 'SQL_ASCII'].includes(encoding)) return;
  throw new StorageSetupError(
    `its encoding ${encoding} cannot represent all characters that clients may send. ` +
      'Create it again with UTF8: createdb --encoding UTF8 --template template0 NAME',
  );
}

/**
 * Returns the schema in which the tables are or will be created. Other schemas may contain the tables of another
 * frontdesk, or of another program that uses Kysely.
 */
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
    'its search_path contains no existing schema that this user can access. ' +
      'Create one (create schema), or set another in DATABASE_URL: ?options=-c%20search_path%3DNAME',
  );
}

/** Ensures that no request waits for the database forever. Parameters in the URL take precedence. */
function poolConfig(size: number, timeoutMs: number): PoolConfig {
  return {
    max: size,
    connectionTimeoutMillis: timeoutMs,
    idleTimeoutMillis: 30_000,
    // Shorter than `query_timeout`, so that the client's time-out is only needed when the network fails.
    statement_timeout: Math.ceil(timeoutMs * 0.8),
    query_timeout: timeoutMs,
    // PostgreSQL's maximum is 32 bits.
    idle_in_transaction_session_timeout: Math.min(2 * timeoutMs, 2 ** 31 - 1),
    keepAlive: true,
    application_name: 'frontdesk',
  };
}

/**
 * A connection may fail at any time. Without a listener, its `error` event would end the process. A server that stops
 * closes all connections at once, and one line is enough for them.
 */
function handleConnectionErrors(pool: Pool, logger: DatabaseOptions['logger']): void {
  const mayLog = createOncePerMinute();
  pool.on('connect', (client) => {
    client.on('error', (error) => {
      if (mayLog()) logger?.warn({ err: error }, 'a connection to the database failed');
    });
  });
  // The pool emits the same errors again.
  pool.on('error', () => {});
}

interface PoolMember {
  query: (...parameters: readonly unknown[]) => unknown;
  readonly end: () => Promise<void>;
}

/**
 * Replaces connections that must not be used again. After a query time-out it closes the connection at once, because
 * the rollback and the next request would time out on it too. A connection that leads to a server which no longer is the
 * right one closes after the rollback, when its user returns it to the pool.
 */
function replaceFailedConnections(pool: Pool): void {
  const misled = new WeakSet<object>();
  pool.on('connect', (client) => {
    const member = client as unknown as PoolMember;
    const query = member.query.bind(member);
    member.query = (...parameters) => {
      const result = query(...parameters);
      // Queries with a callback come from the pool, which closes the connection itself.
      if (result instanceof Promise) result.catch((error: Error) => judge(member, error));
      return result;
    };
  });
  // The pool drops a connection that is ending.
  pool.on('release', (_, client) => {
    if (misled.has(client)) void client.end();
  });

  function judge(member: PoolMember, error: Error): void {
    if (error.message === 'Query read timeout') void member.end();
    else if (wrongServerCode.test(codeOf(error))) misled.add(member);
  }
}

/**
 * The address of the database may lead to another server after a failover or a restore, but only for new connections.
 * These errors say that this one leads to a standby (25006), to a database that is gone or lacks its tables (3D000,
 * 42P01), or to a server that is stopping or that a pooler has lost (classes 57P and 08).
 */
const wrongServerCode = /^(?:25006|3D000|42P01|57P[0-9A-Z]{2}|08[0-9A-Z]{3})$/;

/** Runs `run` after all earlier calls with the name. Rejects with StorageUnavailable if they take too long. */
type InTurn = <T>(name: string, run: () => Promise<T>) => Promise<T>;

/** Lets calls with the same name run one after the other, and bounds how long each of them waits. */
export function createTurns(timeoutMs: number): InTurn {
  /** Resolve when all calls with the name so far have ended. */
  const ends = new Map<string, Promise<unknown>>();
  return async function inTurn(name, run) {
    const earlier = ends.get(name);
    const result = earlier === undefined ? run() : endWithin(earlier, timeoutMs).then(run);
    // The next call also waits for the earlier ones, because this one may give up before them.
    const end = Promise.allSettled([earlier, result]);
    ends.set(name, end);
    try {
      return await result;
    } finally {
      void end.then(() => ends.get(name) === end && ends.delete(name));
    }
  };
}

async function endWithin(earlier: Promise<unknown>, timeoutMs: number): Promise<void> {
  const timer = new AbortController();
  const isLate = sleep(timeoutMs, true, { signal: timer.signal }).catch(() => false);
  const outcome = await Promise.race([earlier, isLate]);
  timer.abort();
  if (outcome === true) throw new StorageUnavailable(new Error('earlier transactions on the same rows take too long'));
}

function createDatabase(pool: Pool, kysely: Kysely<Tables>, inTurn: InTurn): Database {
  /** Runs each prepared read with its placeholders, by its text. */
  const reads = new Map<string, Read>();
  /** Shared by concurrent callers: anyone may ask for readiness, and must not take the connections of requests. */
  let check: Promise<string | undefined> | undefined;
  return Object.freeze({
    dialect: 'postgres',
    kysely,
    transact(work, locks = []) {
      const begin = () => kysely.transaction().execute(work);
      return locks.reduceRight((run, name) => () => inTurn(name, run), begin)();
    },
    prepareFirst<Row>(query: Compilable<Row>) {
      const { sql: text, parameters } = query.compile();
      const readFirst = prepareFirst<Row>(pool, text);
      reads.set(text, async () => readFirst(...(parameters as readonly Parameter[])));
      return readFirst;
    },
    findFault() {
      check ??= findFault(pool, [...reads.values()]).finally(() => {
        check = undefined;
      });
      return check;
    },
    async close() {
      if (!pool.ending) await pool.end();
    },
  } satisfies Database);
}

type Read = () => Promise<unknown>;

/** Runs the prepared reads as well: the user may have lost a right, or a table may be missing. */
async function findFault(pool: Pool, reads: readonly Read[]): Promise<string | undefined> {
  try {
    if (await isReadOnly(pool)) return readOnly;
    // One after the other, to leave the other connections to requests.
    for (const read of reads) await read();
    return undefined;
  } catch (error) {
    return describeFault(error);
  }
}

const readOnly = 'The database is read-only. It may be a standby.';

/** Also closes the connection if it leads to a standby, so that the next check may reach the primary. */
async function isReadOnly(pool: Pool): Promise<boolean> {
  const client = await pool.connect();
  let mustClose = true;
  try {
    const { rows } = await client.query<{ setting: string }>(
      `select current_setting('transaction_read_only') as setting`,
    );
    mustClose = rows[0]?.setting === 'on';
    return mustClose;
  } finally {
    client.release(mustClose);
  }
}

/** Returns the driver's error. */
function causeOf(error: unknown): unknown {
  return error instanceof StorageUnavailable ? error.cause : error;
}

/** The codes have five characters. Those of class 57 mean that the server is stopping, or cancelled a slow query. */
function describeFault(error: unknown): string {
  const cause = causeOf(error);
  const code = codeOf(cause);
  if (code === '25006') return readOnly;
  if (!/^(?!57)[0-9A-Z]{5}$/.test(code)) return 'The database does not respond.';
  const remedy = accessRemedy(cause);
  return `The database rejects queries, with error ${code} of PostgreSQL.${remedy === undefined ? '' : ` ${remedy}.`}`;
}

/**
 * pg prepares a named statement once per connection and then sends only its name. Behind a pooler in transaction mode,
 * the next query may reach a server connection on which the name is unknown, or on which another process has already
 * prepared it. After the first such error, the text is sent each time. A name is derived from the text, so it has the
 * same meaning in all processes.
 */
function prepareFirst<Row>(pool: Pool, text: string): PreparedRead<Row> {
  const name = `first_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
  let isNamed = true;
  async function find(values: Parameter[]): Promise<readonly unknown[]> {
    try {
      return (await pool.query({ text, values, ...(isNamed && { name }) })).rows;
    } catch (error) {
      if (!poolerCodes.has(codeOf(error))) throw error;
      isNamed = false;
      return (await pool.query({ text, values })).rows;
    }
  }
  return async function readFirst(...parameters: readonly Parameter[]) {
    const [row] = await translateErrors(() => find([...parameters]));
    return row as Row | undefined;
  };
}

/** The prepared statement already exists (42P05), or does not exist (26000). */
const poolerCodes: ReadonlySet<string> = new Set(['42P05', '26000']);

async function translateErrors<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw translateDriverError(error);
  }
}

/** Throws a StorageSetupError whose message does not repeat the URL, because that may contain a password. */
function requireUrl(text: string): PostgresUrl {
  const url = parsePostgresUrl(text);
  if (url === undefined) {
    throw new StorageSetupError(
      'the postgres:// URL is invalid: percent-encode the special characters in its user and password, ' +
        'and write several servers as postgres://user:password@a:5432,b:5432/name',
    );
  }
  requireSupported(url);
  return url;
}
