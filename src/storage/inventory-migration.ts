/** Third migration: how many rooms and cars there are, what they cost, and who has which of them on which day. */
import { type Kysely, sql } from 'kysely';
import { createIndexes, type Words } from './migration-words.ts';

export async function createInventory(kysely: Kysely<unknown>, words: Words): Promise<void> {
  await createRoomTypes(kysely, words);
  await countCars(kysely, words);
  await renewBookings(kysely, words, {
    bookings: 'hotel_bookings',
    owner: 'hotel_id',
    owners: 'hotels',
    time: '',
    more: [
      { name: 'room_type', type: sql`${words.text} not null`, before: sql`'standard'` },
      { name: 'guests', type: sql`integer not null check (guests >= 1)`, before: sql`1` },
    ],
  });
  const cars = { bookings: 'car_bookings', owner: 'car_id', owners: 'cars' };
  await renewBookings(kysely, words, { ...cars, time: 'T00:00:00.000Z', more: [] });
  await createDays(kysely, words, { table: 'hotel_nights', offers: 'room_types', bookings: 'hotel_bookings' });
  await createDays(kysely, words, { table: 'car_days', offers: 'cars', bookings: 'car_bookings' });
  await createAnswers(kysely, words);
}

const unitColumn = sql`units integer not null check (units >= 0)`;
/** In minor units such as cents; 90 days of the most expensive one still fit into 32 bits. */
const priceColumn = sql`price integer not null check (price between 0 and 10000000)`;
const currency = sql`check (currency in (upper(currency)) and length(currency) = 3)`;

/** A hotel that was there before can be booked as before, with its id alone: it gets rooms of one type, to be edited. */
async function createRoomTypes(kysely: Kysely<unknown>, { text }: Words): Promise<void> {
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

/** Before, each row was one car. */
async function countCars(kysely: Kysely<unknown>, { text }: Words): Promise<void> {
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

interface Renewal {
  readonly bookings: string;
  readonly owner: string;
  readonly owners: string;
  /** What follows the day where a booking says when it begins and ends. */
  readonly time: string;
  /** Columns of these bookings alone, and what they hold for a booking that was made before. */
  readonly more: readonly { readonly name: string; readonly type: Words['text']; readonly before: Words['text'] }[];
}

/**
 * In a new table, since SQLite can add no column that must not be empty. A booking that was made before named no day
 * and no price: it is for the day on which it was made, for nothing, and takes no room from anybody.
 */
async function renewBookings(
  kysely: Kysely<unknown>,
  { text, dayAfter }: Words,
  { bookings, owner, owners, time, more }: Renewal,
): Promise<void> {
  const [table, old, ownerColumn] = [sql.table(bookings), sql.table(`${bookings}_before`), sql.ref(owner)];
  for (const column of ['user', owner]) await sql`drop index ${sql.ref(`${bookings}_by_${column}`)}`.execute(kysely);
  await sql`alter table ${table} rename to ${old}`.execute(kysely);
  await sql`create table ${table} (
    id ${text} not null primary key,
    ${ownerColumn} ${text} not null references ${sql.table(owners)} (id),
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
  const comma = sql`, `;
  const [names, values] = [more.map(({ name }) => sql.ref(name)), more.map(({ before }) => before)];
  const kept = [sql`id`, ownerColumn, sql`"user"`, sql`status`, sql`version`, sql`created_at`];
  const added = ['reference', 'starts_at', 'ends_at', 'price', 'currency', 'policy', 'refund'].map((name) =>
    sql.ref(name),
  );
  await sql`insert into ${table} (${sql.join([...kept, ...added, ...names], comma)})
    select ${sql.join(kept, comma)}, ${countedReference},
      substr(created_at, 1, 10) || ${sql.lit(time)}, ${dayAfter(sql`substr(created_at, 1, 10)`)} || ${sql.lit(time)},
      0, 'EUR', '[]', case when status = 'cancelled' then 0 end
      ${sql.join(
        values.map((value) => sql`, ${value}`),
        sql``,
      )}
    from (select *, row_number() over (order by id) as place from ${old}) as numbered`.execute(kysely);
  await sql`drop table ${old}`.execute(kysely);
  const columns = { [bookings]: [owner] };
  await createIndexes(kysely, columns);
  for (const order of ['created_at', 'starts_at'])
    await sql`create index ${sql.ref(`${bookings}_by_user_${order}`)} on ${table} ("user", ${sql.ref(order)}, id)`.execute(
      kysely,
    );
  await sql`create index ${sql.ref(`${bookings}_by_user`)} on ${table} ("user", id)`.execute(kysely);
}

/** Eight letters without I, L, O and U (Crockford's base 32), counted so that no two are the same, in a scattered order. */
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
 * Who has which unit of an offer on which day. A unit is taken once a day by the key, and no unit is beyond what there
 * is by the check, since `units` follows the offer: there is no row that could hold one booking too many.
 */
async function createDays(kysely: Kysely<unknown>, { text }: Words, { table, offers, bookings }: Days): Promise<void> {
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

/** What was answered to a request that may come again. */
async function createAnswers(kysely: Kysely<unknown>, { text }: Words): Promise<void> {
  await sql`create table answers (
    id ${text} not null primary key,
    fingerprint ${text} not null,
    body ${text} not null,
    created_at ${text} not null
  )`.execute(kysely);
  await createIndexes(kysely, { answers: ['created_at'] });
}
