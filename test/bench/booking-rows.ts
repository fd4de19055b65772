/** The rows for creating and reading bookings in SQLite and, if TEST_POSTGRES_URL is set, in PostgreSQL. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createPostgresDatabase } from '../support/databases.ts';
import { booking } from './booking.ts';
import { writeInventory } from './booking-orders.ts';
import type { Child } from './child.ts';
import { writeConfiguration } from './configuration.ts';
import { ownServer, type Parts, type Row, startFrontdesk } from './servers.ts';

const postgres = process.env['TEST_POSTGRES_URL'];

interface Place {
  readonly suffix: string;
  readonly title: string;
  readonly start: Row['start'];
}

const places: readonly Place[] = [
  { suffix: '', title: 'SQLite', start: (...args) => startBookings(...args) },
  ...(postgres === undefined ? [] : [{ suffix: '-pg', title: 'PostgreSQL', start: startOnPostgres(postgres) }]),
];

const alone = ownServer('sqlite');
/** A separate process, because orders would increase the number of bookings to count. */
const startReads: Row['start'] = (...args) => startBookings(...args);

export const bookingRows: readonly Row[] = [
  { name: 'insert', title: 'SQLite alone: INSERT, COMMIT and fsync', path: '/', orders: true, start: alone },
  { name: 'select', title: 'SQLite alone: a page of 20 as JSON', path: '/', start: ownServer('sqlite') },
  {
    name: 'list-bookings',
    title: 'a page of 20 bookings, SQLite',
    path: '/v1/hotels/bookings/?limit=20',
    start: startReads,
  },
  ...places.flatMap(({ suffix, title, start }) => [
    {
      name: `create-booking${suffix}`,
      title: `create a booking, ${title}`,
      path: '/v1/hotels/bookings/',
      orders: true,
      start,
    },
    {
      name: `read-booking${suffix}`,
      title: `read a booking, ${title}`,
      path: `/v1/hotels/bookings/${booking.id}`,
      start,
    },
  ]),
];

function startBookings(
  port: number,
  directory: string,
  parts: Parts,
  env: Readonly<Record<string, string>> = {},
): Child {
  const configDir = writeConfiguration(directory, 'in-process', parts);
  writeFileSync(join(configDir, 'demo.yaml'), writeInventory());
  const modules = ['--only', 'gateway,auth,ratelimit,hotel'];
  // One user makes all bookings, one night at a time.
  const limits = { BOOKING_DAYS_MAX: '1', BOOKING_UNITS_MAX: '1000' };
  return startFrontdesk(directory, { PORT: String(port), LOG_LEVEL: 'error', ...limits, ...env }, modules, {
    configDir,
  });
}

/** Uses a new database, which is removed with the process. */
function startOnPostgres(serverUrl: string): Row['start'] {
  return async (port, directory, parts) => {
    const { url, remove } = await createPostgresDatabase(serverUrl);
    const child = startBookings(port, directory, parts, { DATABASE_URL: url });
    return {
      ...child,
      async stop() {
        await child.stop();
        await remove();
      },
    };
  };
}
