/** kill -9 during a stream of bookings: acknowledged bookings are there, and no booking is duplicated or incomplete. */
import assert from 'node:assert/strict';
import { describeOnDatabases, type ScratchDatabase } from '../support/databases.ts';
import type { Server } from '../support/programs/frontdesk-process.ts';
import { type BookingStore, createBookingStore } from './booking-store.ts';
import { leftInNight, listBookings, listRoomTypes, startHotels } from './hotel-client.ts';

/** The number of times that a server is killed. TEST_CRASH_ROUNDS sets a larger one. */
const rounds = Number(process.env['TEST_CRASH_ROUNDS'] ?? 1);
const clients = 8;

describeOnDatabases('kill -9 during a stream of bookings', (create) => {
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

  it(`does not lose, duplicate or corrupt bookings, ${rounds} times`, async function () {
    this.timeout(rounds * 20_000);
    for (let round = 0; round < rounds; round += 1) {
      await killWhileBooking(server, store, 20 + Math.floor(Math.random() * 150));
      server = await startHotels(database.url);
      await store.retry(server);
      await checkBookings(server, store);
      await checkNights(server, store);
    }
  });
});

/** Several clients order without a pause. After `answersMax` responses the server is killed while it is working. */
async function killWhileBooking(server: Server, store: BookingStore, answersMax: number): Promise<void> {
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

/** Each user's list contains exactly the acknowledged bookings, unchanged. */
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

/** In each night, the rooms left are all rooms minus the booked ones, so nights and bookings are consistent. */
async function checkNights(server: Server, store: BookingStore): Promise<void> {
  for (const { checkIn, checkOut, left } of store.nights()) {
    assert.deepEqual(await leftInNight(server, checkIn, checkOut), left, checkIn);
  }
}
