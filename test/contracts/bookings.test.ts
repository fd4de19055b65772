/** The contracts of bookings on SQLite and, where TEST_POSTGRES_URL names a server, PostgreSQL. */
import { describeOnDatabases } from '../support/databases.ts';
import { bookingPlansContract } from './booking-plans.ts';
import { bookingsContract } from './bookings.ts';
import { inventoryMigrationContract } from './inventory-migration.ts';

describeOnDatabases('bookings', bookingsContract);
describeOnDatabases(
  'the migration of bookings that were made before there was an inventory',
  inventoryMigrationContract,
);
describeOnDatabases('the questions about bookings', bookingPlansContract);
