/** A dialect of Kysely's with something of ours around each statement, for errors that speak our language. */
import { CompiledQuery, type DatabaseConnection, type Dialect, type Driver } from 'kysely';

export interface Guards {
  /** Runs a statement, or the wait for a connection, and may run it again. */
  readonly around: <T>(ask: () => Promise<T>) => Promise<T>;
  /** The statement that begins a transaction. @default the dialect's */
  readonly begin?: string;
}

export function guardDialect(dialect: Dialect, guards: Guards): Dialect {
  return {
    createDriver: () => guardDriver(dialect.createDriver(), guards),
    createQueryCompiler: () => dialect.createQueryCompiler(),
    createAdapter: () => dialect.createAdapter(),
    createIntrospector: (kysely) => dialect.createIntrospector(kysely),
  };
}

function guardDriver(driver: Driver, { around, begin }: Guards): Driver {
  const guarded = new WeakSet<DatabaseConnection>();
  return {
    init: () => driver.init(),
    async acquireConnection() {
      const connection = await around(() => driver.acquireConnection());
      if (!guarded.has(connection)) guardConnection(connection, around);
      guarded.add(connection);
      return connection;
    },
    async beginTransaction(connection, settings) {
      if (begin === undefined) return driver.beginTransaction(connection, settings);
      await connection.executeQuery(CompiledQuery.raw(begin));
    },
    commitTransaction: (connection) => driver.commitTransaction(connection),
    rollbackTransaction: (connection) => driver.rollbackTransaction(connection),
    releaseConnection: (connection) => driver.releaseConnection(connection),
    destroy: () => driver.destroy(),
  };
}

/** In place, because the drivers know their connections by identity. */
function guardConnection(connection: DatabaseConnection, around: Guards['around']): void {
  const executeQuery = connection.executeQuery.bind(connection);
  // Async, because SQLite's connection throws where it should reject.
  connection.executeQuery = (query) => around(async () => executeQuery(query));
}
