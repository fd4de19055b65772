/** Runs the booking contracts on SQLite and, if TEST_POSTGRES_URL is set, on PostgreSQL. */
import { describeOnDatabases } from '../support/databases.ts';
import { bookingLimitsContract } from './booking-limits.ts';
import { bookingPlansContract } from './booking-plans.ts';
import { bookingsContract } from './bookings.ts';
import { inventoryMigrationContract } from './inventory-migration.ts';

describeOnDatabases('bookings', bookingsContract);
describeOnDatabases('booking limits per user', bookingLimitsContract);
describeOnDatabases('migration of bookings from before the inventory', inventoryMigrationContract);
describeOnDatabases('booking queries use an index', bookingPlansContract);
