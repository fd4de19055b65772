/** What hotels and cars share: an inventory that anyone signed in may see, and bookings that only their owner sees. */
import type Koa from 'koa';
import { type Kysely, type SelectQueryBuilder, type SqlBool, sql } from 'kysely';
import type { ProblemResponsesOptions, Representations } from '#http';
import { createListLanguage, type ListLanguageOptions, type View } from '#query';
import { collection, createResourceApp, item } from '#rest';
import { type Database, selectPage, type Tables } from '#storage';
import { ownerOf } from './owner.ts';

/** What a booking has whatever it is for. */
export interface BookingRow {
  readonly id: string;
  readonly user: string;
  readonly version: number;
}

interface Listing<Row extends object> {
  readonly title: string;
  readonly view: View<Row>;
  readonly list: ListLanguageOptions<Row>;
}

type Query<Table extends keyof Tables, Row> = SelectQueryBuilder<Tables, Table, Row>;

export interface BookingServiceDefinition<
  ThingTable extends keyof Tables,
  Thing extends object,
  BookingTable extends keyof Tables,
  Booking extends BookingRow,
> {
  readonly inventory: Listing<Thing> & {
    readonly all: (kysely: Kysely<Tables>) => Query<ThingTable, Thing>;
  };
  readonly bookings: Listing<Booking> & {
    /** Names its columns: it is prepared once, and must outlive a column that a migration adds. */
    readonly ownedBy: (kysely: Kysely<Tables>, user: string) => Query<BookingTable, Booking>;
  };
}

export interface BookingServiceOptions extends ProblemResponsesOptions {
  readonly database: Database;
  readonly representations: Representations;
}

/** The app has no prefix and no version: `/`, `/bookings/` and `/bookings/<uuid>`. */
export function createBookingService<
  ThingTable extends keyof Tables,
  Thing extends object,
  BookingTable extends keyof Tables,
  Booking extends BookingRow,
>(
  { inventory, bookings }: BookingServiceDefinition<ThingTable, Thing, BookingTable, Booking>,
  { database, ...responses }: BookingServiceOptions,
): Koa {
  const { kysely } = database;
  // The hot read. Somebody else's booking is not found, so that ids tell nothing.
  const firstOwned = database.first<Booking>(bookings.ownedBy(kysely, '').where(sql<SqlBool>`id = ${''}`));
  return createResourceApp({
    ...responses,
    routes: [
      collection<Thing>({
        path: '/',
        title: inventory.title,
        view: inventory.view,
        language: createListLanguage(inventory.view, inventory.list),
        find: (_ctx, query) => selectPage(database, inventory.all(kysely), query),
      }),
      collection<Booking>({
        path: '/bookings/',
        title: bookings.title,
        view: bookings.view,
        language: createListLanguage(bookings.view, bookings.list),
        find: (ctx, query) => selectPage(database, bookings.ownedBy(kysely, ownerOf(ctx)), query),
      }),
      item<Booking>({
        path: '/bookings/:id',
        title: bookings.title,
        view: bookings.view,
        version: (row) => row.version,
        find(ctx) {
          const owner = ownerOf(ctx);
          const id = uuidOf(ctx['params'].id);
          return id === undefined ? undefined : firstOwned(owner, id);
        },
      }),
    ],
  });
}

/** RFC 9562: lower case is canonical, upper case is accepted. */
function uuidOf(text: string): string | undefined {
  return /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text) ? text.toLowerCase() : undefined;
}
