/** The tables that the migrations create: their columns match the types, and indexes serve the API and deletions. */
import assert from 'node:assert/strict';
import { type Compilable, CompiledQuery } from 'kysely';
import type { Database } from '../../../src/travel/storage/database.ts';
import { openDatabase } from '../../../src/travel/storage/open-database.ts';

describe('the migrated tables', () => {
  let database: Database;

  before(async () => {
    database = await openDatabase({ url: 'sqlite::memory:' });
  });

  after(() => database.close());

  it('have the columns and nullability of schema.ts', async () => {
    const offer = 'units price currency';
    const booking =
      'id user status version created_at reference starts_at ends_at price currency policy expires_at? refund?';
    const day = 'offer_id day unit units booking_id held_until?';
    const expected: Readonly<Record<string, string>> = {
      hotels: 'id name city',
      room_types: `id hotel_id name guests ${offer}`,
      cars: `id model class city pickup_place ${offer}`,
      hotel_bookings: `hotel_id room_type guests ${booking}`,
      car_bookings: `car_id ${booking}`,
      hotel_nights: day,
      car_days: day,
      answers: 'id fingerprint body created_at',
      accounts: 'id name',
      messages: 'id account_id subject body created_at',
    };
    const tables = await database.kysely.introspection.getTables();
    const found = tables.map(({ name, columns }) => [
      name,
      columns.map((column) => column.name + (column.isNullable && !column.isAutoIncrementing ? '?' : '')).toSorted(),
    ]);
    assert.deepEqual(
      Object.fromEntries(found),
      Object.fromEntries(Object.entries(expected).map(([name, columns]) => [name, columns.split(' ').toSorted()])),
    );
  });

  const check = async (query: Compilable<unknown>, index: RegExp) => {
    const { sql, parameters } = query.compile();
    const plan = await database.kysely.executeQuery<{ detail: string }>(
      CompiledQuery.raw(`explain query plan ${sql}`, [...parameters]),
    );
    const details = plan.rows.map(({ detail }) => detail).join('; ');
    assert.match(details, index);
    assert.doesNotMatch(details, /TEMP B-TREE/, 'sorts rows that an index could return in order');
  };

  it('have indexes for the messages of an account in order, and for a message by its number', async () => {
    const messages = database.kysely.selectFrom('messages').selectAll();
    const ofAccount = messages.where('account_id', '=', 'demo').orderBy('id').limit(20);
    await check(ofAccount, /USING INDEX messages_by_account_id/);
    await check(messages.where('id', '=', 1), /USING INTEGER PRIMARY KEY/);
  });

  it('have indexes for hotels and cars by any searchable column, and for hotels ordered by name', async () => {
    const hotels = database.kysely.selectFrom('hotels').selectAll();
    await check(hotels.where('city', '=', 'Bern').orderBy('id').limit(20), /SEARCH hotels USING INDEX hotels_by_city/);
    await check(hotels.orderBy('name').orderBy('id').limit(20), /SCAN hotels USING INDEX hotels_by_name/);
    const cars = database.kysely.selectFrom('cars').selectAll();
    for (const column of ['model', 'class', 'city'] as const) {
      const filtered = cars.where(column, '=', 'x').orderBy('id').limit(20);
      await check(filtered, new RegExp(`SEARCH cars USING INDEX cars_by_${column}`));
    }
  });

  it('have an index for the bookings of a hotel, which its deletion needs', async () => {
    const bookings = database.kysely.selectFrom('hotel_bookings').select('id');
    await check(bookings.where('hotel_id', '=', 'x'), /SEARCH hotel_bookings USING .*INDEX hotel_bookings_by_hotel_id/);
  });
});
