/** A node:sqlite connection in the shape that Kysely expects, with each statement prepared once. */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import type { SqliteDatabase, SqliteStatement } from 'kysely';

/** Clients choose filters and sorts, and so the texts of SQL: beyond this many, the least recently used is dropped. */
const statementsMax = 256;

export function rememberStatements(handle: DatabaseSync, max: number = statementsMax): SqliteDatabase {
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
function prepare(handle: DatabaseSync, sql: string): SqliteStatement {
  const statement = handle.prepare(sql);
  return {
    reader: statement.columns().length > 0,
    all: (parameters) => statement.all(...(parameters as SQLInputValue[])),
    run: (parameters) => statement.run(...(parameters as SQLInputValue[])),
    iterate: (parameters) =>
      handle.prepare(sql).iterate(...(parameters as SQLInputValue[])) as IterableIterator<unknown>,
  };
}

function firstKey(map: ReadonlyMap<string, unknown>): string {
  for (const key of map.keys()) return key;
  return '';
}
