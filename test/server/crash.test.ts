/** kill -9 in the middle of a stream of bookings: what was acknowledged is there, nothing is there twice, nothing is half. */
import assert from 'node:assert/strict';
import { createLedger, type Ledger } from '../support/booking-ledger.ts';
import type { Server } from '../support/frontdesk-process.ts';
import { leftInNight, listBookings, listRoomTypes, startHotels } from '../support/hotel-client.ts';
import { describeOnDatabases, type ScratchDatabase } from '../support/scratch-databases.ts';

/** A server is killed so many times; TEST_CRASH_ROUNDS asks for more. */
const rounds = Number(process.env['TEST_CRASH_ROUNDS'] ?? 2);
const clients = 8;

describeOnDatabases('kill -9 in the middle of a stream of bookings', (create) => {
  let database: ScratchDatabase;
  let server: Server;
  let ledger: Ledger;

  before(async function () {
    this.timeout(30_000);
    database = await create();
    server = await startHotels(database.url);
    ledger = createLedger(await listRoomTypes(server));
  });

  after(async () => {
    await server.stop();
    await database.remove();
  });

  it(`loses, doubles and halves nothing, ${rounds} times`, async function () {
    this.timeout(rounds * 10_000);
    for (let round = 0; round < rounds; round += 1) {
      await killInTheMiddle(server, ledger, 20 + Math.floor(Math.random() * 150));
      server = await startHotels(database.url);
      await ledger.retry(server);
      await checkBookings(server, ledger);
      await checkNights(server, ledger);
    }
  });
});

/** Several clients order without a pause; after so many answers the server is gone, whatever it is doing. */
async function killInTheMiddle(server: Server, ledger: Ledger, answersMax: number): Promise<void> {
  let answers = 0;
  async function orderUntilItBreaks(user: string): Promise<void> {
    while (await ledger.order(server, user)) {
      answers += 1;
      if (answers === answersMax) server.signal('SIGKILL');
    }
  }
  await Promise.all(Array.from({ length: clients }, (_, client) => orderUntilItBreaks(`client-${client}`)));
  assert.equal((await server.ended).code, null);
}

/** Each user's list holds what was acknowledged, as it was, and nothing else. */
async function checkBookings(server: Server, ledger: Ledger): Promise<void> {
  const references = new Set<string>();
  for (const [user, acknowledged] of ledger.bookings()) {
    const listed = await listBookings(server, user);
    assert.deepEqual(new Map(listed.map((one) => [one.id, one])), new Map(acknowledged.map((one) => [one.id, one])));
    assert.equal(listed.length, acknowledged.length);
    for (const { reference } of listed) references.add(reference);
  }
  const all = [...ledger.bookings().values()].flat();
  assert.equal(references.size, all.length);
}

/** What is left in each night is what there is, less what is booked: no night without a booking and no booking without. */
async function checkNights(server: Server, ledger: Ledger): Promise<void> {
  for (const { checkIn, checkOut, left } of ledger.nights()) {
    assert.deepEqual(await leftInNight(server, checkIn, checkOut), left, checkIn);
  }
}
