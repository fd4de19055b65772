/** Loading demo rows: invalid ones are reported with table, row and column, and nothing is inserted. */
import assert from 'node:assert/strict';
import { type DemoRows, loadDemo } from '../../src/travel/demo.ts';
import { type Database, StorageSetupError } from '../../src/travel/storage/database.ts';
import { openDatabase } from '../../src/travel/storage/open-database.ts';

const id = '6f1f3c52-7d7e-4a57-9d43-5f0f6c1d2a01';
const hotel = { id, name: 'Astoria', city: 'Bern' };
const booking = { id, hotel_id: id, user: 'demo', status: 'confirmed' };

const firstDay = '1970-01-01T00:00:00.000Z';

describe('loadDemo', () => {
  let database: Database;

  beforeEach(async () => {
    database = await openDatabase({ url: 'sqlite::memory:' });
  });

  afterEach(() => database.close());

  it('accepts no rows at all', async () => {
    assert.equal(await loadDemo(database, {}, { nowMs: 0 }), true);
  });

  it('fills in missing columns of a booking, and converts IDs to lower case', async () => {
    const car = { id, model: 'Polo', class: 'economy', city: 'Bern' };
    const carBooking = { id: id.toUpperCase(), car_id: id.toUpperCase(), user: 'demo', status: 'cancelled' };
    await loadDemo(database, { cars: [car], car_bookings: [carBooking] }, { nowMs: 0 });
    const row = await database.kysely.selectFrom('car_bookings').selectAll().executeTakeFirstOrThrow();
    const { reference, ...columns } = row;
    assert.match(reference, /^[\dA-F]{8}$/);
    const policy = JSON.stringify([{ before: '1970-01-01T09:00:00.000Z', refund: 2_500 }]);
    const filled = { version: 1, price: 5_000, currency: 'EUR', policy, expires_at: null, refund: 2_500 };
    const times = { created_at: firstDay, starts_at: '1970-01-01T09:00:00.000Z', ends_at: '1970-01-01T18:00:00.000Z' };
    assert.deepEqual(columns, { id, car_id: id, user: 'demo', status: 'cancelled', ...filled, ...times });
  });

  const double = { id, hotel_id: id, name: 'double', units: 1, price: 12_000, currency: 'CHF' };
  const stay = { ...booking, room_type: 'double', starts_in: 21, nights: 3 };

  it('gives a booking the price and the refunds of its nights, and takes a room unless it is cancelled', async () => {
    const cancelledId = id.replace('6', '7');
    const hotel_bookings = [stay, { ...stay, id: cancelledId, status: 'cancelled' }];
    await loadDemo(database, { hotels: [hotel], room_types: [double], hotel_bookings }, { nowMs: 0 });
    const { kysely } = database;
    const columns = ['starts_at', 'ends_at', 'price', 'currency', 'refund', 'policy'] as const;
    const rows = await kysely.selectFrom('hotel_bookings').select(columns).orderBy('id').execute();
    const policy = JSON.stringify([
      { before: '1970-01-20T00:00:00.000Z', refund: 36_000 },
      { before: '1970-01-22T00:00:00.000Z', refund: 18_000 },
    ]);
    const common = { starts_at: '1970-01-22', ends_at: '1970-01-25', price: 36_000, currency: 'CHF', policy };
    assert.deepEqual(
      rows.map((row) => ({ ...row })),
      [
        { ...common, refund: null },
        { ...common, refund: 36_000 },
      ],
    );
    const nights = await kysely.selectFrom('hotel_nights').select(['day', 'unit', 'booking_id']).execute();
    assert.deepEqual(
      nights.map(({ day, unit, booking_id }) => [day, unit, booking_id]),
      [21, 22, 23].map((day) => [day, 1, id]),
    );
  });

  const refuse = (title: string, demo: DemoRows, ...lines: readonly RegExp[]) =>
    it(`rejects ${title}`, async () => {
      await assert.rejects(loadDemo(database, demo, { nowMs: 0 }), (error) => {
        assert.ok(error instanceof StorageSetupError);
        const faults = error.message.split('\n').slice(1);
        assert.equal(faults.length, lines.length, error.message);
        for (const [index, line] of lines.entries()) assert.match(faults[index] ?? '', line);
        return true;
      });
      assert.deepEqual(await database.kysely.selectFrom('hotels').selectAll().execute(), []);
    });

  const unknownTable = /unknown table hotles; known: hotels, room_types, cars, hotel_bookings/;
  refuse('an unknown table, and lists the known ones', { hotels: [hotel], hotles: [] }, unknownTable);
  refuse(
    'a table with the name of a built-in object member',
    { constructor: [] as never },
    /unknown table constructor/,
  );
  refuse(
    'unknown, missing and invalid columns, all together',
    { hotels: [hotel, { id: 'x', nme: 'A', city: 5 }] },
    /hotels, row 2, id: must be a UUID/,
    /hotels, row 2, name: is missing/,
    /hotels, row 2, city: must be a string/,
    /hotels, row 2, nme: is not a known field/,
  );
  refuse('a row that is not an object', { hotels: ['x'] as never }, /hotels, row 1, the whole row: must be an object/);
  refuse(
    'an id that is used twice',
    { hotels: [hotel, { ...hotel, id: id.toUpperCase() }] },
    /hotels, row 2, id: .* already the id of an earlier row/,
  );
  refuse(
    'two room types of a hotel with the same name',
    {
      hotels: [hotel],
      room_types: [
        { id, hotel_id: id, name: 'double' },
        { id: id.replace('6', '7'), hotel_id: id, name: 'double' },
      ],
    },
    /room_types, row 2, name: double is already the name of an earlier row/,
  );
  refuse(
    'a booking of a hotel that is missing',
    { hotel_bookings: [booking] },
    /hotel_bookings, row 1, hotel_id: there is no .* in hotels/,
  );
  refuse(
    'a message of an account that is missing',
    { messages: [{ id: 1, account_id: 'carl', subject: 's', body: 'b' }] },
    /messages, row 1, account_id: there is no carl in accounts/,
  );
  refuse(
    'a booking for a night on which earlier rows take every room',
    {
      hotels: [hotel],
      room_types: [double],
      hotel_bookings: [stay, { ...stay, id: id.replace('6', '7'), starts_in: 23 }],
    },
    /^ {2}hotel_bookings, row 2, starts_in: earlier rows take all 1 units on 1970-01-24$/,
  );
  refuse(
    'an invalid status, version and time',
    { hotels: [hotel], hotel_bookings: [{ ...booking, status: 'lost', version: 0, created_at: 'yesterday' }] },
    /status: .*"confirmed"/,
    /version: must be at least 1/,
    /created_at: must be a date and time/,
  );
});
