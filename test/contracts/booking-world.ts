/** A booking store with hotels and cars, on any database, whose clock the test sets. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Problem } from '#http';
import type { BookingRequest } from '../../src/travel/booking/create-booking.ts';
import type { BookingLimits } from '../../src/travel/booking/limits.ts';
import { dayMs, stayOf } from '../../src/travel/booking/stay.ts';
import { type BookingStore, createBookingStore } from '../../src/travel/booking/store.ts';
import { carKind } from '../../src/travel/car/car.ts';
import { hotelKind } from '../../src/travel/hotel/hotel.ts';
import type { Database } from '../../src/travel/storage/database.ts';
import { openDatabase } from '../../src/travel/storage/open-database.ts';
import type { BookingRow, CarBookingRow, HotelBookingRow } from '../../src/travel/storage/schema.ts';

/** 9:30, so that the current day has already begun. */
export const startMs = Date.UTC(2030, 0, 1, 9, 30);
export const today = Math.floor(startMs / dayMs);

/** A stay that begins `ahead` days from today. */
export function nights(ahead: number, length = 1) {
  const fromMs = (today + ahead) * dayMs;
  return stayOf(fromMs, fromMs + length * dayMs);
}

/** Asserts that the booking is rejected with this problem, and returns it. */
export async function assertProblem(booking: Promise<unknown>, slug: string): Promise<Problem> {
  const thrown = await booking.then(
    () => assert.fail(`expected ${slug}`),
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof Problem, String(thrown));
  assert.equal(thrown.slug, slug);
  return thrown;
}

export interface World {
  readonly time: { nowMs: number };
  readonly database: Database;
  readonly hotels: BookingStore<HotelBookingRow>;
  readonly cars: BookingStore<CarBookingRow>;
  readonly addHotel: (...rooms: readonly Room[]) => Promise<string>;
  readonly addCar: (units: number) => Promise<string>;
}

interface Room {
  readonly name: string;
  readonly units: number;
  readonly guests?: number;
  readonly price?: number;
}

/** High enough for every test that does not set limits. */
export const highLimits: BookingLimits = { holdsMax: 1000, daysMax: 90, unitsMax: 1000 };

export async function openWorld(url: string, limits: BookingLimits = highLimits): Promise<World> {
  const database = await openDatabase({ url });
  const time = { nowMs: startMs };
  const clock = () => time.nowMs;
  return {
    time,
    database,
    hotels: createBookingStore<HotelBookingRow>({ database, kind: hotelKind, clock, limits }),
    cars: createBookingStore<CarBookingRow>({ database, kind: carKind, clock, limits }),
    async addHotel(...rooms) {
      const id = randomUUID();
      await database.kysely.insertInto('hotels').values({ id, name: 'Astoria', city: 'Bern' }).execute();
      for (const { name, units, guests = 2, price = 10_000 } of rooms) {
        const row = { id: randomUUID(), hotel_id: id, name, units, guests, price, currency: 'EUR' };
        await database.kysely.insertInto('room_types').values(row).execute();
      }
      return id;
    },
    async addCar(units) {
      const row = { id: randomUUID(), model: 'Polo', class: 'economy', city: 'Bern', units };
      await database.kysely.insertInto('cars').values(row).execute();
      return row.id;
    },
  };
}

export type NewRequest = Omit<BookingRequest, 'nowMs'>;

export function requestFor(resourceId: string, more: Partial<BookingRequest> = {}): NewRequest {
  return { user: 'ann', resourceId, offerName: undefined, stay: nights(10), guests: 1, hold: false, ...more };
}

/** Books without an idempotency key. */
export async function createBooking<Row extends BookingRow>(
  store: BookingStore<Row>,
  request: NewRequest,
): Promise<Row> {
  const { response } = await store.create(request, undefined, (row) => ({ ...row }));
  return response;
}

/** Changes a booking without an idempotency key. `requireCurrent` throws if the client does not know the version. */
export async function changeStatus<Row extends BookingRow>(
  store: BookingStore<Row>,
  id: string,
  status: 'confirmed' | 'cancelled',
  requireCurrent: (row: Row) => void = () => {},
): Promise<Row> {
  const { response } = await store.change({ id, status, requireCurrent }, undefined, (row) => ({ ...row }));
  return response;
}
