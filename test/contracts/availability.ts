/** Compares availability with a simple model that counts the bookings of each night. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { hasMatchingOffer, prepareAvailability } from '../../src/travel/booking/availability.ts';
import { withAvailability } from '../../src/travel/booking/inventory.ts';
import { type Stay, timeText } from '../../src/travel/booking/stay.ts';
import { hotelKind } from '../../src/travel/hotel/hotel.ts';
import {
  assertProblem,
  changeStatus,
  createBooking,
  nights,
  requestFor,
  startMs,
  type World,
} from './booking-world.ts';

/** Random actions of a client at one hotel. */
const booking = fc.record({
  kind: fc.constant('book' as const),
  ahead: fc.nat(9),
  length: fc.integer({ min: 1, max: 4 }),
  room: fc.constantFrom('a', 'b', undefined),
  hold: fc.boolean(),
});
const change = fc.record({ kind: fc.constantFrom('cancelled' as const, 'confirmed' as const), which: fc.nat(20) });
const pause = fc.record({ kind: fc.constant('wait' as const), minutes: fc.nat(12) });
const steps = fc.array(fc.oneof(booking, change, pause), { maxLength: 25 });

type Step = Booking | Change | (typeof pause extends fc.Arbitrary<infer T> ? T : never);
type Booking = typeof booking extends fc.Arbitrary<infer T> ? T : never;
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;

interface ModelBooking {
  readonly id: string;
  readonly room: string;
  readonly stay: Stay;
  readonly expiresMs: number;
  status: string;
}

interface Model {
  readonly rooms: ReadonlyMap<string, number>;
  readonly bookings: ModelBooking[];
}

function occupiesRoom({ status, expiresMs }: ModelBooking, nowMs: number): boolean {
  return status === 'confirmed' || (status === 'pending' && expiresMs > nowMs);
}

function unitsLeft({ rooms, bookings }: Model, room: string, { firstDay, endDay }: Stay, nowMs: number): number {
  const taken: number[] = [];
  for (let day = firstDay; day < endDay; day += 1) {
    const overlapping = bookings.filter(({ stay }) => stay.firstDay <= day && day < stay.endDay);
    taken.push(overlapping.filter((one) => one.room === room && occupiesRoom(one, nowMs)).length);
  }
  return (rooms.get(room) ?? 0) - Math.max(...taken);
}

export function availabilityContract(worldOf: () => World): void {
  describe('availability', () => {
    it('matches a count of the bookings of each night, after random bookings, changes and pauses', async () => {
      await fc.assert(
        fc.asyncProperty(steps, fc.integer({ min: 1, max: 3 }), (drawn, units) => runSteps(worldOf(), drawn, units)),
        { numRuns: 25 },
      );
    });
  });
}

async function runSteps(world: World, drawn: readonly Step[], units: number): Promise<void> {
  world.time.nowMs = startMs;
  const hotelId = await world.addHotel({ name: 'a', units, price: 100 }, { name: 'b', units: 1, price: 200 });
  const model: Model = { rooms: new Map(Object.entries({ a: units, b: 1 })), bookings: [] };
  for (const step of drawn) {
    if (step.kind === 'wait') world.time.nowMs += step.minutes * 60_000;
    else if (step.kind === 'book') await bookBoth(world, model, hotelId, step);
    else await changeBoth(world, model, step);
  }
  for (const stay of [nights(0), nights(3, 2), nights(1, 8)]) await compare(world, model, hotelId, stay);
}

/** Requests a booking from the store, and compares the result with the model. */
async function bookBoth({ hotels, time }: World, model: Model, hotelId: string, drawn: Booking): Promise<void> {
  const stay = nights(drawn.ahead, drawn.length);
  const rooms = drawn.room === undefined ? ['a', 'b'] : [drawn.room];
  const room = rooms.find((name) => unitsLeft(model, name, stay, time.nowMs) > 0);
  const created = createBooking(hotels, requestFor(hotelId, { offerName: drawn.room, stay, hold: drawn.hold }));
  if (room === undefined) {
    await assertProblem(created, 'sold-out');
    return;
  }
  const { id, room_type, status } = await created;
  assert.equal(room_type, room);
  model.bookings.push({ id, room, stay, status, expiresMs: time.nowMs + 15 * 60_000 });
}

/** Changes a booking in the store and in the model. */
async function changeBoth({ hotels, time }: World, { bookings }: Model, { kind, which }: Change): Promise<void> {
  const target = bookings[which % Math.max(1, bookings.length)];
  if (target === undefined) return;
  const isAllowed = kind === 'cancelled' || occupiesRoom(target, time.nowMs);
  const done = changeStatus(hotels, target.id, kind);
  if (isAllowed) target.status = (await done).status;
  else await assertProblem(done, 'forbidden-transition');
}

async function compare({ database, time }: World, model: Model, hotelId: string, stay: Stay): Promise<void> {
  const { kysely } = database;
  const statements = prepareAvailability(hotelKind);
  const [shown] = await withAvailability(kysely, statements, [{ id: hotelId }], { stay, guests: 1 }, time.nowMs);
  const counts = ['a', 'b'].map((room) => [room, unitsLeft(model, room, stay, time.nowMs)] as const);
  const expected = counts.filter(([, units]) => units > 0);
  assert.deepEqual(
    shown?.available?.map(({ offer, units }) => [offer.name, units]),
    expected,
  );
  const free = hasMatchingOffer(hotelKind, 1, { ...stay, now: timeText(time.nowMs) });
  const listed = await kysely.selectFrom('hotels').select('id').where('id', '=', hotelId).where(free).execute();
  assert.equal(listed.length, expected.length > 0 ? 1 : 0);
}
