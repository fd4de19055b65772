/** The way from an empty database to today's tables; what has been released here is never edited, only followed. */
import { type Kysely, sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import { createInventory } from './inventory-migration.ts';
import { createIndexes, createWords, type Dialect, type Words } from './migration-words.ts';

export type { Dialect };

/** Runs what has not run yet, up to a migration's name or all. Throws what the database threw; nothing of the run is left then. */
export async function migrate<Any>(kysely: Kysely<Any>, dialect: Dialect, upTo?: string): Promise<void> {
  const provider = { getMigrations: async () => createMigrations(dialect) };
  const migrator = new Migrator({ db: kysely, provider });
  const { error } = await (upTo === undefined ? migrator.migrateToLatest() : migrator.migrateTo(upTo));
  if (error !== undefined) throw error;
}

/** By name, in alphabetical order. */
function createMigrations(dialect: Dialect): Record<string, Migration> {
  const words = createWords(dialect);
  return {
    '0001-bookings': { up: (kysely) => createBookings(kysely, words) },
    '0002-messages': { up: (kysely) => createMessages(kysely, words) },
    '0003-inventory': { up: (kysely) => createInventory(kysely, words) },
  };
}

async function createBookings(kysely: Kysely<unknown>, { text }: Words): Promise<void> {
  await sql`create table hotels (id ${text} not null primary key, name ${text} not null, city ${text} not null)`.execute(
    kysely,
  );
  await sql`create table cars (
    id ${text} not null primary key, model ${text} not null, class ${text} not null, city ${text} not null
  )`.execute(kysely);
  await createBookingTable(kysely, {
    text,
    table: 'hotel_bookings',
    owner: 'hotel_id',
    owners: 'hotels',
  });
  await createBookingTable(kysely, {
    text,
    table: 'car_bookings',
    owner: 'car_id',
    owners: 'cars',
  });
  await createIndexes(kysely, {
    hotels: ['name', 'city'],
    cars: ['model', 'class', 'city'],
  });
  await createIndexes(kysely, {
    hotel_bookings: ['user', 'hotel_id'],
    car_bookings: ['user', 'car_id'],
  });
}

async function createMessages(kysely: Kysely<unknown>, { text, serial }: Words): Promise<void> {
  await sql`create table accounts (id ${text} not null primary key, name ${text} not null)`.execute(kysely);
  await sql`create table messages (
    id ${serial},
    account_id ${text} not null references accounts (id),
    subject ${text} not null,
    body ${text} not null,
    created_at ${text} not null
  )`.execute(kysely);
  await createIndexes(kysely, { accounts: ['name'], messages: ['account_id'] });
}

interface BookingTable {
  readonly text: Words['text'];
  readonly table: string;
  readonly owner: string;
  readonly owners: string;
}

async function createBookingTable(
  kysely: Kysely<unknown>,
  { text, table, owner, owners }: BookingTable,
): Promise<void> {
  await sql`create table ${sql.table(table)} (
    id ${text} not null primary key,
    ${sql.ref(owner)} ${text} not null references ${sql.table(owners)} (id),
    "user" ${text} not null,
    status ${text} not null check (status in ('pending', 'confirmed', 'cancelled')),
    version integer not null default 1 check (version >= 1),
    created_at ${text} not null
  )`.execute(kysely);
}
