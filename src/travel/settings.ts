/** The settings of the travel services: their database and the limits of bookings. */
import { count, numberKind, textKind, timeoutMs } from '#config';
import { parsePostgresUrl } from './postgres-url.ts';

const database = textKind(
  isDatabaseUrl,
  'sqlite:<path>, sqlite::memory: or postgres://user:password@host/name (several hosts as a:5432,b:5432; a percent-encoded password)',
);
/** The maximum keeps the price of a booking within 32 bits. */
const days = numberKind(1, 200);

export const travelSettings = {
  databaseUrl: database(
    'sqlite:./data/frontdesk.db',
    'Database for bookings, messages and accounts: sqlite:./path, sqlite:/absolute/path, sqlite::memory: or postgres://user:password@host/name; of several hosts, as a:5432,b:5432, the primary is used. The directory of an absolute path must exist; that of another path is created. New files are readable for their owner only.',
  ),
  databasePool: count(10, 'Maximum connections of this process to PostgreSQL.'),
  databaseTimeoutMs: timeoutMs(
    5000,
    'How long a request waits for a PostgreSQL connection or statement, or for another writer of the SQLite file, in milliseconds.',
  ),
  bookingHoldsMax: count(10, 'Maximum pending hotel bookings, and pending car bookings, of one user.'),
  bookingDaysMax: days(90, 'Maximum nights or days of one booking.'),
  bookingUnitsMax: count(20, 'Maximum rooms, and maximum cars, that one user can book for the same day.'),
} as const;

function isDatabaseUrl(text: string): boolean {
  if (text.startsWith('sqlite:')) return isSqliteFile(text.slice('sqlite:'.length));
  return parsePostgresUrl(text) !== undefined;
}

/** Rejects other spellings of `:memory:`, URIs and queries, each of which would create a file of that name. */
function isSqliteFile(path: string): boolean {
  return path === ':memory:' || /^(?!:?memory:?$|file:)[^?]+$/.test(path);
}
