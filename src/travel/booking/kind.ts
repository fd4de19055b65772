/** The type of a booking kind: everything that differs between hotels and cars, as data. */
import type { sql } from 'kysely';
import type { z } from 'zod';

export interface BookingKind {
  readonly name: 'hotel' | 'car';
  readonly plural: 'hotels' | 'cars';
  /** The word for one day of a stay. */
  readonly dayName: 'night' | 'day';
  readonly tables: {
    readonly resources: 'hotels' | 'cars';
    readonly offers: 'room_types' | 'cars';
    /** The taken units, one row per unit and day. */
    readonly days: 'hotel_nights' | 'car_days';
    readonly bookings: 'hotel_bookings' | 'car_bookings';
  };
  /** The column and the API field of a booking that contain the ID of the hotel or car. */
  readonly idField: 'hotel_id' | 'car_id';
  readonly offer: {
    /** SQL for those columns of `Offer` that differ between the tables of offers. */
    readonly columns: { readonly resource: Fragment; readonly name: Fragment; readonly guests: Fragment };
    /** The request field that selects an offer. */
    readonly nameField: string;
    /** The word for an offer, in messages. */
    readonly noun: string;
    /** The word for one unit of an offer, in messages. */
    readonly unitNoun: string;
  };
  readonly stay: {
    /** The names of the booking fields and query arguments for the start and end of a stay. */
    readonly fields: readonly [from: string, to: string];
    /** The `format` of both fields in JSON Schema. */
    readonly format: 'date' | 'date-time';
    /** The start and end of an example stay. */
    readonly examples: readonly [from: string, to: string];
    /** Converts a start or end to milliseconds since 1970. Undefined if it is malformed. */
    readonly parse: (text: string) => number | undefined;
    readonly print: (ms: number) => string;
    /** The earliest start that can still be booked. */
    readonly earliestMs: (nowMs: number) => number;
    /** The first day to try when the client gives no stay, in days since 1970. */
    readonly nextDay: (nowMs: number) => number;
  };
  /** The columns that only bookings of this kind have, and their values in a new booking. */
  readonly booking: { readonly columns: readonly string[]; readonly valuesOf: (offer: Offer, guests: number) => Row };
  /** The fields that describe an offer in the alternatives of `sold-out`. */
  readonly alternative: { readonly shape: z.ZodRawShape; readonly valuesOf: (offer: Offer) => Row };
}

/** Something that clients can book: a room type or a car, with its units and its price per day. */
export interface Offer {
  readonly id: string;
  /** The ID of the hotel or car. */
  readonly resource_id: string;
  /** Unique within the hotel or car. */
  readonly name: string;
  readonly guests: number;
  readonly units: number;
  /** Per day, in minor units. */
  readonly price: number;
  readonly currency: string;
}

export type Fragment = ReturnType<typeof sql>;
type Row = Readonly<Record<string, string | number>>;

/** Returns the columns of a booking that never change after it is created. */
export function fixedColumns({ idField, booking }: BookingKind): readonly string[] {
  return [...commonColumns, idField, ...booking.columns];
}

const commonColumns = ['id', 'user', 'created_at', 'reference', 'starts_at', 'ends_at', 'price', 'currency', 'policy'];

/** Returns the headings of the HTML pages. */
export function titlesOf({ name, plural }: BookingKind) {
  return { resources: capitalised(plural), bookings: `${capitalised(name)} bookings` };
}

export function capitalised(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** Parses a UUID in either case and returns it in lower case, as RFC 9562 prescribes. Undefined if it is not a UUID. */
export function parseId(text: string): string | undefined {
  return /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text) ? text.toLowerCase() : undefined;
}
