/** A better-sqlite3 handle whose `prepare` remembers statements by their SQL, so that Kysely prepares each once. */
import type { SqliteDatabase, SqliteStatement } from 'kysely';

/** The lists' filters and sorts make many texts of SQL, and clients choose them: the least recently used is forgotten. */
const statementsMax = 256;

export function rememberStatements(handle: SqliteDatabase, max: number = statementsMax): SqliteDatabase {
  const remembered = new Map<string, SqliteStatement>();
  return {
    close: () => handle.close(),
    prepare(sql) {
      const known = remembered.get(sql);
      const statement = known ?? prepare(handle, sql);
      if (known !== undefined) remembered.delete(sql);
      else if (remembered.size >= max) remembered.delete(firstKey(remembered));
      remembered.set(sql, statement);
      return statement;
    },
  };
}

/** `iterate` holds its statement until it has ended, so every caller gets one of its own. */
function prepare(handle: SqliteDatabase, sql: string): SqliteStatement {
  const statement = handle.prepare(sql);
  return {
    reader: statement.reader,
    all: (parameters) => statement.all(parameters),
    run: (parameters) => statement.run(parameters),
    iterate: (parameters) => handle.prepare(sql).iterate(parameters),
  };
}

function firstKey(map: ReadonlyMap<string, unknown>): string {
  for (const key of map.keys()) return key;
  return '';
}
