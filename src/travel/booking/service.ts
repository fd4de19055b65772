/** The Koa app of a booking service: an inventory that everyone can read, and bookings that only their owner sees. */
import type Koa from 'koa';
import type { ProblemResponsesOptions, Representations } from '#http';
import { type ApiInfo, createResourceApp } from '#rest';
import { commonInfo, demoNote } from '../api-info.ts';
import type { Database } from '../storage/database.ts';
import type { BookingRow } from '../storage/schema.ts';
import { bookingProblems } from './booking-problem.ts';
import { type BookingsDefinition, bookingRoutes } from './bookings.ts';
import { type InventoryDefinition, inventoryRoutes, type Resource } from './inventory.ts';
import { type BookingKind, titlesOf } from './kind.ts';
import type { BookingLimits } from './limits.ts';

export interface BookingServiceDefinition<Row extends Resource, Booking extends BookingRow, Body extends object> {
  readonly kind: BookingKind;
  readonly inventory: InventoryDefinition<Row>;
  readonly bookings: BookingsDefinition<Booking, Body>;
}

export interface BookingServiceOptions extends ProblemResponsesOptions {
  readonly database: Database;
  readonly representations: Representations;
  /** Returns milliseconds since 1970. @default Date.now */
  readonly clock?: () => number;
  readonly limits: BookingLimits;
}

/** The app's paths have no prefix and no version: `/`, `/<uuid>`, `/bookings/` and `/bookings/<uuid>`. */
export function createBookingService<Row extends Resource, Booking extends BookingRow, Body extends object>(
  { kind, inventory, bookings }: BookingServiceDefinition<Row, Booking, Body>,
  { database, clock = Date.now, limits, ...responses }: BookingServiceOptions,
): Koa {
  const options = { database, kind, clock, limits };
  const routes = [...bookingRoutes(bookings, options), ...inventoryRoutes(inventory, options)];
  return createResourceApp({ ...responses, problems: bookingProblems, info: apiInfo(kind, limits), routes });
}

function apiInfo(kind: BookingKind, { holdsMax, daysMax, unitsMax }: BookingLimits): ApiInfo {
  const { dayName, plural } = kind;
  const { unitNoun } = kind.offer;
  const [from, to] = kind.stay.fields;
  const title = titlesOf(kind).resources;
  return {
    ...commonInfo,
    title,
    version: '1',
    description: [
      `${title}, their availability, and your bookings.`,
      `A booking is for up to ${daysMax} ${dayName}s, from \`${from}\` to \`${to}\`. It is created as \`confirmed\` or,`,
      'with `hold`, as `pending`, and it can be `cancelled`.',
      `Only the user who made a booking can see it; other users get 404.`,
      `A user may have up to ${holdsMax} pending bookings at a time, and up to ${unitsMax} ${unitNoun}s on one ${dayName}.`,
      demoNote,
    ].join(' '),
    groups: { '': `The ${plural} that can be booked.`, bookings: 'Your bookings.' },
    signedIn: true,
    problems: { 'storage-unavailable': {}, 'too-many-requests': {} },
  };
}
