/** The contracts of bookings on SQLite and, where TEST_POSTGRES_URL names a server, PostgreSQL. */
import { describeOnDatabases } from '../support/databases.ts';
import { bookingLimitsContract } from './booking-limits.ts';
import { bookingPlansContract } from './booking-plans.ts';
import { bookingsContract } from './bookings.ts';
import { inventoryMigrationContract } from './inventory-migration.ts';

describeOnDatabases('bookings', bookingsContract);
describeOnDatabases('what one user may book', bookingLimitsContract);
describeOnDatabases('the migration of bookings that are older than the inventory', inventoryMigrationContract);
describeOnDatabases('the queries of the booking services use an index', bookingPlansContract);
