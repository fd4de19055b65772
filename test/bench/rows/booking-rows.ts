/** The rows for creating and reading bookings in SQLite and, if TEST_POSTGRES_URL is set, in PostgreSQL. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createPostgresDatabase } from '../../support/databases.ts';
import { booking } from '../clients/booking.ts';
import { formatInventory } from '../clients/booking-orders.ts';
import type { Child } from '../processes/child.ts';
import { writeConfiguration } from '../processes/configuration.ts';
import { type Backends, benchServer, hotelModules, type Row, startFrontdesk } from '../processes/start-servers.ts';

const postgres = process.env['TEST_POSTGRES_URL'];

interface BookingDatabase {
  readonly suffix: string;
  readonly title: string;
  readonly start: Row['start'];
}

const databases: readonly BookingDatabase[] = [
  { suffix: '', title: 'SQLite', start: (...args) => startBookings(...args) },
  ...(postgres === undefined ? [] : [{ suffix: '-pg', title: 'PostgreSQL', start: startOnPostgres(postgres) }]),
];

/** A separate process, because orders would increase the number of bookings to count. */
const startForList: Row['start'] = (...args) => startBookings(...args);

export const bookingRows: readonly Row[] = [
  {
    name: 'insert',
    title: 'create a booking: bare Koa and SQLite',
    path: '/',
    orders: true,
    start: benchServer('sqlite'),
  },
  { name: 'select', title: 'list a page of 20 bookings: bare Koa and SQLite', path: '/', start: benchServer('sqlite') },
  {
    name: 'list-bookings',
    title: 'list a page of 20 bookings: frontdesk on SQLite',
    path: '/v1/hotels/bookings/?limit=20',
    start: startForList,
  },
  ...databases.flatMap(({ suffix, title, start }) => [
    {
      name: `create-booking${suffix}`,
      title: `create a booking: frontdesk on ${title}`,
      path: '/v1/hotels/bookings/',
      orders: true,
      start,
    },
    {
      name: `read-booking${suffix}`,
      title: `read one of many bookings: frontdesk on ${title}`,
      path: `/v1/hotels/bookings/${booking.id}`,
      start,
    },
  ]),
];

function startBookings(
  port: number,
  directory: string,
  backends: Backends,
  env: Readonly<Record<string, string>> = {},
): Child {
  const configDir = writeConfiguration(directory, 'in-process', backends);
  writeFileSync(join(configDir, 'demo.yaml'), formatInventory());
  // One user makes all bookings, one night at a time.
  const limits = { BOOKING_DAYS_MAX: '1', BOOKING_UNITS_MAX: '1000' };
  return startFrontdesk(
    directory,
    { PORT: String(port), LOG_LEVEL: 'error', ...limits, ...env },
    { modules: hotelModules, configDir },
  );
}

/** Uses a new database, and removes it when the process stops. */
function startOnPostgres(serverUrl: string): Row['start'] {
  return async (port, directory, backends) => {
    const { url, remove } = await createPostgresDatabase(serverUrl);
    const child = startBookings(port, directory, backends, { DATABASE_URL: url });
    return {
      ...child,
      async stop() {
        await child.stop();
        await remove();
      },
    };
  };
}
