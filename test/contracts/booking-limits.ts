/** The contract of booking limits per user on every database, including concurrent requests to two servers. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { ScratchDatabase } from '../support/databases.ts';
import {
  assertProblem,
  changeStatus,
  createBooking,
  nights,
  openWorld,
  requestFor,
  startMs,
  type World,
} from './booking-world.ts';

export function bookingLimitsContract(create: () => Promise<ScratchDatabase>): void {
  const limits = { holdsMax: 3, daysMax: 90, unitsMax: 5 };
  let scratch: ScratchDatabase;
  let worlds: readonly [World, World];
  let world: World;
  let hotelId: string;

  before(async () => {
    scratch = await create();
    worlds = [await openWorld(scratch.url, limits), await openWorld(scratch.url, limits)];
    world = worlds[0];
  });
  beforeEach(async () => {
    hotelId = await world.addHotel({ name: 'double', units: 64 });
    for (const { time } of worlds) time.nowMs = startMs;
  });
  after(async () => {
    for (const { database } of worlds) await database.close();
    await scratch.remove();
  });

  const hold = (user: string, store = world.hotels) => createBooking(store, requestFor(hotelId, { user, hold: true }));
  const countFulfilled = (outcomes: readonly PromiseSettledResult<unknown>[]) =>
    outcomes.filter(({ status }) => status === 'fulfilled').length;
  const slugsOf = (outcomes: readonly PromiseSettledResult<unknown>[]) => [
    ...new Set(outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason.slug] : []))),
  ];

  it('limits the holds when 24 requests arrive concurrently', async () => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 24 }, (_, client) => hold('holder', worlds[client % 2]?.hotels)),
    );
    assert.equal(countFulfilled(outcomes), 3);
    assert.deepEqual(slugsOf(outcomes), ['too-many-holds']);
    await hold('another user');
  });

  it('allows another hold after one is confirmed, cancelled or expired, and says when one expires', async () => {
    const user = 'patient';
    const held = [await hold(user), await hold(user), await hold(user)];
    const { detail, headers } = await assertProblem(hold(user), 'too-many-holds');
    assert.match(detail ?? '', /the limit is 3\. Confirm or cancel one, or wait until 2030-01-01T09:45:00/);
    assert.equal(headers?.['Retry-After'], '900');
    for (const [index, status] of (['confirmed', 'cancelled'] as const).entries()) {
      await changeStatus(world.hotels, held[index]?.id ?? '', status);
      await hold(user);
      await assertProblem(hold(user), 'too-many-holds');
    }
    world.time.nowMs += 900_000;
    await hold(user);
  });

  it('counts a hold once when its request is repeated', async () => {
    const user = 'repeating';
    const ask = (key: string) =>
      world.hotels.create(
        requestFor(hotelId, { user, hold: true }),
        { scope: [user], key, fingerprint: 'one' },
        ({ id }) => ({ id }),
      );
    const keys = [randomUUID(), randomUUID(), randomUUID()];
    for (const key of [...keys, ...keys]) await ask(key);
    await assertProblem(ask(randomUUID()), 'too-many-holds');
    assert.equal((await ask(keys[0] ?? '')).isReplayed, true);
  });

  it('limits the rooms per night over all hotels when 24 requests arrive concurrently', async () => {
    const otherHotel = await world.addHotel({ name: 'double', units: 64 });
    const book = (store: World['hotels'], id: string, stay = nights(10)) =>
      createBooking(store, requestFor(id, { user: 'greedy', stay }));
    const outcomes = await Promise.allSettled(
      Array.from({ length: 24 }, (_, client) =>
        book(worlds[client % 2 === 0 ? 0 : 1].hotels, client % 3 === 0 ? otherHotel : hotelId),
      ),
    );
    assert.equal(countFulfilled(outcomes), 5);
    assert.deepEqual(slugsOf(outcomes), ['too-many-units']);
    const { detail } = await assertProblem(book(world.hotels, hotelId, nights(8, 3)), 'too-many-units');
    assert.match(detail ?? '', /booked 5 rooms for the night of 2030-01-11; the limit is 5/);
    await book(world.hotels, hotelId, nights(8, 2));
    await book(world.hotels, hotelId, nights(11));
  });

  it('does not count cancelled bookings', async () => {
    const book = () => createBooking(world.hotels, requestFor(hotelId, { user: 'hesitant' }));
    for (let room = 1; room <= 2 * limits.unitsMax; room += 1) {
      const { id } = await book();
      await changeStatus(world.hotels, id, 'cancelled');
    }
    for (let room = 1; room <= limits.unitsMax; room += 1) await book();
    await assertProblem(book(), 'too-many-units');
  });

  it('counts the longest stay up to its last night', async () => {
    const book = (stay: ReturnType<typeof nights>) =>
      createBooking(world.hotels, requestFor(hotelId, { user: 'long', stay }));
    for (let room = 1; room <= limits.unitsMax; room += 1) await book(nights(10, limits.daysMax));
    await assertProblem(book(nights(10 + limits.daysMax - 1)), 'too-many-units');
    await book(nights(10 + limits.daysMax));
  });
}
