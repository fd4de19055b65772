/** What differs between hotels and cars: a kind of booking, as data. */
import type { sql } from 'kysely';
import type { z } from 'zod';

export interface BookingKind {
  readonly name: 'hotel' | 'car';
  readonly plural: 'hotels' | 'cars';
  /** What a day of a stay is called. */
  readonly dayName: 'night' | 'day';
  readonly tables: {
    readonly resources: 'hotels' | 'cars';
    readonly offers: 'room_types' | 'cars';
    /** The units that are taken, day by day. */
    readonly days: 'hotel_nights' | 'car_days';
    readonly bookings: 'hotel_bookings' | 'car_bookings';
  };
  /** The column of a booking, and its field, that names the hotel or car. */
  readonly idField: 'hotel_id' | 'car_id';
  readonly offer: {
    /** The columns of `Offer` in the table of offers. */
    readonly columns: { readonly resource: Fragment; readonly name: Fragment; readonly guests: Fragment };
    /** The field of a request that names an offer. */
    readonly nameField: string;
    /** What an offer and one unit of it are called. */
    readonly noun: string;
    readonly unitNoun: string;
  };
  readonly stay: {
    /** The fields of a booking, and the arguments of a list, that say when a stay begins and ends. */
    readonly fields: readonly [from: string, to: string];
    /** In JSON Schema. */
    readonly format: 'date' | 'date-time';
    /** Of both ends of one stay. */
    readonly examples: readonly [from: string, to: string];
    /** A beginning or end as clients write it, in milliseconds since 1970; undefined if it is malformed. */
    readonly parse: (text: string) => number | undefined;
    readonly print: (ms: number) => string;
    /** The earliest beginning that can still be booked. */
    readonly earliestMs: (nowMs: number) => number;
    /** The first day that is tried when a client names none. */
    readonly nextDay: (nowMs: number) => number;
  };
  /** The columns that bookings have beside the common ones, and their values in a new booking. */
  readonly booking: { readonly columns: readonly string[]; readonly valuesOf: (offer: Offer, guests: number) => Row };
  /** The fields that describe an offer among the alternatives to a sold-out one. */
  readonly alternative: { readonly shape: z.ZodRawShape; readonly valuesOf: (offer: Offer) => Row };
}

/** What clients can book: units of a room type or of a car, at a price per day. */
export interface Offer {
  readonly id: string;
  /** The hotel or the car. */
  readonly resource_id: string;
  /** Unique among the offers of the resource. */
  readonly name: string;
  readonly guests: number;
  readonly units: number;
  /** Per day, in minor units. */
  readonly price: number;
  readonly currency: string;
}

export type Fragment = ReturnType<typeof sql>;
type Row = Readonly<Record<string, string | number>>;

/** Of a table of bookings: what stays as it was when the booking was made. */
export function fixedColumns({ idField, booking }: BookingKind): readonly string[] {
  return [...commonColumns, idField, ...booking.columns];
}

const commonColumns = [
  ...['id', 'user', 'created_at', 'reference', 'starts_at', 'ends_at'],
  ...['price', 'currency', 'policy'],
];

/** A UUID in lower case, which is canonical; upper case is accepted (RFC 9562). Undefined if it is none. */
export function parseId(text: string): string | undefined {
  return /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text) ? text.toLowerCase() : undefined;
}
