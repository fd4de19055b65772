/** Every list and lookup that the services make comes out of an index, and in order where it is asked for in order. */
import assert from 'node:assert/strict';
import { type Compilable, CompiledQuery } from 'kysely';
import { type Database, openDatabase } from '#storage';

describe('the tables', () => {
  let database: Database;

  before(async () => {
    database = await openDatabase({ url: 'sqlite::memory:' });
  });

  after(() => database.close());

  const check = async (query: Compilable<unknown>, index: RegExp) => {
    const { sql, parameters } = query.compile();
    const plan = await database.kysely.executeQuery<{ detail: string }>(
      CompiledQuery.raw(`explain query plan ${sql}`, [...parameters]),
    );
    const details = plan.rows.map(({ detail }) => detail).join('; ');
    assert.match(details, index);
    assert.doesNotMatch(details, /TEMP B-TREE/, 'sorts what an index could give in order');
  };

  it('give the bookings of a user in order', async () => {
    const { kysely } = database;
    const hotels = kysely.selectFrom('hotel_bookings').selectAll().where('user', '=', 'demo').orderBy('id');
    await check(hotels.limit(20), /SEARCH hotel_bookings USING INDEX hotel_bookings_by_user/);
    const cars = kysely.selectFrom('car_bookings').selectAll().where('user', '=', 'demo').orderBy('id');
    await check(cars.limit(20), /SEARCH car_bookings USING INDEX car_bookings_by_user/);
  });

  it('give a booking by its id', async () => {
    const booking = database.kysely
      .selectFrom('hotel_bookings')
      .selectAll()
      .where('id', '=', 'x')
      .where('user', '=', 'demo');
    await check(booking, /SEARCH hotel_bookings USING INDEX sqlite_autoindex/);
  });

  it('give the messages of an account in order, and a message by its number', async () => {
    const messages = database.kysely.selectFrom('messages').selectAll();
    await check(
      messages.where('account_id', '=', 'demo').orderBy('id').limit(20),
      /USING INDEX messages_by_account_id/,
    );
    await check(messages.where('id', '=', 1), /USING INTEGER PRIMARY KEY/);
  });

  it('give hotels and cars by city, and in the order of any column', async () => {
    const hotels = database.kysely.selectFrom('hotels').selectAll();
    await check(hotels.where('city', '=', 'Bern').orderBy('id').limit(20), /SEARCH hotels USING INDEX hotels_by_city/);
    await check(hotels.orderBy('name').orderBy('id').limit(20), /SCAN hotels USING INDEX hotels_by_name/);
    const cars = database.kysely.selectFrom('cars').selectAll();
    for (const column of ['model', 'class', 'city'] as const) {
      await check(
        cars.where(column, '=', 'x').orderBy('id').limit(20),
        new RegExp(`SEARCH cars USING INDEX cars_by_${column}`),
      );
    }
  });

  it('find what belongs to a hotel or a car, as a deletion must', async () => {
    const bookings = database.kysely.selectFrom('hotel_bookings').select('id');
    await check(bookings.where('hotel_id', '=', 'x'), /SEARCH hotel_bookings USING .*INDEX hotel_bookings_by_hotel_id/);
  });
});
