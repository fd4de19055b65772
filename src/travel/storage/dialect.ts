/** Extends Kysely's dialects with hooks around statements and transactions, and with cached node:sqlite statements. */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import type { DatabaseConnection, Driver, Dialect as KyselyDialect, SqliteDatabase, SqliteStatement } from 'kysely';
import { createBoundedMap } from '#foundation';

export interface DialectOptions {
  /** Wraps every statement and every wait for a connection. It may retry, and may replace the error. */
  readonly around: <T>(run: () => Promise<T>) => Promise<T>;
  /** Begins a transaction. Throws if none may begin now. */
  readonly begin: (connection: DatabaseConnection) => unknown;
  /** Whether a failed transaction is still open and needs a rollback. @default always */
  readonly needsRollback?: () => boolean;
}

/** Keeps the dialect's adapter, from which Kysely learns whether there is only a single connection. */
export function extendDialect(dialect: KyselyDialect, options: DialectOptions): KyselyDialect {
  return {
    createDriver: () => extendDriver(dialect.createDriver(), options),
    createQueryCompiler: () => dialect.createQueryCompiler(),
    createAdapter: () => dialect.createAdapter(),
    createIntrospector: (kysely) => dialect.createIntrospector(kysely),
  };
}

function extendDriver(driver: Driver, options: DialectOptions): Driver {
  const { around, begin, needsRollback = () => true } = options;
  const extended = new WeakSet<DatabaseConnection>();
  return {
    init: () => driver.init(),
    async acquireConnection() {
      const connection = await around(() => driver.acquireConnection());
      if (!extended.has(connection)) extendConnection(connection, around);
      extended.add(connection);
      return connection;
    },
    async beginTransaction(connection) {
      await begin(connection);
    },
    commitTransaction: (connection) => driver.commitTransaction(connection),
    async rollbackTransaction(connection) {
      // SQLite rolls back by itself when the disk is full. A second rollback would fail and hide the original error.
      if (needsRollback()) await driver.rollbackTransaction(connection);
    },
    releaseConnection: (connection) => driver.releaseConnection(connection),
    destroy: () => driver.destroy(),
  };
}

/** Modifies the connection in place, because drivers identify connections by object identity. */
function extendConnection(connection: DatabaseConnection, around: DialectOptions['around']): void {
  const executeQuery = connection.executeQuery.bind(connection);
  connection.executeQuery = (query) => around(() => executeQuery(query));
}

/** Bounds the cache, because clients choose filters and orders, and thereby the SQL. */
const statementsMax = 256;

/**
 * Adapts a node:sqlite connection to Kysely and prepares each SQL text once. List columns by name in queries, because a
 * newer process may add a column.
 */
export function createStatementCache(connection: DatabaseSync): SqliteDatabase {
  const statements = createBoundedMap<string, SqliteStatement>(statementsMax);
  return {
    close: () => connection.close(),
    prepare: (sql) => statements.getOrCreate(sql, () => prepare(connection, sql)),
  };
}

/** `iterate` keeps its statement busy until it ends, so each call prepares a new one. */
function prepare(connection: DatabaseSync, sql: string): SqliteStatement {
  const statement = connection.prepare(sql);
  const toRow = createRowReader(statement);
  return {
    reader: statement.columns().length > 0,
    all: (parameters) => statement.all(...(parameters as SQLInputValue[])).map(toRow),
    run: (parameters) => statement.run(...(parameters as SQLInputValue[])),
    iterate: (parameters) =>
      connection.prepare(sql).iterate(...(parameters as SQLInputValue[])) as IterableIterator<unknown>,
  };
}

/**
 * Makes the statement return arrays, and returns a function that converts them to rows. The driver would look up the name
 * of each column for each row.
 */
export function createRowReader(statement: StatementSync): (values: unknown) => Record<string, unknown> {
  const names = statement.columns().map(({ name }) => name);
  statement.setReturnArrays(true);
  return function toRow(values) {
    const row: Record<string, unknown> = {};
    for (let index = 0; index < names.length; index += 1) row[names[index] as string] = (values as unknown[])[index];
    return row;
  };
}
