/** The migrations of the database. Never change what a released migration does; add a new one instead. */
import { type Kysely, type RawBuilder, sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import { type Dialect, driverMessage, StorageSetupError } from './database.ts';

export interface MigrateOptions {
  /** The name of the last migration to run. @default all */
  readonly upTo?: string;
  /** The schema of the migration table. @default Kysely searches all schemas, which suits SQLite */
  readonly schema?: string;
}

/** Runs the pending migrations. If one fails, rolls back all of them and throws its error. */
export async function migrate<Any>(
  kysely: Kysely<Any>,
  dialect: Dialect,
  { upTo, schema }: MigrateOptions = {},
): Promise<void> {
  const provider = { getMigrations: async () => createMigrations(dialect) };
  const migrator = new Migrator({
    db: kysely,
    provider,
    ...(schema !== undefined && { migrationTableSchema: schema }),
  });
  const { error } = await (upTo === undefined ? migrator.migrateToLatest() : migrator.migrateTo(upTo));
  if (error !== undefined) throw newerSchemaError(error) ?? error;
}

/** Recognizes tables that a newer version of this program has changed. Kysely reports them only in a message. */
function newerSchemaError(error: unknown): StorageSetupError | undefined {
  const [, name] =
    /^corrupted migrations: previously executed migration (\S+) is missing/.exec(driverMessage(error)) ?? [];
  if (name === undefined) return undefined;
  return new StorageSetupError(
    `a newer version of frontdesk, or another program with such a table, has recorded the migration ${name}. ` +
      'Start that version, or restore a copy of the database from before the change',
    { cause: error },
  );
}

/** Returns the migrations by name. Kysely runs them in alphabetical order. */
function createMigrations(dialect: Dialect): Record<string, Migration> {
  const dialectSql = createDialectSql(dialect);
  return {
    '0001-bookings': { up: (kysely) => createBookings(kysely, dialectSql) },
    '0002-messages': { up: (kysely) => createMessages(kysely, dialectSql) },
    '0003-inventory': { up: (kysely) => createInventory(kysely, dialectSql) },
  };
}

interface BookingTable {
  readonly bookings: string;
  readonly resourceColumn: string;
  readonly resources: string;
}

const hotelBookings: BookingTable = { bookings: 'hotel_bookings', resourceColumn: 'hotel_id', resources: 'hotels' };
const carBookings: BookingTable = { bookings: 'car_bookings', resourceColumn: 'car_id', resources: 'cars' };

async function createBookings(kysely: Kysely<unknown>, { text }: DialectSql): Promise<void> {
  await sql`create table hotels (id ${text} not null primary key, name ${text} not null, city ${text} not null)`.execute(
    kysely,
  );
  await sql`create table cars (
    id ${text} not null primary key, model ${text} not null, class ${text} not null, city ${text} not null
  )`.execute(kysely);
  for (const { bookings, resourceColumn, resources } of [hotelBookings, carBookings])
    await sql`create table ${sql.table(bookings)} (
      id ${text} not null primary key,
      ${sql.ref(resourceColumn)} ${text} not null references ${sql.table(resources)} (id),
      "user" ${text} not null,
      status ${text} not null check (status in ('pending', 'confirmed', 'cancelled')),
      version integer not null default 1 check (version >= 1),
      created_at ${text} not null
    )`.execute(kysely);
  await createIndexes(kysely, {
    hotels: ['name', 'city'],
    cars: ['model', 'class', 'city'],
    hotel_bookings: ['user', 'hotel_id'],
    car_bookings: ['user', 'car_id'],
  });
}

async function createMessages(kysely: Kysely<unknown>, { text, serial }: DialectSql): Promise<void> {
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

async function createInventory(kysely: Kysely<unknown>, dialectSql: DialectSql): Promise<void> {
  await createRoomTypes(kysely, dialectSql);
  await extendCars(kysely, dialectSql);
  await rebuildBookings(kysely, dialectSql, {
    ...hotelBookings,
    time: '',
    more: [
      { name: 'room_type', type: sql`${dialectSql.text} not null`, oldValue: sql`'standard'` },
      { name: 'guests', type: sql`integer not null check (guests >= 1)`, oldValue: sql`1` },
    ],
  });
  await rebuildBookings(kysely, dialectSql, { ...carBookings, time: 'T00:00:00.000Z', more: [] });
  await createDays(kysely, dialectSql, { table: 'hotel_nights', offers: 'room_types', bookings: 'hotel_bookings' });
  await createDays(kysely, dialectSql, { table: 'car_days', offers: 'cars', bookings: 'car_bookings' });
  await createStoredResponses(kysely, dialectSql);
}

const unitColumn = sql`units integer not null check (units >= 0)`;
/** In minor units, such as cents. 90 days at the highest price still fit into 32 bits. */
const priceColumn = sql`price integer not null check (price between 0 and 10000000)`;
const currency = sql`check (currency in (upper(currency)) and length(currency) = 3)`;

/** Gives each existing hotel a room type, which operators can edit, so that its ID alone is still enough to book. */
async function createRoomTypes(kysely: Kysely<unknown>, { text }: DialectSql): Promise<void> {
  await sql`create table room_types (
    id ${text} not null primary key,
    hotel_id ${text} not null references hotels (id),
    name ${text} not null,
    guests integer not null check (guests >= 1),
    ${unitColumn}, ${priceColumn}, currency ${text} not null ${currency},
    unique (hotel_id, name), unique (id, units)
  )`.execute(kysely);
  await createIndexes(kysely, { room_types: ['hotel_id'] });
  await sql`insert into room_types (id, hotel_id, name, guests, units, price, currency)
    select id, id, 'standard', 2, 10, 10000, 'EUR' from hotels`.execute(kysely);
}

/** Turns cars into offers with several units. Each existing row is a single car. */
async function extendCars(kysely: Kysely<unknown>, { text }: DialectSql): Promise<void> {
  const columns = [
    sql`pickup_place ${text} not null default ''`,
    sql`units integer not null default 1 check (units >= 0)`,
    sql`price integer not null default 5000 check (price between 0 and 10000000)`,
    sql`currency ${text} not null default 'EUR' ${currency}`,
  ];
  for (const column of columns) await sql`alter table cars add column ${column}`.execute(kysely);
  await sql`update cars set pickup_place = city`.execute(kysely);
  await sql`create unique index cars_units on cars (id, units)`.execute(kysely);
}

interface BookingsRebuild extends BookingTable {
  /** The time to append to the date in `starts_at` and `ends_at`. */
  readonly time: string;
  /** Columns that only these bookings have, with their value in existing rows. */
  readonly more: readonly {
    readonly name: string;
    readonly type: RawBuilder<unknown>;
    readonly oldValue: RawBuilder<unknown>;
  }[];
}

/**
 * Replaces the table by a new one, because SQLite cannot add a `not null` column without a default. Existing bookings
 * have no dates and no price. They become bookings for the day on which they were made, free of charge, without a unit.
 */
async function rebuildBookings(
  kysely: Kysely<unknown>,
  dialectSql: DialectSql,
  rebuild: BookingsRebuild,
): Promise<void> {
  const { bookings, resourceColumn } = rebuild;
  const [table, old] = [sql.table(bookings), sql.table(`${bookings}_before`)];
  for (const column of ['user', resourceColumn])
    await sql`drop index ${sql.ref(`${bookings}_by_${column}`)}`.execute(kysely);
  await sql`alter table ${table} rename to ${old}`.execute(kysely);
  await createNewBookings(kysely, dialectSql, rebuild);
  await copyBookings(kysely, dialectSql, rebuild);
  await sql`drop table ${old}`.execute(kysely);
  await createIndexes(kysely, { [bookings]: [resourceColumn] });
  for (const [index, order] of [
    ['user_created_at', sql`created_at, `],
    ['user_starts_at', sql`starts_at, `],
    ['user', sql``],
  ] as const)
    await sql`create index ${sql.ref(`${bookings}_by_${index}`)} on ${table} ("user", ${order}id)`.execute(kysely);
}

async function createNewBookings(
  kysely: Kysely<unknown>,
  { text }: DialectSql,
  { bookings, resourceColumn, resources, more }: BookingsRebuild,
): Promise<void> {
  await sql`create table ${sql.table(bookings)} (
    id ${text} not null primary key,
    ${sql.ref(resourceColumn)} ${text} not null references ${sql.table(resources)} (id),
    "user" ${text} not null,
    status ${text} not null check (status in ('pending', 'confirmed', 'cancelled')),
    version integer not null default 1 check (version >= 1),
    created_at ${text} not null,
    reference ${text} not null unique check (length(reference) = 8),
    starts_at ${text} not null,
    ends_at ${text} not null check (ends_at > starts_at),
    price integer not null check (price >= 0),
    currency ${text} not null ${currency},
    policy ${text} not null,
    expires_at ${text} check (expires_at is null or status <> 'confirmed'),
    refund integer check ((refund is not null) = (status = 'cancelled') and refund between 0 and price)
    ${sql.join(
      more.map(({ name, type }) => sql`, ${sql.ref(name)} ${type}`),
      sql``,
    )}
  )`.execute(kysely);
}

/** Copies the rows of the renamed table to the new one. */
async function copyBookings(
  kysely: Kysely<unknown>,
  { dayAfter }: DialectSql,
  { bookings, resourceColumn, time, more }: BookingsRebuild,
): Promise<void> {
  const kept = ['id', resourceColumn, 'user', 'status', 'version', 'created_at'].map((name) => sql.ref(name));
  const added = ['reference', 'starts_at', 'ends_at', 'price', 'currency', 'policy', 'refund'];
  const names = [...added, ...more.map(({ name }) => name)].map((name) => sql.ref(name));
  const values = [
    countedReference,
    sql`substr(created_at, 1, 10) || ${sql.lit(time)}`,
    sql`${dayAfter(sql`substr(created_at, 1, 10)`)} || ${sql.lit(time)}`,
    sql`0`,
    sql`'EUR'`,
    sql`'[]'`,
    sql`case when status = 'cancelled' then 0 end`,
    ...more.map(({ oldValue }) => oldValue),
  ];
  await sql`insert into ${sql.table(bookings)} (${sql.join([...kept, ...names])})
    select ${sql.join([...kept, ...values])}
    from (select *, row_number() over (order by id) as place from ${sql.table(`${bookings}_before`)}) as numbered`.execute(
    kysely,
  );
}

/** Computes eight characters of Crockford's Base32 from the row number. They are unique but look random. */
const countedReference = sql.join(
  [35, 30, 25, 20, 15, 10, 5, 0].map(
    (bit) =>
      sql`substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', cast((((place * 387420489) >> ${sql.lit(bit)}) & 31) as integer) + 1, 1)`,
  ),
  sql` || `,
);

interface Days {
  readonly table: string;
  readonly offers: string;
  readonly bookings: string;
}

/**
 * Creates the table of the units that are taken on each day. Its constraints make overbooking impossible: the primary
 * key lets a unit be taken only once a day, and the check allows only the units that exist. The foreign key keeps `units`
 * equal to the number of units of the offer.
 */
async function createDays(
  kysely: Kysely<unknown>,
  { text }: DialectSql,
  { table, offers, bookings }: Days,
): Promise<void> {
  await sql`create table ${sql.table(table)} (
    offer_id ${text} not null,
    day integer not null,
    unit integer not null,
    units integer not null,
    booking_id ${text} not null references ${sql.table(bookings)} (id) on delete cascade,
    held_until ${text},
    primary key (offer_id, day, unit),
    foreign key (offer_id, units) references ${sql.table(offers)} (id, units) on update cascade,
    check (unit between 1 and units)
  )`.execute(kysely);
  await sql`create index ${sql.ref(`${table}_by_booking_id`)} on ${sql.table(table)} (booking_id)`.execute(kysely);
}

/** Creates the table of responses that are replayed to repeated requests. */
async function createStoredResponses(kysely: Kysely<unknown>, { text }: DialectSql): Promise<void> {
  await sql`create table answers (
    id ${text} not null primary key,
    fingerprint ${text} not null,
    body ${text} not null,
    created_at ${text} not null
  )`.execute(kysely);
  await createIndexes(kysely, { answers: ['created_at'] });
}

/** SQL fragments that differ between the dialects. */
interface DialectSql {
  readonly text: RawBuilder<unknown>;
  readonly serial: RawBuilder<unknown>;
  /** The argument and the result are dates such as `2026-12-31`. */
  readonly dayAfter: (day: RawBuilder<unknown>) => RawBuilder<unknown>;
}

/**
 * Text is compared byte by byte in both dialects, so that lists have the same order, whatever the locale of a
 * PostgreSQL cluster. A message ID is never reused, not even after the last message is deleted.
 */
function createDialectSql(dialect: Dialect): DialectSql {
  if (dialect === 'sqlite') {
    return {
      text: sql`text`,
      serial: sql`integer primary key autoincrement`,
      dayAfter: (day) => sql`date(${day}, '+1 day')`,
    };
  }
  return {
    text: sql`text collate "C"`,
    serial: sql`integer generated by default as identity primary key`,
    dayAfter: (day) => sql`to_char(cast(${day} as date) + 1, 'YYYY-MM-DD')`,
  };
}

/** Appends the key to each index, so that a filtered list can be read from the index in order. */
async function createIndexes(
  kysely: Kysely<unknown>,
  columnsByTable: Record<string, readonly string[]>,
): Promise<void> {
  for (const [table, columns] of Object.entries(columnsByTable)) {
    for (const column of columns) {
      await kysely.schema.createIndex(`${table}_by_${column}`).on(table).columns([column, 'id']).execute();
    }
  }
}
