/** What makes a trade of its own out of what hotels and cars share: tables, words and the way to tell time. */
import type { sql } from 'kysely';
import type { z } from 'zod';

/** What clients can book: so many units of something, at a price for a day. */
export interface Offer {
  readonly id: string;
  /** The hotel or the car. */
  readonly thing_id: string;
  /** Tells the offers of one thing apart. */
  readonly name: string;
  readonly guests: number;
  readonly units: number;
  /** Of a day, in minor units. */
  readonly price: number;
  readonly currency: string;
}

/** A time for which something is booked, and the days that it takes: half open, as days since 1970-01-01. */
export interface Stay {
  readonly fromMs: number;
  readonly toMs: number;
  readonly firstDay: number;
  readonly endDay: number;
}

type Fragment = ReturnType<typeof sql>;

export interface Trade {
  /** `hotel` or `car`. */
  readonly name: string;
  /** What a day of it is called, such as `night`. */
  readonly dayName: string;
  readonly things: 'hotels' | 'cars';
  readonly offers: 'room_types' | 'cars';
  readonly days: 'hotel_nights' | 'car_days';
  readonly bookings: 'hotel_bookings' | 'car_bookings';
  /** The column of a booking, and the field, that names the thing. */
  readonly thing: 'hotel_id' | 'car_id';
  /** Selects `Offer` from `offers`. */
  readonly offer: { readonly thing: Fragment; readonly name: Fragment; readonly guests: Fragment };
  /** Columns that bookings of this trade have beside the thing. */
  readonly more: readonly string[];
  /** Of a new booking. */
  readonly moreOf: (offer: Offer, guests: number) => Readonly<Record<string, string | number>>;
  /** The fields, and the arguments of a list, that begin and end a stay. */
  readonly ends: readonly [from: string, to: string];
  /** An end of a stay, as clients write it, in milliseconds since 1970; undefined if it is none. */
  readonly readEnd: (text: string) => number | undefined;
  readonly writeEnd: (ms: number) => string;
  /** Of an end in JSON Schema. */
  readonly endFormat: 'date' | 'date-time';
  /** For people: what an end looks like. */
  readonly endExample: string;
  /** The earliest beginning that can still be booked. */
  readonly earliestMs: (nowMs: number) => number;
  /** The first day that is tried when a client names none. */
  readonly nextDay: (nowMs: number) => number;
  /** What an offer says of itself where several are told. */
  readonly offerFields: (offer: Offer) => Readonly<Record<string, unknown>>;
  /** Of these. */
  readonly offerShape: z.ZodRawShape;
}

export const dayMs = 86_400_000;
