/** The tables' types say what the migrations made. */
import assert from 'node:assert/strict';
import { type Database, openDatabase } from '#storage';

describe('the schema', () => {
  let database: Database;

  before(async () => {
    database = await openDatabase({ url: 'sqlite::memory:' });
  });

  after(() => database.close());

  const check = async (table: string, ...columns: readonly string[]) => {
    const tables = await database.kysely.introspection.getTables();
    const found = tables.find(({ name }) => name === table)?.columns ?? [];
    assert.deepEqual(found.map(({ name }) => name).toSorted(), columns.toSorted());
    const empty = found.filter(({ isNullable, isAutoIncrementing }) => isNullable && !isAutoIncrementing);
    assert.deepEqual(
      empty.map(({ name }) => name),
      columns.filter((name) => ['expires_at', 'refund', 'held_until'].includes(name)),
    );
  };

  it('has the columns of each table, of which few may be empty', async () => {
    const offer = ['id', 'units', 'price', 'currency'];
    const booking = ['id', 'user', 'status', 'version', 'created_at', 'reference', 'starts_at', 'ends_at', 'policy'];
    const priced = [...booking, 'price', 'currency', 'expires_at', 'refund'];
    const day = ['offer_id', 'day', 'unit', 'units', 'booking_id', 'held_until'];
    await check('hotels', 'id', 'name', 'city');
    await check('room_types', ...offer, 'hotel_id', 'name', 'guests');
    await check('cars', ...offer, 'model', 'class', 'city', 'pickup_place');
    await check('hotel_bookings', ...priced, 'hotel_id', 'room_type', 'guests');
    await check('car_bookings', ...priced, 'car_id');
    await check('hotel_nights', ...day);
    await check('car_days', ...day);
    await check('answers', 'id', 'fingerprint', 'body', 'created_at');
    await check('accounts', 'id', 'name');
    await check('messages', 'id', 'account_id', 'subject', 'body', 'created_at');
  });
});
