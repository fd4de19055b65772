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
    assert.deepEqual(
      found.filter(({ isNullable, isAutoIncrementing }) => isNullable && !isAutoIncrementing),
      [],
    );
  };

  it('has the columns of each table, none of which may be empty', async () => {
    await check('hotels', 'id', 'name', 'city');
    await check('cars', 'id', 'model', 'class', 'city');
    await check('hotel_bookings', 'id', 'hotel_id', 'user', 'status', 'version', 'created_at');
    await check('car_bookings', 'id', 'car_id', 'user', 'status', 'version', 'created_at');
    await check('accounts', 'id', 'name');
    await check('messages', 'id', 'account_id', 'subject', 'body', 'created_at');
  });
});
