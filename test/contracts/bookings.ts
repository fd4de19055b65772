/** What the store of bookings promises on every database. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { Problem, problem } from '#http';
import type { BookingStatus, Database } from '#storage';
import type { IdempotentRequest } from '../../src/services/booking/idempotent-requests.ts';
import { dayMs, stayOf } from '../../src/services/booking/stay.ts';
import type { ScratchDatabase } from '../support/databases.ts';
import { availabilityContract } from './availability.ts';
import {
  make,
  type NewRequest,
  nights,
  openWorld,
  refuse,
  requestFor,
  startMs,
  today,
  type World,
} from './booking-world.ts';

export function bookingsContract(create: () => Promise<ScratchDatabase>): void {
  let place: ScratchDatabase;
  let world: World;

  before(async () => {
    place = await create();
    world = await openWorld(place.url);
  });
  beforeEach(() => {
    world.time.nowMs = startMs;
  });
  after(async () => {
    await world.database.close();
    await place.remove();
  });

  describe('a booking', () => {
    it('keeps what was booked, at the price of that time', async () => {
      const hotelId = await world.addHotel({ name: 'double', units: 1, price: 12_000 });
      const { id, reference, ...row } = await make(
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

    it('takes the cheapest room that is free and large enough', async () => {
      const hotelId = await world.addHotel(
        { name: 'suite', units: 1, guests: 4, price: 30_000 },
        { name: 'single', units: 1, guests: 1, price: 5_000 },
        { name: 'double', units: 1, guests: 2, price: 8_000 },
      );
      const book = async (guests: number) => (await make(world.hotels, requestFor(hotelId, { guests }))).room_type;
      assert.deepEqual([await book(1), await book(1), await book(2)], ['single', 'double', 'suite']);
      await refuse(book(1), 'sold-out');
    });

    it('is refused for an unknown hotel, an unknown room type and more guests than a room sleeps', async () => {
      const hotelId = await world.addHotel({ name: 'double', units: 1 });
      const pointerOf = async (request: NewRequest) =>
        (await refuse(make(world.hotels, request), 'bad-body')).errors?.map(({ pointer }) => pointer);
      assert.deepEqual(await pointerOf(requestFor(randomUUID())), ['/hotel_id']);
      assert.deepEqual(await pointerOf(requestFor(hotelId, { offerName: 'barn' })), ['/room_type']);
      assert.deepEqual(await pointerOf(requestFor(hotelId, { guests: 3 })), ['/guests']);
    });

    it('without a stay is for the next free night, in the cheapest room that is free then', async () => {
      const hotelId = await world.addHotel({ name: 'a', units: 1, price: 200 }, { name: 'b', units: 1, price: 100 });
      await make(world.hotels, requestFor(hotelId, { offerName: 'b', stay: nights(1, 40) }));
      const next = async () => {
        const { room_type, starts_at } = await make(world.hotels, requestFor(hotelId, { stay: undefined }));
        return `${room_type} ${starts_at}`;
      };
      const found = [await next(), await next(), await next()];
      assert.deepEqual(found, ['b 2030-01-01', 'a 2030-01-01', 'a 2030-01-02']);
    });

    it('of a car without a stay is for tomorrow, since today has begun', async () => {
      const carId = await world.addCar(1);
      const { starts_at, ends_at } = await make(world.cars, requestFor(carId, { stay: undefined }));
      assert.deepEqual([starts_at, ends_at], ['2030-01-02T00:00:00.000Z', '2030-01-03T00:00:00.000Z']);
    });

    it('of a car takes each day that it touches', async () => {
      const carId = await world.addCar(1);
      const at = (day: number, hour: number) => (today + day) * dayMs + hour * 3_600_000;
      const { price } = await make(world.cars, requestFor(carId, { stay: stayOf(at(5, 23), at(7, 1)) }));
      assert.equal(price, 3 * 5_000);
      for (const stay of [stayOf(at(5, 1), at(5, 2)), stayOf(at(6, 0), at(7, 0)), stayOf(at(7, 22), at(8, 1))])
        await refuse(make(world.cars, requestFor(carId, { stay })), 'sold-out');
      await make(world.cars, requestFor(carId, { stay: stayOf(at(4, 0), at(5, 0)) }));
    });

    it('looks a year ahead and no further', async () => {
      const hotelId = await world.addHotel({ name: 'double', units: 1 });
      for (let ahead = 0; ahead < 365; ahead += 73)
        await make(world.hotels, requestFor(hotelId, { stay: nights(ahead, 73) }));
      const { extension } = await refuse(make(world.hotels, requestFor(hotelId, { stay: undefined })), 'sold-out');
      assert.deepEqual(extension, { alternatives: [] });
    });
  });

  describe('a sold-out stay', () => {
    it('comes with other rooms for the days, then with later days, five at most', async () => {
      const hotelId = await world.addHotel({ name: 'double', units: 1 }, { name: 'suite', units: 1, price: 30_000 });
      await make(world.hotels, requestFor(hotelId, { offerName: 'double', stay: nights(11, 2) }));
      const request = requestFor(hotelId, { offerName: 'double', stay: nights(10, 2) });
      const { extension } = await refuse(make(world.hotels, request), 'sold-out');
      const later = (day: number) => ({
        room_type: 'double',
        check_in: `2030-01-${day}`,
        check_out: `2030-01-${day + 2}`,
        price: { amount: '200.00', currency: 'EUR' },
      });
      const suite = { room_type: 'suite', check_in: '2030-01-11', check_out: '2030-01-13' };
      assert.deepEqual(extension?.['alternatives'], [
        { ...suite, price: { amount: '600.00', currency: 'EUR' } },
        ...[14, 15, 16, 17].map(later),
      ]);
    });

    it('leaves nothing behind', async () => {
      const hotelId = await world.addHotel({ name: 'double', units: 1 });
      await make(world.hotels, requestFor(hotelId));
      await refuse(make(world.hotels, requestFor(hotelId)), 'sold-out');
      assert.equal(await countOf(world.database, 'hotel_bookings', hotelId), 1);
    });
  });

  describe('64 requests at once', () => {
    for (const length of [1, 5]) {
      it(`book the last room exactly once: ${length} nights`, async () => {
        const hotelId = await world.addHotel({ name: 'double', units: 3 });
        for (let sold = 0; sold < 2; sold += 1)
          await make(world.hotels, requestFor(hotelId, { stay: nights(10, length) }));
        const other = await openWorld(place.url);
        const races = Array.from({ length: 64 }, (_, client) => {
          const store = client % 2 === 0 ? world.hotels : other.hotels;
          return make(store, requestFor(hotelId, { user: `user-${client}`, stay: nights(10, length) }));
        });
        const outcomes = await Promise.allSettled(races);
        await other.database.close();
        assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
        const slugs = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason.slug ?? one.reason] : []));
        assert.deepEqual([...new Set(slugs)], ['sold-out']);
        assert.equal(await countOf(world.database, 'hotel_bookings', hotelId), 3);
      });
    }

    it('book all units when their days overlap', async () => {
      const carId = await world.addCar(5);
      const races = Array.from({ length: 64 }, (_, client) =>
        make(world.cars, requestFor(carId, { stay: nights(10 + (client % 3), 3) })),
      );
      await Promise.allSettled(races);
      await refuse(make(world.cars, requestFor(carId, { stay: nights(12) })), 'sold-out');
      const { rows } = await sql<{ taken: number | string }>`select count(*) as taken from car_days
        where offer_id = ${carId} and day = ${today + 12}`.execute(world.database.kysely);
      assert.equal(Number(rows[0]?.taken), 5);
    });
  });

  availabilityContract(() => world);
  lifeContract(() => world);
  retriesContract(
    () => world,
    () => place.url,
  );
  constraintsContract(() => world);
}

function lifeContract(worldOf: () => World): void {
  describe('the status of a booking', () => {
    const hold = async () => {
      const hotelId = await worldOf().addHotel({ name: 'double', units: 1 });
      return make(worldOf().hotels, requestFor(hotelId, { hold: true }));
    };
    const change = (id: string, status: BookingStatus, seen?: number) =>
      worldOf().hotels.change(id, status, ({ version }) => {
        if (seen !== undefined && version !== seen) throw problem('precondition-failed');
      });
    const wait = (minutes: number) => {
      worldOf().time.nowMs += minutes * 60_000;
    };
    const read = (id: string) => worldOf().hotels.readOwned('ann', id);

    it('goes from pending to confirmed to cancelled, with a new version each time', async () => {
      const { id, status, expires_at } = await hold();
      assert.deepEqual([status, expires_at], ['pending', '2030-01-01T09:45:00.000Z']);
      const confirmed = await change(id, 'confirmed', 1);
      assert.deepEqual([confirmed.status, confirmed.version, confirmed.expires_at], ['confirmed', 2, null]);
      const cancelled = await change(id, 'cancelled', 2);
      assert.deepEqual([cancelled.status, cancelled.version, cancelled.refund], ['cancelled', 3, 10_000]);
      assert.deepEqual({ ...(await read(id)) }, { ...cancelled });
    });

    it('stays cancelled: cancelling again changes nothing, whichever version the client knows', async () => {
      const { id } = await hold();
      const cancelled = await change(id, 'cancelled', 1);
      for (const version of [1, 2, undefined]) assert.deepEqual(await change(id, 'cancelled', version), cancelled);
    });

    it('refuses other transitions, and names those that are allowed', async () => {
      const { id } = await hold();
      await change(id, 'confirmed', 1);
      const { detail } = await refuse(change(id, 'confirmed', 2), 'forbidden-transition');
      assert.match(detail ?? '', /is confirmed and cannot become confirmed: it can become cancelled/);
      await change(id, 'cancelled', 2);
      await refuse(change(id, 'confirmed', 3), 'forbidden-transition');
    });

    it('changes only for a client that knows its version; of many at once, one changes it', async () => {
      const { id } = await hold();
      const races = Array.from({ length: 16 }, () => change(id, 'confirmed', 1));
      const outcomes = await Promise.allSettled(races);
      assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
      await refuse(change(id, 'cancelled', 1), 'precondition-failed');
    });

    it('releases its units when it is cancelled', async () => {
      const { hotels } = worldOf();
      const { id, hotel_id } = await hold();
      await refuse(make(hotels, requestFor(hotel_id)), 'sold-out');
      await change(id, 'cancelled');
      await make(hotels, requestFor(hotel_id));
    });

    it('lapses when its hold ends: its units are free, and it reads as cancelled', async () => {
      const { hotels } = worldOf();
      const { id, hotel_id } = await hold();
      wait(14.99);
      assert.equal((await read(id))?.status, 'pending');
      await refuse(make(hotels, requestFor(hotel_id)), 'sold-out');
      wait(0.01);
      const lapsed = { ...(await read(id)) };
      assert.deepEqual([lapsed.status, lapsed.version, lapsed.refund], ['cancelled', 2, 0]);
      await refuse(change(id, 'confirmed'), 'forbidden-transition');
      assert.deepEqual({ ...(await change(id, 'cancelled', 1)) }, lapsed);
      await make(hotels, requestFor(hotel_id));
      assert.deepEqual({ ...(await read(id)) }, lapsed, 'reads the same once the lapse is written');
    });

    it('does not lapse once it is confirmed', async () => {
      const { hotels } = worldOf();
      const { id, hotel_id } = await hold();
      await change(id, 'confirmed', 1);
      wait(16);
      assert.equal((await read(id))?.status, 'confirmed');
      await refuse(make(hotels, requestFor(hotel_id)), 'sold-out');
    });

    it('is listed with its status of now', async () => {
      const { hotels } = worldOf();
      const { id } = await hold();
      const listed = async () => {
        const rows = await hotels.ownedBy('ann').where('status', '=', 'pending').execute();
        return rows.some((row) => row.id === id);
      };
      assert.equal(await listed(), true);
      wait(15);
      assert.equal(await listed(), false);
    });

    for (const [days, refund] of [
      [7.6, 10_000],
      [7.7, 5_000],
      [9.6, 5_000],
      [9.7, 0],
    ] as const) {
      it(`gives ${refund} back when it is cancelled after ${days} days`, async () => {
        const { time } = worldOf();
        const { id } = await hold();
        await change(id, 'confirmed', 1);
        time.nowMs = startMs + days * dayMs;
        assert.equal((await change(id, 'cancelled', 2)).refund, refund);
      });
    }
  });
}

function retriesContract(worldOf: () => World, urlOf: () => string): void {
  describe('a repeated request', () => {
    const requestWith = (key: string, more: Partial<IdempotentRequest> = {}): IdempotentRequest => ({
      scope: ['ann', 'POST', '/v1/hotels/bookings/'],
      key,
      fingerprint: 'one',
      ...more,
    });
    const cancel = (id: string) => worldOf().hotels.change(id, 'cancelled', () => {});
    const ask = async (
      hotelId: string,
      asked: IdempotentRequest,
      more: Partial<NewRequest> = {},
      { hotels } = worldOf(),
    ) => {
      const { response, replayed } = await hotels.create(requestFor(hotelId, more), asked, ({ id }) => ({ id }));
      return { id: response.id, replayed };
    };

    it('gets the first response, even when the booking has changed or nothing is left', async () => {
      const hotelId = await worldOf().addHotel({ name: 'double', units: 1 });
      const asked = requestWith(randomUUID());
      const { id, replayed } = await ask(hotelId, asked);
      assert.equal(replayed, false);
      assert.deepEqual(await ask(hotelId, asked), { id, replayed: true });
      await cancel(id);
      assert.deepEqual(await ask(hotelId, asked), { id, replayed: true });
      assert.equal(await countOf(worldOf().database, 'hotel_bookings', hotelId), 1);
    });

    it('is refused when it differs from the first', async () => {
      const hotelId = await worldOf().addHotel({ name: 'double', units: 5 });
      const asked = requestWith(randomUUID());
      await ask(hotelId, asked);
      await refuse(ask(hotelId, { ...asked, fingerprint: 'two' }), 'idempotency-mismatch');
      assert.equal(await countOf(worldOf().database, 'hotel_bookings', hotelId), 1);
    });

    it('is a new request for another user or another URL', async () => {
      const hotelId = await worldOf().addHotel({ name: 'double', units: 5 });
      const asked = requestWith(randomUUID());
      const scopes = [asked.scope, ['bob', ...asked.scope.slice(1)], ['ann', 'POST', '/v1/cars/bookings/']];
      for (const scope of scopes) assert.equal((await ask(hotelId, { ...asked, scope })).replayed, false);
    });

    it('books once when it comes many times at once, to two servers', async () => {
      const hotelId = await worldOf().addHotel({ name: 'double', units: 32 });
      const other = await openWorld(urlOf());
      const asked = requestWith(randomUUID());
      const outcomes = await Promise.allSettled(
        Array.from({ length: 32 }, (_, client) => ask(hotelId, asked, {}, client % 2 === 0 ? worldOf() : other)),
      );
      await other.database.close();
      const made = outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
      assert.equal(made.filter(({ replayed }) => !replayed).length, 1);
      assert.equal(new Set(made.map(({ id }) => id)).size, 1);
      for (const one of outcomes) if (one.status === 'rejected') assert.equal(one.reason.slug, 'idempotency-running');
      assert.ok(
        outcomes.some(({ status }) => status === 'rejected'),
        'no request was refused because another was running',
      );
      assert.equal(await countOf(worldOf().database, 'hotel_bookings', hotelId), 1);
      assert.equal((await ask(hotelId, asked)).replayed, true);
    });

    it('is a new request when the first was refused', async () => {
      const hotelId = await worldOf().addHotel({ name: 'double', units: 1 });
      const { id } = await make(worldOf().hotels, requestFor(hotelId));
      const asked = requestWith(randomUUID());
      await refuse(ask(hotelId, asked), 'sold-out');
      await cancel(id);
      assert.equal((await ask(hotelId, asked)).replayed, false);
    });

    it('is a new request after a day, and older responses are deleted as new requests come', async () => {
      const { addHotel, time, database } = worldOf();
      const hotelId = await addHotel({ name: 'double', units: 99 });
      const asked = requestWith(randomUUID());
      const { id } = await ask(hotelId, asked);
      for (let count = 0; count < 30; count += 1) await ask(hotelId, requestWith(randomUUID()));
      time.nowMs += dayMs - 1;
      assert.equal((await ask(hotelId, asked)).id, id);
      time.nowMs += 1;
      assert.notEqual((await ask(hotelId, asked)).id, id);
      for (let count = 0; count < 40; count += 1)
        await ask(hotelId, requestWith(randomUUID()), { stay: nights(20 + count) });
      const cutoff = new Date(time.nowMs - dayMs).toISOString();
      const old = database.kysely.selectFrom('answers').select('id').where('created_at', '<=', cutoff);
      assert.deepEqual(await old.execute(), []);
    });
  });
}

function constraintsContract(worldOf: () => World): void {
  describe('the tables themselves', () => {
    const refused = (insertion: Promise<unknown>) => assert.rejects(insertion, (error) => !(error instanceof Problem));

    async function takeByHand(units: number, unit: number) {
      const { addHotel, database, hotels } = worldOf();
      const hotelId = await addHotel({ name: 'double', units });
      const booking = await make(hotels, requestFor(hotelId));
      const taken = database.kysely.selectFrom('hotel_nights').selectAll().where('booking_id', '=', booking.id);
      const row = await taken.executeTakeFirstOrThrow();
      return {
        row,
        take: (more: object = {}) =>
          database.kysely
            .insertInto('hotel_nights')
            .values({ ...row, unit, ...more })
            .execute(),
      };
    }

    it('refuse one room twice in one night', async () => {
      const { take } = await takeByHand(2, 1);
      await refused(take());
    });

    it('refuse more rooms than there are', async () => {
      const { take } = await takeByHand(1, 2);
      await refused(take());
      await refused(take({ units: 2 }));
    });

    it('accept a room that is free', async () => {
      const { take } = await takeByHand(2, 2);
      await take();
    });

    it('refuse to remove a room that is taken', async () => {
      const { row } = await takeByHand(2, 1);
      const { kysely } = worldOf().database;
      const setUnits = (units: number) =>
        kysely.updateTable('room_types').set({ units }).where('id', '=', row.offer_id).execute();
      await setUnits(1);
      await refused(setUnits(0));
      await setUnits(3);
    });
  });
}

async function countOf(database: Database, table: 'hotel_bookings', hotelId: string): Promise<number> {
  const rows = await database.kysely.selectFrom(table).select('id').where('hotel_id', '=', hotelId).execute();
  return rows.length;
}
