/** Demo data: rows by table, for a database that is still empty. */
import { type Kysely, sql, type Transaction } from 'kysely';
import type { Database } from './database.ts';
import { createDemoTables, type DemoRow, type DemoTable } from './demo-tables.ts';
import { StorageSetupError } from './errors.ts';
import type { Tables } from './schema.ts';

/** As a configuration has them, unchecked. */
export type DemoRows = Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>>;

export interface LoadDemoOptions {
  /** The time of rows that do not say their own, in milliseconds since 1970. */
  readonly nowMs: number;
}

/**
 * Puts the rows into an empty database, all or none; a database with a row in any table is left alone, and the answer
 * is false. Rejects with StorageSetupError, which names table, row and column of each bad value.
 */
export async function loadDemo(database: Database, demo: DemoRows, { nowMs }: LoadDemoOptions): Promise<boolean> {
  const tables = createDemoTables(new Date(nowMs).toISOString());
  const rows = checkDemo(tables, demo);
  return database.kysely.transaction().execute(async (transaction) => {
    await lock(database, transaction);
    if (!(await isEmpty(transaction, [...tables.keys()]))) return false;
    for (const [table, values] of rows) await insert(transaction, table, values);
    if (database.dialect === 'postgres') await countMessagesOn(transaction);
    return true;
  });
}

type CheckedRows = ReadonlyMap<keyof Tables, readonly DemoRow[]>;

function checkDemo(tables: ReadonlyMap<keyof Tables, DemoTable>, demo: DemoRows): CheckedRows {
  const faults: string[] = [];
  for (const name of Object.keys(demo)) {
    if (!tables.has(name as keyof Tables)) faults.push(`${name} is no table; known: ${[...tables.keys()].join(', ')}`);
  }
  const checked = new Map<keyof Tables, readonly DemoRow[]>();
  for (const [name, table] of tables) checked.set(name, checkTable(name, table, demo[name] ?? [], checked, faults));
  if (faults.length > 0) throw new StorageSetupError(`the demo data cannot be loaded:\n  ${faults.join('\n  ')}`);
  return checked;
}

function checkTable(
  name: keyof Tables,
  { columns, reference }: DemoTable,
  rows: DemoRows[string],
  checked: CheckedRows,
  faults: string[],
): readonly DemoRow[] {
  const ids = new Set<unknown>();
  const known = reference && new Set(checked.get(reference.table)?.map(({ id }) => id));
  const good: DemoRow[] = [];
  for (const [index, row] of rows.entries()) {
    const fault = (column: string, detail: string) => faults.push(`${name}, row ${index + 1}, ${column}: ${detail}`);
    const { success, data, error } = columns.safeParse(row);
    for (const issue of error?.issues ?? []) fault(columnOf(issue), issue.message);
    if (!success) continue;
    if (ids.has(data['id'])) fault('id', `${data['id']} is the id of an earlier row`);
    if (reference && !known?.has(data[reference.column])) {
      fault(reference.column, `${data[reference.column]} is no id in ${reference.table}`);
    }
    ids.add(data['id']);
    good.push(data);
  }
  return good;
}

function columnOf(issue: { readonly code?: string; readonly path: readonly PropertyKey[] }): string {
  const keys = 'keys' in issue && Array.isArray(issue.keys) ? issue.keys : issue.path;
  return keys.length === 0 ? 'the whole row' : keys.map(String).join(', ');
}

/** Two processes that start at once must not both find the database empty. In SQLite the transaction itself is the lock. */
async function lock(database: Database, transaction: Transaction<Tables>): Promise<void> {
  if (database.dialect === 'postgres') await sql`select pg_advisory_xact_lock(7236825601)`.execute(transaction);
}

async function isEmpty(kysely: Kysely<Tables>, tables: readonly (keyof Tables)[]): Promise<boolean> {
  for (const table of tables) {
    const { rows } = await sql`select 1 from ${sql.table(table)} limit 1`.execute(kysely);
    if (rows.length > 0) return false;
  }
  return true;
}

async function insert(kysely: Kysely<Tables>, table: keyof Tables, rows: readonly DemoRow[]): Promise<void> {
  for (const row of rows) {
    const columns = sql.join(Object.keys(row).map((column) => sql.ref(column)));
    await sql`insert into ${sql.table(table)} (${columns}) values (${sql.join(Object.values(row))})`.execute(kysely);
  }
}

/** PostgreSQL numbers new messages by a sequence that rows with numbers of their own do not move. */
async function countMessagesOn(kysely: Kysely<Tables>): Promise<void> {
  await sql`select setval(pg_get_serial_sequence('messages', 'id'), max(id)) from messages`.execute(kysely);
}
