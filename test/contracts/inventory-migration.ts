/** The contract of the migration that adds the inventory to a version 2 database with bookings. */
import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { Kysely, PostgresDialect, SqliteDialect, sql } from 'kysely';
import pg from 'pg';
import request from 'supertest';
import { createRepresentations } from '#http';
import { createCarService } from '../../src/travel/car/car.ts';
import { createHotelService } from '../../src/travel/hotel/hotel.ts';
import type { Database } from '../../src/travel/storage/database.ts';
import { createStatementCache } from '../../src/travel/storage/dialect.ts';
import { migrate } from '../../src/travel/storage/migrations.ts';
import { openDatabase } from '../../src/travel/storage/open-database.ts';
import type { ScratchDatabase } from '../support/databases.ts';
import { highLimits } from './booking-world.ts';

const hotelId = '10000000-0000-4000-8000-000000000001';
const carId = '10000000-0000-4000-8000-000000000002';
const bookingCount = 300;

function idAt(index: number): string {
  return `20000000-0000-4000-8000-${String(index).padStart(12, '0')}`;
}

export function inventoryMigrationContract(create: () => Promise<ScratchDatabase>): void {
  let scratch: ScratchDatabase;
  let database: Database;

  before(async () => {
    scratch = await create();
    await createOldDatabase(scratch.url);
    database = await openDatabase({ url: scratch.url });
  });
  after(async () => {
    await database.close();
    await scratch.remove();
  });

  const call = (kind: 'hotel' | 'car', path: string) => {
    const options = { database, representations: createRepresentations(), limits: highLimits };
    const app = kind === 'hotel' ? createHotelService(options) : createCarService(options);
    return { get: request(app.callback()).get(path).set('X-Travel-User', 'ann'), app };
  };

  it('keeps every booking with its owner, status, version and time, and assigns a unique reference', async () => {
    const rows = await database.kysely.selectFrom('hotel_bookings').selectAll().orderBy('id').execute();
    assert.equal(rows.length, bookingCount);
    assert.equal(new Set(rows.map(({ reference }) => reference)).size, bookingCount);
    const { reference, ...first } = { ...rows[0] };
    assert.match(reference ?? '', /^[\dA-HJKMNP-TV-Z]{8}$/);
    assert.deepEqual(first, {
      id: idAt(0),
      hotel_id: hotelId,
      user: 'ann',
      status: 'pending',
      version: 3,
      created_at: '2025-12-31T23:59:59.999Z',
      starts_at: '2025-12-31',
      ends_at: '2026-01-01',
      room_type: 'standard',
      guests: 1,
      price: 0,
      currency: 'EUR',
      policy: '[]',
      expires_at: null,
      refund: null,
    });
    assert.deepEqual([rows[2]?.status, rows[2]?.refund], ['cancelled', 0]);
  });

  it('serves the bookings in the old shape with additional fields', async () => {
    const { body: hotel } = await call('hotel', `/bookings/${idAt(0)}`)
      .get.expect(200)
      .expect('ETag', /^"3-/);
    assert.deepEqual([hotel.id, hotel.hotel_id, hotel.status], [idAt(0), hotelId, 'pending']);
    const { body: car } = await call('car', `/bookings/${idAt(1)}`).get.expect(200);
    assert.deepEqual([car.car_id, car.pickup_at], [carId, '2025-12-31T00:00:00.000Z']);
  });

  it('lets hotels and cars be booked by their id alone', async () => {
    for (const [kind, body] of [
      ['hotel', { hotel_id: hotelId }],
      ['car', { car_id: carId }],
    ] as const) {
      const { app } = call(kind, '/');
      await request(app.callback()).post('/bookings/').set('X-Travel-User', 'ann').send(body).expect(201);
    }
    const { body } = await call('car', `/${carId}`).get.expect(200);
    assert.deepEqual([body.pickup_place, body.count], ['Bern', 1]);
  });

  it('runs only once', async () => {
    const again = await openDatabase({ url: scratch.url });
    const rows = await again.kysely.selectFrom('room_types').select('id').execute();
    await again.close();
    assert.equal(rows.length, 1);
  });
}

async function createOldDatabase(url: string): Promise<void> {
  const isSqlite = url.startsWith('sqlite:');
  const kysely = new Kysely<unknown>({
    dialect: isSqlite
      ? new SqliteDialect({ database: createStatementCache(new DatabaseSync(url.slice('sqlite:'.length))) })
      : new PostgresDialect({ pool: new pg.Pool({ connectionString: url }) }),
  });
  await migrate(kysely, isSqlite ? 'sqlite' : 'postgres', { upTo: '0002-messages' });
  await sql`insert into hotels (id, name, city) values (${hotelId}, 'Astoria', 'Bern')`.execute(kysely);
  await sql`insert into cars (id, model, class, city) values (${carId}, 'Polo', 'economy', 'Bern')`.execute(kysely);
  const statuses = ['pending', 'confirmed', 'cancelled'];
  const rows = Array.from({ length: bookingCount }, (_, index) => {
    const rest = sql`'ann', ${statuses[index % 3]}, 3, '2025-12-31T23:59:59.999Z'`;
    return sql`(${idAt(index)}, ${hotelId}, ${rest})`;
  });
  await sql`insert into hotel_bookings (id, hotel_id, "user", status, version, created_at)
    values ${sql.join(rows)}`.execute(kysely);
  await sql`insert into car_bookings (id, car_id, "user", status, version, created_at)
    values (${idAt(1)}, ${carId}, 'ann', 'confirmed', 1, '2025-12-31T23:59:59.999Z')`.execute(kysely);
  await kysely.destroy();
}
