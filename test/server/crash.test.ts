/** kill -9 in the middle of a stream of bookings: what was acknowledged is there, nothing is there twice, nothing is half. */
import assert from 'node:assert/strict';
import { describeOnDatabases, type ScratchDatabase } from '../support/databases.ts';
import type { Server } from '../support/programs/frontdesk-process.ts';
import { type BookingStore, createBookingStore } from './booking-store.ts';
import { leftInNight, listBookings, listRoomTypes, startHotels } from './hotel-client.ts';

/** A server is killed so many times; TEST_CRASH_ROUNDS asks for more. */
const rounds = Number(process.env['TEST_CRASH_ROUNDS'] ?? 1);
const clients = 8;

describeOnDatabases('kill -9 in the middle of a stream of bookings', (create) => {
  let database: ScratchDatabase;
  let server: Server;
  let store: BookingStore;

  before(async () => {
    database = await create();
    server = await startHotels(database.url);
    store = createBookingStore(await listRoomTypes(server));
  });

  after(async () => {
    await server.stop();
    await database.remove();
  });

  it(`loses, doubles and halves nothing, ${rounds} times`, async function () {
    this.timeout(rounds * 20_000);
    for (let round = 0; round < rounds; round += 1) {
      await killInTheMiddle(server, store, 20 + Math.floor(Math.random() * 150));
      server = await startHotels(database.url);
      await store.retry(server);
      await checkBookings(server, store);
      await checkNights(server, store);
    }
  });
});

/** Several clients order without a pause; after so many answers the server is killed in the middle of its work. */
async function killInTheMiddle(server: Server, store: BookingStore, answersMax: number): Promise<void> {
  let answers = 0;
  async function orderUntilItBreaks(user: string): Promise<void> {
    while (await store.order(server, user)) {
      answers += 1;
      if (answers === answersMax) server.signal('SIGKILL');
    }
  }
  await Promise.all(Array.from({ length: clients }, (_, client) => orderUntilItBreaks(`client-${client}`)));
  assert.equal((await server.ended).code, null);
}

/** Each user's list holds what was acknowledged, as it was, and nothing else. */
async function checkBookings(server: Server, store: BookingStore): Promise<void> {
  const references = new Set<string>();
  for (const [user, acknowledged] of store.bookings()) {
    const listed = await listBookings(server, user);
    assert.deepEqual(new Map(listed.map((one) => [one.id, one])), new Map(acknowledged.map((one) => [one.id, one])));
    assert.equal(listed.length, acknowledged.length);
    for (const { reference } of listed) references.add(reference);
  }
  const all = [...store.bookings().values()].flat();
  assert.equal(references.size, all.length);
}

/** What is left in each night is what there is, less what is booked: no night without a booking and no booking without. */
async function checkNights(server: Server, store: BookingStore): Promise<void> {
  for (const { checkIn, checkOut, left } of store.nights()) {
    assert.deepEqual(await leftInNight(server, checkIn, checkOut), left, checkIn);
  }
}
