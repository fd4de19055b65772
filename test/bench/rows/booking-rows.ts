/** The rows for creating and reading bookings in SQLite and, if TEST_POSTGRES_URL is set, in PostgreSQL. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createPostgresDatabase } from '../../support/databases.ts';
import { booking } from '../clients/booking.ts';
import { formatInventory } from '../clients/booking-orders.ts';
import { writeConfiguration } from '../processes/configuration.ts';
import { benchServer, type Row, type Start, startFrontdesk } from '../processes/start-servers.ts';

/** One user makes all bookings, one night at a time. */
function startWith(database: Readonly<Record<string, string>>): Start {
  return (port, directory) => {
    const configDir = writeConfiguration(directory, 'in-process');
    writeFileSync(join(configDir, 'demo.yaml'), formatInventory());
    const limits = { BOOKING_DAYS_MAX: '1', BOOKING_UNITS_MAX: '1000' };
    return startFrontdesk(directory, { PORT: String(port), CONFIG_DIR: configDir, ...limits, ...database });
  };
}

/** Uses a new database, and removes it when the process stops. */
function startOnPostgres(serverUrl: string): Start {
  return async (...args) => {
    const { url, remove } = await createPostgresDatabase(serverUrl);
    const server = await startWith({ DATABASE_URL: url })(...args);
    return {
      ...server,
      async stop() {
        await server.stop();
        await remove();
      },
    };
  };
}

const postgres = process.env['TEST_POSTGRES_URL'];

const databases: readonly { readonly suffix: string; readonly title: string; readonly start: Start }[] = [
  { suffix: '', title: 'SQLite', start: startWith({}) },
  ...(postgres === undefined ? [] : [{ suffix: '-pg', title: 'PostgreSQL', start: startOnPostgres(postgres) }]),
];

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
    // A separate process, because orders would increase the number of bookings to count.
    start: startWith({}),
    peer: 'select',
    target: { ratioMax: 2 },
  },
  {
    name: 'list-bookings-gzip',
    title: 'list a page of 20 bookings: frontdesk on SQLite, compressed with gzip',
    path: '/v1/hotels/bookings/?limit=20',
    headers: { 'accept-encoding': 'gzip' },
    start: startWith({}),
    peer: 'list-bookings',
  },
  ...databases.flatMap(({ suffix, title, start }) => [
    {
      name: `create-booking${suffix}`,
      title: `create a booking: frontdesk on ${title}`,
      path: '/v1/hotels/bookings/',
      orders: true,
      start,
      ...(suffix === '' ? { peer: 'insert', target: { ratioMax: 2, figureMax: 300 } } : { peer: 'create-booking' }),
    },
    {
      name: `read-booking${suffix}`,
      title: `read one of many bookings: frontdesk on ${title}`,
      path: `/v1/hotels/bookings/${booking.id}`,
      start,
    },
  ]),
];
