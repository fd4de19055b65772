/** What we add to Kysely's dialects: node:sqlite in the shape that Kysely expects, prepared statements kept, errors in our terms. */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import {
  CompiledQuery,
  type DatabaseConnection,
  type Driver,
  type Dialect as KyselyDialect,
  type SqliteDatabase,
  type SqliteStatement,
} from 'kysely';
import { createRecent } from './recent.ts';

export interface DialectOptions {
  /** Runs a statement, or the wait for a connection; it may run it again and throw another error. */
  readonly around: <T>(run: () => Promise<T>) => Promise<T>;
  /** The statement that begins a transaction. */
  readonly begin: string;
  /** Throws when no transaction may begin now. */
  readonly beforeTransaction?: () => void;
  /** Whether a failed transaction is still open and needs a rollback. @default always */
  readonly needsRollback?: () => boolean;
}

/** The adapter is that of the dialect itself: Kysely asks it whether only one user at a time may have the connection. */
export function extendDialect(dialect: KyselyDialect, options: DialectOptions): KyselyDialect {
  return {
    createDriver: () => extendDriver(dialect.createDriver(), options),
    createQueryCompiler: () => dialect.createQueryCompiler(),
    createAdapter: () => dialect.createAdapter(),
    createIntrospector: (kysely) => dialect.createIntrospector(kysely),
  };
}

function extendDriver(driver: Driver, options: DialectOptions): Driver {
  const { around, begin, beforeTransaction, needsRollback = () => true } = options;
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
      beforeTransaction?.();
      await connection.executeQuery(CompiledQuery.raw(begin));
    },
    commitTransaction: (connection) => driver.commitTransaction(connection),
    async rollbackTransaction(connection) {
      // SQLite has rolled back by itself when the disk is full. Another rollback would fail, and hide the first error.
      if (needsRollback()) await driver.rollbackTransaction(connection);
    },
    releaseConnection: (connection) => driver.releaseConnection(connection),
    destroy: () => driver.destroy(),
  };
}

/** In place, because the drivers know their connections by identity. */
function extendConnection(connection: DatabaseConnection, around: DialectOptions['around']): void {
  const executeQuery = connection.executeQuery.bind(connection);
  connection.executeQuery = (query) => around(() => executeQuery(query));
}

/** Clients choose filters and orders, and so the SQL: beyond this many texts, the least recently used is dropped. */
const statementsMax = 256;

/** A node:sqlite connection as Kysely expects it, with each SQL text prepared once: name the columns, as a newer process may add one. */
export function createStatementCache(connection: DatabaseSync): SqliteDatabase {
  const recall = createRecent<SqliteStatement>(statementsMax);
  return {
    close: () => connection.close(),
    prepare: (sql) => recall(sql, () => prepare(connection, sql)),
  };
}

/** `iterate` keeps its statement busy until it ends, so each caller gets a new one. */
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

/** Lets a statement return arrays, and makes objects of them: the driver itself looks up the name of each column for each row. */
export function createRowReader(statement: StatementSync): (values: unknown) => Record<string, unknown> {
  const names = statement.columns().map(({ name }) => name);
  statement.setReturnArrays(true);
  return function toRow(values) {
    const row: Record<string, unknown> = {};
    for (let index = 0; index < names.length; index += 1) row[names[index] as string] = (values as unknown[])[index];
    return row;
  };
}
