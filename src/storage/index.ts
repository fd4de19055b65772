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
  AnswerRow,
  BookingRow,
  BookingStatus,
  CarBookingRow,
  CarRow,
  DayRow,
  HotelBookingRow,
  HotelRow,
  MessageRow,
  RoomTypeRow,
  Tables,
} from './schema.ts';
export { type Page, selectPage } from './select-page.ts';
