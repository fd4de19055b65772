/** Where rows live: one database, SQLite or PostgreSQL, behind Kysely, with its tables, pages and demo data. */
export {
  type Database,
  type DatabaseOptions,
  type First,
  openDatabase,
} from './database.ts';
export { type DemoRows, loadDemo } from './demo.ts';
export { StorageSetupError, StorageUnavailable } from './errors.ts';
export type {
  AccountRow,
  BookingStatus,
  CarBookingRow,
  CarRow,
  HotelBookingRow,
  HotelRow,
  MessageRow,
  Tables,
} from './schema.ts';
export { type Page, selectPage } from './select-page.ts';
