/** What hotels and cars share: an inventory that anyone signed in may see, and bookings that only their owner sees. */
import type Koa from 'koa';
import type { ProblemResponsesOptions, Representations } from '#http';
import { createResourceApp } from '#rest';
import type { BookingRow, Database } from '#storage';
import { type BookingsDefinition, bookingRoutes } from './booking-routes.ts';
import { type InventoryDefinition, inventoryRoutes, type Thing } from './inventory-routes.ts';
import { aboutTrade } from './told.ts';
import type { Trade } from './trade.ts';

export interface BookingServiceDefinition<Row extends Thing, Booking extends BookingRow, Wish extends object> {
  readonly trade: Trade;
  readonly inventory: InventoryDefinition<Row>;
  readonly bookings: BookingsDefinition<Booking, Wish>;
}

export interface BookingServiceOptions extends ProblemResponsesOptions {
  readonly database: Database;
  readonly representations: Representations;
  /** Milliseconds since 1970. @default the system's */
  readonly clock?: () => number;
}

/** The app has no prefix and no version: `/`, `/<uuid>`, `/bookings/` and `/bookings/<uuid>`. */
export function createBookingService<Row extends Thing, Booking extends BookingRow, Wish extends object>(
  { trade, inventory, bookings }: BookingServiceDefinition<Row, Booking, Wish>,
  { database, clock = Date.now, ...responses }: BookingServiceOptions,
): Koa {
  const means = { database, trade, clock };
  return createResourceApp({
    ...responses,
    info: aboutTrade(trade),
    routes: [...bookingRoutes(bookings, means), ...inventoryRoutes(inventory, means)],
  });
}
