/** All modules in one process with several threads, which share the ports and a database file. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { copyConfig } from '../support/desks.ts';
import { startServer } from '../support/programs/frontdesk-process.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { type Booking, cars, createBookingClient } from './booking-client.ts';
import { conformance } from './conformance.ts';

conformance(
  'one process with two threads',
  async (config) => {
    const DATABASE_URL = `sqlite:${join(config, 'frontdesk.db')}`;
    const server = await startServer(['--demo'], { env: { CONFIG_DIR: config, THREADS: '2', DATABASE_URL } });
    return {
      ...server,
      async close() {
        const { code, stderr } = await server.stop();
        assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
      },
    };
  },
  { kinds: [cars] },
);

describe('bookings on several threads', () => {
  const writeFiles = temporaryFiles();
  const servers = testServers();

  it('are on disk when they are acknowledged, and use no unit twice, even if the process is killed', async () => {
    const CONFIG_DIR = await copyConfig(writeFiles);
    const DATABASE_URL = `sqlite:${join(CONFIG_DIR, 'frontdesk.db')}`;
    const env = { CONFIG_DIR, DATABASE_URL, THREADS: '2', BOOKING_HOLDS_MAX: '1000', BOOKING_UNITS_MAX: '1000' };
    const start = async () => {
      const server = await startServer(['--demo'], { env });
      servers.later(server.stop);
      return { ...server, close: async () => {} };
    };
    const first = await start();
    const client = createBookingClient(() => first, cars);
    const offer = await client.scarcest();
    const stays = Array.from({ length: 40 }, () => client.nextStay());
    const acknowledged: (readonly [number, Booking])[] = [];

    /** More requests for each stay than there are units, each on its own connection. Kills the process halfway. */
    async function bookTooMuch(stay: number): Promise<void> {
      const body = { ...offer.request, ...stays[stay] };
      const posts = Array.from({ length: offer.units + 2 }, async () => {
        const response = await client.post(body);
        if (response.status === 201) acknowledged.push([stay, response.body]);
        if (acknowledged.length === 20 * offer.units) first.signal('SIGKILL');
      });
      await Promise.allSettled(posts);
    }
    await Promise.all(stays.map((_, stay) => bookTooMuch(stay)));
    assert.ok(acknowledged.length >= 20 * offer.units);

    const second = await start();
    const again = createBookingClient(() => second, cars);
    const booked = new Map<number, number>();
    for (const [stay, booking] of acknowledged) {
      const { pathname } = new URL(booking.url);
      await again.read({ ...booking, url: `${second.gatewayUrl}${pathname}` }).expect(200);
      booked.set(stay, (booked.get(stay) ?? 0) + 1);
    }
    for (const [stay, count] of booked) {
      assert.ok(count <= offer.units, `${count} of ${offer.units} units`);
      // The process may have been killed before it could acknowledge a booking.
      assert.ok((await again.left(offer, stays[stay] ?? {})) <= offer.units - count);
    }
  });
});
