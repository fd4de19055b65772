/** Validates demo rows and inserts them into an empty database. */
import { type Kysely, sql, type Transaction } from 'kysely';
import { z } from 'zod';
import { describeIssue } from '#foundation';
import { timeSchema } from '#query';
import { completeBookings, type DemoRow, type DemoTables } from './demo-bookings.ts';
import { type Database, StorageSetupError } from './storage/database.ts';
import type { Tables } from './storage/schema.ts';

/** Rows by table, not yet validated. */
export type DemoRows = Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>>;

export interface LoadDemoOptions {
  /** The default creation time of rows, in milliseconds since 1970. Bookings begin a number of days after it. */
  readonly nowMs: number;
}

/**
 * Inserts all rows if the database is empty; otherwise returns false. Rejects with a StorageSetupError that lists the
 * table, row and column of each invalid value, and then inserts nothing.
 */
export async function loadDemo(database: Database, demo: DemoRows, { nowMs }: LoadDemoOptions): Promise<boolean> {
  const tables = createDemoTables(new Date(nowMs).toISOString());
  const rows = completeBookings(checkDemo(tables, demo), nowMs);
  return database.transact(async (transaction) => {
    await lock(database, transaction);
    if (!(await isEmpty(transaction, [...tables.keys()]))) return false;
    for (const [table, values] of rows) await insert(transaction, table, values);
    if (database.dialect === 'postgres') await advanceMessageIds(transaction);
    return true;
  });
}

function checkDemo(tables: ReadonlyMap<keyof Tables, DemoTable>, demo: DemoRows): DemoTables {
  const faults: string[] = [];
  for (const name of Object.keys(demo)) {
    if (!tables.has(name as keyof Tables))
      faults.push(`unknown table ${name}; known: ${[...tables.keys()].join(', ')}`);
  }
  const checked = new Map<keyof Tables, readonly DemoRow[]>();
  for (const [name, table] of tables) checked.set(name, checkTable(name, table, demo[name] ?? [], checked, faults));
  if (faults.length > 0) throw new StorageSetupError(`the demo data cannot be loaded:\n  ${faults.join('\n  ')}`);
  return checked;
}

function checkTable(
  name: keyof Tables,
  { columns, reference, unique = [['id']] }: DemoTable,
  rows: DemoRows[string],
  checked: DemoTables,
  faults: string[],
): readonly DemoRow[] {
  const taken = new Set<string>();
  const known = reference && new Set(checked.get(reference.table)?.map(({ id }) => id));
  const valid: DemoRow[] = [];
  for (const [index, row] of rows.entries()) {
    const fault = (column: string, detail: string) => faults.push(`${name}, row ${index + 1}, ${column}: ${detail}`);
    const { success, data, error } = columns.safeParse(row, { error: describeIssue });
    for (const issue of error?.issues ?? []) fault(columnOf(issue), issue.message);
    if (!success) continue;
    for (const column of repeatedIn(data, unique, taken))
      fault(column, `${data[column]} is already the ${column} of an earlier row`);
    if (reference && !known?.has(data[reference.column])) {
      fault(reference.column, `there is no ${data[reference.column]} in ${reference.table}`);
    }
    valid.push(data);
  }
  return valid;
}

/** Returns the last column of each list whose values an earlier row has. Adds the values of this row to `taken`. */
function repeatedIn(row: DemoRow, unique: readonly (readonly string[])[], taken: Set<string>): readonly string[] {
  return unique.flatMap((columns) => {
    const key = JSON.stringify(columns.map((column) => [column, row[column]]));
    if (taken.has(key)) return columns.slice(-1);
    taken.add(key);
    return [];
  });
}

function columnOf(issue: { readonly code?: string; readonly path: readonly PropertyKey[] }): string {
  const keys = 'keys' in issue && Array.isArray(issue.keys) ? issue.keys : issue.path;
  return keys.length === 0 ? 'the whole row' : keys.map(String).join(', ');
}

/** Prevents two starting processes from both finding the database empty. In SQLite, the transaction already does. */
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

/** Advances PostgreSQL's sequence of message IDs, which is not updated by inserts with explicit IDs. */
async function advanceMessageIds(kysely: Kysely<Tables>): Promise<void> {
  await sql`select setval(pg_get_serial_sequence('messages', 'id'), max(id)) from messages`.execute(kysely);
}

interface DemoTable {
  readonly columns: z.ZodType<DemoRow>;
  /** The column that refers to a row of another table by its ID. */
  readonly reference?: { readonly column: string; readonly table: keyof Tables };
  /** Lists of columns that are unique together. @default the ID alone */
  readonly unique?: readonly (readonly string[])[];
}

/** Returns the tables in the order of insertion: rows come after those that they refer to. `createdAt` is RFC 3339. */
function createDemoTables(createdAt: string): ReadonlyMap<keyof Tables, DemoTable> {
  const text = z.string().min(1);
  const id = z.uuid().toLowerCase();
  const createdAtSchema = timeSchema.default(createdAt);
  const offer = {
    units: z.int32().min(0).default(1),
    price: z.int32().min(0).max(10_000_000).default(5_000),
    currency: currency.default('EUR'),
  };
  const roomType = { id, hotel_id: id, name: text, guests: z.int32().min(1).default(2), ...offer };
  const car = { id, model: text, class: text, city: text, pickup_place: text.optional(), ...offer };
  const message = { id: z.int32().min(1), account_id: text, subject: text, body: text, created_at: createdAtSchema };
  return new Map<keyof Tables, DemoTable>([
    ['hotels', { columns: z.strictObject({ id, name: text, city: text }) }],
    [
      'room_types',
      {
        columns: z.strictObject(roomType),
        reference: { column: 'hotel_id', table: 'hotels' },
        unique: [['id'], ['hotel_id', 'name']],
      },
    ],
    [
      'cars',
      { columns: z.strictObject(car).transform((row) => ({ ...row, pickup_place: row.pickup_place ?? row.city })) },
    ],
    ...createBookingTables({ id, text, createdAt: createdAtSchema }),
    ['accounts', { columns: z.strictObject({ id: text, name: text }) }],
    ['messages', { columns: z.strictObject(message), reference: { column: 'account_id', table: 'accounts' } }],
  ]);
}

interface CommonColumns {
  readonly id: z.ZodType<string>;
  readonly text: z.ZodString;
  readonly createdAt: z.ZodType<string>;
}

function createBookingTables({ id, text, createdAt }: CommonColumns) {
  const booking = {
    id,
    user: text,
    status: z.enum(['pending', 'confirmed', 'cancelled']),
    version: z.int32().min(1).default(1),
    created_at: createdAt,
    price: z.int32().min(0).optional(),
    currency: currency.optional(),
    starts_in: z.int32().min(0).max(365).default(0),
  };
  const length = z.int32().min(1).max(90).default(1);
  const stay = { room_type: text.default('standard'), guests: z.int32().min(1).default(1), nights: length };
  return [
    [
      'hotel_bookings',
      {
        columns: z.strictObject({ ...booking, hotel_id: id, ...stay }),
        reference: { column: 'hotel_id', table: 'hotels' },
      },
    ],
    [
      'car_bookings',
      {
        columns: z.strictObject({ ...booking, car_id: id, days: length }),
        reference: { column: 'car_id', table: 'cars' },
      },
    ],
  ] as const;
}

const currency = z.string().regex(/^[A-Z]{3}$/, 'must be three capital letters, such as EUR');
