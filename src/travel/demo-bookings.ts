/** Completes the bookings of the demo data: their dates, prices and refunds, and the units that they take. */
import { createHash } from 'node:crypto';
import { createRefundSteps, priceOf } from './booking/money.ts';
import { dayMs } from './booking/stay.ts';
import { StorageSetupError } from './storage/database.ts';
import type { Tables } from './storage/schema.ts';

export type DemoRow = Readonly<Record<string, string | number | undefined>>;
export type DemoTables = ReadonlyMap<keyof Tables, readonly DemoRow[]>;

interface Kind {
  readonly bookings: 'hotel_bookings' | 'car_bookings';
  readonly days: 'hotel_nights' | 'car_days';
  readonly offers: 'room_types' | 'cars';
  /** The column of a booking that contains its length in days. */
  readonly length: 'nights' | 'days';
  readonly isOfferOf: (offer: DemoRow, booking: DemoRow) => boolean;
  readonly startsAt: (firstDay: number) => string;
  readonly endsAt: (endDay: number) => string;
}

const kinds: readonly Kind[] = [
  {
    bookings: 'hotel_bookings',
    days: 'hotel_nights',
    offers: 'room_types',
    length: 'nights',
    isOfferOf: (offer, booking) => offer['hotel_id'] === booking['hotel_id'] && offer['name'] === booking['room_type'],
    startsAt: dateOf,
    endsAt: dateOf,
  },
  {
    bookings: 'car_bookings',
    days: 'car_days',
    offers: 'cars',
    length: 'days',
    isOfferOf: (offer, booking) => offer['id'] === booking['car_id'],
    startsAt: (firstDay) => `${dateOf(firstDay)}T09:00:00.000Z`,
    endsAt: (endDay) => `${dateOf(endDay - 1)}T18:00:00.000Z`,
  },
];

/**
 * Adds the tables of taken units. Bookings begin a number of days after `nowMs`. Throws a StorageSetupError for a booking
 * that is sold out.
 */
export function completeBookings(tables: DemoTables, nowMs: number): DemoTables {
  const completed = new Map(tables);
  for (const kind of kinds) {
    const offers = tables.get(kind.offers) ?? [];
    const taken: DemoRow[] = [];
    const bookings = (tables.get(kind.bookings) ?? []).map((booking, index) => {
      const offer = offers.find((one) => kind.isOfferOf(one, booking));
      if (offer !== undefined && booking['status'] !== 'cancelled') {
        for (const day of daysOf(kind, booking, nowMs)) taken.push(takeUnit(kind, offer, booking, day, index, taken));
      }
      return complete(kind, booking, offer, nowMs);
    });
    completed.set(kind.bookings, bookings).set(kind.days, taken);
  }
  return completed;
}

/** A booking whose offer is not in the data costs only what it says. A cancelled one was cancelled at once. */
function complete(kind: Kind, booking: DemoRow, offer: DemoRow | undefined, nowMs: number): DemoRow {
  const { starts_in: _startsIn, [kind.length]: _length, ...columns } = booking;
  const days = daysOf(kind, booking, nowMs);
  const [firstDay = 0] = days;
  const endDay = firstDay + days.length;
  const startsAt = kind.startsAt(firstDay);
  const price = Number(booking['price'] ?? priceOf({ price: Number(offer?.['price'] ?? 0) }, { firstDay, endDay }));
  const refunds = createRefundSteps(price, Date.parse(startsAt), nowMs);
  return {
    ...columns,
    reference: referenceOf(String(booking['id'])),
    starts_at: startsAt,
    ends_at: kind.endsAt(endDay),
    price,
    currency: booking['currency'] ?? offer?.['currency'] ?? 'EUR',
    policy: JSON.stringify(refunds),
    ...(booking['status'] === 'cancelled' && { refund: refunds[0]?.refund ?? 0 }),
  };
}

/** Returns the days that a booking takes, in days since 1970. */
function daysOf({ length }: Kind, booking: DemoRow, nowMs: number): readonly number[] {
  const firstDay = Math.floor(nowMs / dayMs) + Number(booking['starts_in']);
  return Array.from({ length: Number(booking[length]) }, (_, index) => firstDay + index);
}

function takeUnit(
  { bookings }: Kind,
  { id: offer_id = '', units = 0 }: DemoRow,
  { id: booking_id = '' }: DemoRow,
  day: number,
  index: number,
  taken: readonly DemoRow[],
): DemoRow {
  const unit = taken.filter((one) => one['offer_id'] === offer_id && one['day'] === day).length + 1;
  if (unit <= Number(units)) return { offer_id, day, unit, units, booking_id };
  throw new StorageSetupError(
    `the demo data cannot be loaded:\n  ${bookings}, row ${index + 1}, starts_in: earlier rows take all ${units} units on ${dateOf(day)}`,
  );
}

/** Formats days since 1970 as a date. */
function dateOf(day: number): string {
  return new Date(day * dayMs).toISOString().slice(0, 10);
}

/** Derives the reference from the ID, so that it is always the same. Hexadecimal digits are valid in a reference. */
function referenceOf(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, 8).toUpperCase();
}
