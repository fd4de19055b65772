/** The contract of the booking store on every database. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { Problem, problem } from '#http';
import type { ListQuery } from '#query';
import type { IdempotentRequest } from '../../src/travel/booking/idempotent-requests.ts';
import { dayMs, stayOf } from '../../src/travel/booking/stay.ts';
import { createBookingStore } from '../../src/travel/booking/store.ts';
import { carKind } from '../../src/travel/car/car.ts';
import type { Database } from '../../src/travel/storage/database.ts';
import type { CarBookingRow, HotelBookingRow } from '../../src/travel/storage/schema.ts';
import type { ScratchDatabase } from '../support/databases.ts';
import { eventually } from '../support/waiting.ts';
import { availabilityContract } from './availability.ts';
import {
  assertProblem,
  changeStatus,
  createBooking,
  type NewRequest,
  nights,
  openWorld,
  requestFor,
  startMs,
  today,
  type World,
} from './booking-world.ts';

export function bookingsContract(create: () => Promise<ScratchDatabase>): void {
  let scratch: ScratchDatabase;
  let world: World;

  before(async () => {
    scratch = await create();
    world = await openWorld(scratch.url);
  });
  beforeEach(() => {
    world.time.nowMs = startMs;
  });
  after(async () => {
    await world.database.close();
    await scratch.remove();
  });

  describe('create', () => {
    it('stores the booking at its current price and shows it only to its owner', async () => {
      const hotelId = await world.addHotel({ name: 'double', units: 1, price: 12_000 });
      const { id, reference, ...row } = await createBooking(
        world.hotels,
        requestFor(hotelId, { stay: nights(10, 3), guests: 2 }),
      );
      await world.database.kysely.updateTable('room_types').set({ price: 1 }).where('hotel_id', '=', hotelId).execute();
      assert.deepEqual(row, {
        hotel_id: hotelId,
        room_type: 'double',
        guests: 2,
        user: 'ann',
        status: 'confirmed',
        version: 1,
        created_at: '2030-01-01T09:30:00.000Z',
        starts_at: '2030-01-11',
        ends_at: '2030-01-14',
        price: 36_000,
        currency: 'EUR',
        policy: JSON.stringify([
          { before: '2030-01-09T00:00:00.000Z', refund: 36_000 },
          { before: '2030-01-11T00:00:00.000Z', refund: 18_000 },
        ]),
        expires_at: null,
        refund: null,
      });
      assert.deepEqual({ ...(await world.hotels.readOwned('ann', id)) }, { id, reference, ...row });
      assert.equal(await world.hotels.readOwned('bob', id), undefined);
    });

    it('books the cheapest free room that is large enough', async () => {
      const hotelId = await world.addHotel(
        { name: 'suite', units: 1, guests: 4, price: 30_000 },
        { name: 'single', units: 1, guests: 1, price: 5_000 },
        { name: 'double', units: 1, guests: 2, price: 8_000 },
      );
      const book = async (guests: number) =>
        (await createBooking(world.hotels, requestFor(hotelId, { guests }))).room_type;
      assert.deepEqual([await book(1), await book(1), await book(2)], ['single', 'double', 'suite']);
      await assertProblem(book(1), 'sold-out');
    });

    it('books the next free night in the cheapest free room if no stay is given', async () => {
      const hotelId = await world.addHotel({ name: 'a', units: 1, price: 200 }, { name: 'b', units: 1, price: 100 });
      await createBooking(world.hotels, requestFor(hotelId, { offerName: 'b', stay: nights(1, 40) }));
      const next = async () => {
        const { room_type, starts_at } = await createBooking(world.hotels, requestFor(hotelId, { stay: undefined }));
        return `${room_type} ${starts_at}`;
      };
      const found = [await next(), await next(), await next()];
      assert.deepEqual(found, ['b 2030-01-01', 'a 2030-01-01', 'a 2030-01-02']);
    });

    it('books a car from tomorrow if no stay is given, because today has already begun', async () => {
      const carId = await world.addCar(1);
      const { starts_at, ends_at } = await createBooking(world.cars, requestFor(carId, { stay: undefined }));
      assert.deepEqual([starts_at, ends_at], ['2030-01-02T00:00:00.000Z', '2030-01-03T00:00:00.000Z']);
    });

    it('reserves a car for every day that the stay touches', async () => {
      const carId = await world.addCar(1);
      const at = (day: number, hour: number) => (today + day) * dayMs + hour * 3_600_000;
      const { price } = await createBooking(world.cars, requestFor(carId, { stay: stayOf(at(5, 23), at(7, 1)) }));
      assert.equal(price, 3 * 5_000);
      for (const stay of [stayOf(at(5, 1), at(5, 2)), stayOf(at(6, 0), at(7, 0)), stayOf(at(7, 22), at(8, 1))])
        await assertProblem(createBooking(world.cars, requestFor(carId, { stay })), 'sold-out');
      await createBooking(world.cars, requestFor(carId, { stay: stayOf(at(4, 0), at(5, 0)) }));
    });

    it('looks for a free night at most one year ahead', async () => {
      const hotelId = await world.addHotel({ name: 'double', units: 1 });
      for (let ahead = 0; ahead < 365; ahead += 73)
        await createBooking(world.hotels, requestFor(hotelId, { stay: nights(ahead, 73) }));
      const { extension } = await assertProblem(
        createBooking(world.hotels, requestFor(hotelId, { stay: undefined })),
        'sold-out',
      );
      assert.deepEqual(extension, { alternatives: [] });
    });
  });

  it('offers at most five alternatives if sold out, other rooms first, then later days, and writes nothing', async () => {
    const suite = { name: 'suite', units: 1, price: 30_000 };
    const hotelId = await world.addHotel({ name: 'double', units: 1, guests: 3 }, { ...suite, guests: 3 });
    await createBooking(world.hotels, requestFor(hotelId, { offerName: 'double', stay: nights(11, 2) }));
    const request = requestFor(hotelId, { offerName: 'double', stay: nights(10, 2), guests: 3 });
    const { extension } = await assertProblem(createBooking(world.hotels, request), 'sold-out');
    const alternative = (room_type: string, day: number, amount: string) => ({
      room_type,
      check_in: `2030-01-${day}`,
      check_out: `2030-01-${day + 2}`,
      price: { amount, currency: 'EUR' },
    });
    assert.deepEqual(extension?.['alternatives'], [
      alternative('suite', 11, '600.00'),
      ...[14, 15, 16, 17].map((day) => alternative('double', day, '200.00')),
    ]);
    assert.equal(await countBookings(world.database, hotelId), 1);
  });

  it('offers no alternatives beyond the last day that can be booked', async () => {
    const hotelId = await world.addHotel({ name: 'double', units: 1 });
    const lastMs = Date.parse('2199-12-31');
    const stay = stayOf(lastMs - dayMs, lastMs);
    await createBooking(world.hotels, requestFor(hotelId, { stay }));
    const { extension } = await assertProblem(createBooking(world.hotels, requestFor(hotelId, { stay })), 'sold-out');
    const alternatives = extension?.['alternatives'] as readonly { readonly check_out: string }[];
    assert.deepEqual(
      alternatives.map(({ check_out }) => check_out),
      ['2200-01-01'],
    );
  });

  describe('64 concurrent requests', () => {
    it('book all units for overlapping stays', async () => {
      const carId = await world.addCar(5);
      const races = Array.from({ length: 64 }, (_, client) =>
        createBooking(world.cars, requestFor(carId, { stay: nights(10 + (client % 3), 3) })),
      );
      await Promise.allSettled(races);
      await assertProblem(createBooking(world.cars, requestFor(carId, { stay: nights(12) })), 'sold-out');
      const { rows } = await sql<{ taken: number | string }>`select count(*) as taken from car_days
        where offer_id = ${carId} and day = ${today + 12}`.execute(world.database.kysely);
      assert.equal(Number(rows[0]?.taken), 5);
    });

    it('run only once each, because rejected requests have written nothing to roll back', async () => {
      let runs = 0;
      const transact: Database['transact'] = (work) =>
        world.database.transact((transaction) => {
          runs += 1;
          return work(transaction);
        });
      const limits = { holdsMax: 1, daysMax: 90, unitsMax: 2 };
      const options = { database: { ...world.database, transact }, clock: () => startMs, limits };
      const store = createBookingStore<CarBookingRow>({ ...options, kind: carKind });
      const [carId, lastCarId] = [await world.addCar(64), await world.addCar(1)];
      const races = Array.from({ length: 64 }, (_, client) => {
        const more = { user: `racer ${client % 8}`, hold: client % 2 === 0 };
        return createBooking(store, requestFor(client % 8 === 7 ? lastCarId : carId, more));
      });
      const outcomes = await Promise.allSettled(races);
      const slugs = new Set(outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason.slug] : [])));
      assert.deepEqual([...slugs].sort(), ['sold-out', 'too-many-holds', 'too-many-units']);
      assert.equal(runs, 64);
    });
  });

  availabilityContract(() => world);
  changeContract(() => world);
  retriesContract(
    () => world,
    () => scratch.url,
  );
  constraintsContract(() => world);
}

function changeContract(worldOf: () => World): void {
  describe('change', () => {
    const hold = async () => {
      const hotelId = await worldOf().addHotel({ name: 'double', units: 1 });
      return createBooking(worldOf().hotels, requestFor(hotelId, { hold: true }));
    };
    const change = (id: string, status: 'confirmed' | 'cancelled', seen?: number) =>
      changeStatus(worldOf().hotels, id, status, ({ version }) => {
        if (seen !== undefined && version !== seen) throw problem('precondition-failed');
      });
    const wait = (minutes: number) => {
      worldOf().time.nowMs += minutes * 60_000;
    };
    const read = (id: string) => worldOf().hotels.readOwned('ann', id);

    it('changes only the version that the client has seen: of different concurrent changes, one is made', async () => {
      const { id } = await hold();
      const statuses = (['confirmed', 'cancelled'] as const).flatMap((status) =>
        Array.from({ length: 8 }, () => status),
      );
      const outcomes = await Promise.allSettled(statuses.map((status) => change(id, status, 1)));
      const made = await read(id);
      assert.equal(made?.version, 2);
      for (const [index, outcome] of outcomes.entries()) {
        if (statuses[index] === made?.status) assert.equal(outcome.status, 'fulfilled');
        else assert.equal(outcome.status === 'rejected' && outcome.reason.slug, 'precondition-failed');
      }
    });

    it('refunds nothing for a cancelled hold, because nothing is paid before a booking is confirmed', async () => {
      const [first, second] = [await hold(), await hold()];
      assert.equal((await change(first.id, 'cancelled')).refund, 0);
      await change(second.id, 'confirmed');
      assert.equal((await change(second.id, 'cancelled')).refund, second.price);
    });

    it('treats an expired hold as cancelled, also in lists, and frees its units', async () => {
      const { hotels } = worldOf();
      const { id, hotel_id } = await hold();
      const pending: ListQuery<HotelBookingRow> = {
        offset: 0,
        limit: 1,
        fields: undefined,
        search: undefined,
        sort: [{ column: 'id', descending: false }],
        filters: [
          { column: 'status', value: 'pending' },
          { column: 'id', value: id },
        ],
      };
      const listed = async () => (await hotels.readPage('ann', pending)).items.length;
      wait(14.99);
      assert.deepEqual([(await read(id))?.status, await listed()], ['pending', 1]);
      await assertProblem(createBooking(hotels, requestFor(hotel_id)), 'sold-out');
      wait(0.01);
      const expired = { ...(await read(id)) };
      assert.deepEqual([expired.status, expired.version, expired.refund], ['cancelled', 2, 0]);
      assert.equal(await listed(), 0);
      await assertProblem(change(id, 'confirmed'), 'forbidden-transition');
      assert.deepEqual({ ...(await change(id, 'cancelled', 1)) }, expired);
      await createBooking(hotels, requestFor(hotel_id));
      assert.deepEqual({ ...(await read(id)) }, expired, 'reads the same after the expiry has been written');
    });

    it('keeps the units if another process, whose clock is behind, confirms a hold as it expires', async () => {
      const { database, hotels } = worldOf();
      const { id, hotel_id } = await hold();
      wait(15);
      const confirmed = { status: 'confirmed', expires_at: null } as const;
      await database.kysely.updateTable('hotel_bookings').set(confirmed).where('id', '=', id).execute();
      await assertProblem(createBooking(hotels, requestFor(hotel_id)), 'sold-out');
      assert.equal((await read(id))?.status, 'confirmed');
    });
  });
}

function retriesContract(worldOf: () => World, urlOf: () => string): void {
  describe('a request with an idempotency key', () => {
    const newRequest = (): IdempotentRequest => ({
      scope: ['ann', 'POST', '/v1/hotels/bookings/'],
      key: randomUUID(),
      fingerprint: 'one',
    });
    const ask = async (
      hotelId: string,
      idempotent: IdempotentRequest,
      more: Partial<NewRequest> = {},
      { hotels } = worldOf(),
    ) => {
      const { response, isReplayed } = await hotels.create(requestFor(hotelId, more), idempotent, ({ id }) => ({ id }));
      return { id: response.id, isReplayed };
    };

    it('counts as a new request for another user or another URL', async () => {
      const hotelId = await worldOf().addHotel({ name: 'double', units: 5 });
      const idempotent = newRequest();
      const scopes = [idempotent.scope, ['bob', ...idempotent.scope.slice(1)], ['ann', 'POST', '/v1/cars/bookings/']];
      for (const scope of scopes) assert.equal((await ask(hotelId, { ...idempotent, scope })).isReplayed, false);
    });

    it('books once if it arrives 32 times concurrently, at two servers', async () => {
      const hotelId = await worldOf().addHotel({ name: 'double', units: 32 });
      const other = await openWorld(urlOf());
      const idempotent = newRequest();
      const outcomes = await Promise.allSettled(
        Array.from({ length: 32 }, (_, client) => ask(hotelId, idempotent, {}, client % 2 === 0 ? worldOf() : other)),
      );
      await other.database.close();
      const succeeded = outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
      assert.equal(succeeded.filter(({ isReplayed }) => !isReplayed).length, 1);
      assert.equal(new Set(succeeded.map(({ id }) => id)).size, 1);
      for (const one of outcomes) if (one.status === 'rejected') assert.equal(one.reason.slug, 'idempotency-running');
      assert.ok(succeeded.length < outcomes.length, 'no request was rejected because another was running');
      assert.equal(await countBookings(worldOf().database, hotelId), 1);
      assert.equal((await ask(hotelId, idempotent)).isReplayed, true);
    });

    it('counts as a new request after a day, and new requests delete old responses', async () => {
      const { addHotel, time, database } = worldOf();
      const hotelId = await addHotel({ name: 'double', units: 99 });
      const idempotent = newRequest();
      const { id } = await ask(hotelId, idempotent);
      for (let count = 0; count < 30; count += 1) await ask(hotelId, newRequest());
      time.nowMs += dayMs - 1;
      assert.equal((await ask(hotelId, idempotent)).id, id);
      time.nowMs += 1;
      assert.notEqual((await ask(hotelId, idempotent)).id, id);
      for (let count = 0; count < 40; count += 1) await ask(hotelId, newRequest(), { stay: nights(20 + count) });
      const cutoff = new Date(time.nowMs - dayMs).toISOString();
      const old = database.kysely.selectFrom('answers').select('id').where('created_at', '<=', cutoff);
      assert.deepEqual(await old.execute(), []);
    });
  });
}

function constraintsContract(worldOf: () => World): void {
  describe('database constraints', () => {
    const rejected = (insertion: Promise<unknown>) => assert.rejects(insertion, (error) => !(error instanceof Problem));

    /** Books a room in a hotel with `units` rooms. `take` inserts a row for another one in the same night. */
    async function book(units: number) {
      const { addHotel, database, hotels } = worldOf();
      const booking = await createBooking(hotels, requestFor(await addHotel({ name: 'double', units })));
      const taken = database.kysely.selectFrom('hotel_nights').selectAll().where('booking_id', '=', booking.id);
      const row = await taken.executeTakeFirstOrThrow();
      const take = (more: Partial<typeof row>) =>
        database.kysely
          .insertInto('hotel_nights')
          .values({ ...row, ...more })
          .execute();
      return { row, take };
    }

    it('reject a room that is taken in that night, and accept a free one', async () => {
      const { take } = await book(2);
      await rejected(take({ unit: 1 }));
      await take({ unit: 2 });
    });

    it('reject more rooms than the hotel has', async () => {
      const { take } = await book(1);
      await rejected(take({ unit: 2 }));
      await rejected(take({ unit: 2, units: 2 }));
    });

    it('reject the removal of a room that is taken', async () => {
      const { row } = await book(2);
      const { kysely } = worldOf().database;
      const setUnits = (units: number) =>
        kysely.updateTable('room_types').set({ units }).where('id', '=', row.offer_id).execute();
      await setUnits(1);
      await rejected(setUnits(0));
      await setUnits(3);
    });

    it('let bookings wait, with one connection, for an operator who is adding rooms', async () => {
      const { addHotel, database, hotels } = worldOf();
      const hotelId = await addHotel({ name: 'double', units: 1 });
      const { bookings } = await database.kysely.transaction().execute(async (transaction) => {
        await transaction.updateTable('room_types').set({ units: 20 }).where('hotel_id', '=', hotelId).execute();
        const users = Array.from({ length: 20 }, (_, client) => `guest ${client % 15}`);
        const waiting = users.map((user) => createBooking(hotels, requestFor(hotelId, { user })));
        if (database.dialect === 'postgres') await eventually(() => assertLockAwaited(database));
        return { bookings: waiting };
      });
      for (const { room_type } of await Promise.all(bookings)) assert.equal(room_type, 'double');
    });
  });
}

async function assertLockAwaited({ kysely }: Database): Promise<void> {
  const awaited = await sql`select 1 from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`.execute(kysely);
  assert.equal(awaited.rows.length, 1);
}

async function countBookings({ kysely }: Database, hotelId: string): Promise<number> {
  return (await kysely.selectFrom('hotel_bookings').select('id').where('hotel_id', '=', hotelId).execute()).length;
}
