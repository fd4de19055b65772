/** The storage layer: a SQLite or PostgreSQL database behind Kysely, with its tables, pagination and demo data. */
export { type Database, type DatabaseOptions, StorageSetupError, StorageUnavailable } from './database.ts';
export { type DemoRows, loadDemo } from './demo.ts';
export { openDatabase } from './open-database.ts';
export type {
  AccountRow,
  BookingRow,
  BookingStatus,
  CarBookingRow,
  CarRow,
  HotelBookingRow,
  HotelRow,
  MessageRow,
  StoredResponseRow,
  Tables,
  TakenUnitRow,
} from './schema.ts';
export { createPageReader, type Page } from './select-page.ts';
export { createStatement, type Slot } from './statement.ts';
