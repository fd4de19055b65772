/** Demo data that cannot be used says which table, row and column is at fault, and leaves the database empty. */
import assert from 'node:assert/strict';
import { type Database, type DemoRows, loadDemo, openDatabase, StorageSetupError } from '#storage';

const id = '6f1f3c52-7d7e-4a57-9d43-5f0f6c1d2a01';
const hotel = { id, name: 'Astoria', city: 'Bern' };
const booking = { id, hotel_id: id, user: 'demo', status: 'confirmed' };

describe('loadDemo', () => {
  let database: Database;

  beforeEach(async () => {
    database = await openDatabase({ url: 'sqlite::memory:' });
  });

  afterEach(() => database.close());

  const refuse = async (demo: DemoRows, ...lines: readonly RegExp[]) => {
    await assert.rejects(loadDemo(database, demo, { nowMs: 0 }), (error) => {
      assert.ok(error instanceof StorageSetupError);
      const said = error.message.split('\n').slice(1);
      assert.equal(said.length, lines.length, error.message);
      for (const [index, line] of lines.entries()) assert.match(said[index] ?? '', line);
      return true;
    });
    assert.deepEqual(await database.kysely.selectFrom('hotels').selectAll().execute(), []);
  };

  it('takes no rows for what they are', async () => {
    assert.equal(await loadDemo(database, {}, { nowMs: 0 }), true);
  });

  it('names a table that is none, and those that are', async () => {
    await refuse(
      { hotels: [hotel], hotles: [] },
      /hotles is no table; known: hotels, room_types, cars, hotel_bookings/,
    );
    await refuse({ constructor: [] as never }, /constructor is no table/);
  });

  it('names a column that is unknown, missing or bad, all at once', async () => {
    await refuse(
      { hotels: [hotel, { id: 'x', nme: 'A', city: 5 }] },
      /hotels, row 2, id: Invalid UUID/,
      /hotels, row 2, name: .*expected string/,
      /hotels, row 2, city: .*expected string/,
      /hotels, row 2, nme: Unrecognized key/,
    );
  });

  it('names a row that is none', async () => {
    await refuse({ hotels: ['x'] as never }, /hotels, row 1, the whole row: .*expected object/);
  });

  it('names an id that is given twice', async () => {
    await refuse({ hotels: [hotel, { ...hotel, id: id.toUpperCase() }] }, /hotels, row 2, id: .* earlier row/);
  });

  it('names a reference to nothing', async () => {
    await refuse({ hotel_bookings: [booking] }, /hotel_bookings, row 1, hotel_id: .* is no id in hotels/);
    const message = { id: 1, account_id: 'nobody', subject: 's', body: 'b' };
    await refuse({ messages: [message] }, /messages, row 1, account_id: nobody is no id in accounts/);
  });

  it('names a status, a version and a time that are none', async () => {
    const bad = { ...booking, status: 'lost', version: 0, created_at: 'yesterday' };
    await refuse(
      { hotels: [hotel], hotel_bookings: [bad] },
      /status: .*"confirmed"/,
      /version: Too small/,
      /created_at: .*datetime/,
    );
  });
});
