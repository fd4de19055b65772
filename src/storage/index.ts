/** Where rows live: one database, SQLite or PostgreSQL, through Kysely, with its tables, pages and demo data. */
export {
  type Database,
  type DatabaseOptions,
  type PreparedRead,
  StorageSetupError,
  StorageUnavailable,
} from './database.ts';
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
  RoomTypeRow,
  StoredResponseRow,
  Tables,
  TakenUnitRow,
} from './schema.ts';
export { type Page, selectPage } from './select-page.ts';
