/** The tables, as the migrations leave them: what a row holds when read, and what may be left out when written. */
import type { Generated } from 'kysely';

export type BookingStatus = 'pending' | 'confirmed' | 'cancelled';

export interface HotelRow {
  /** UUID, lower-case, as are all ids but those of accounts and messages. */
  readonly id: string;
  readonly name: string;
  readonly city: string;
}

/** What can be booked: so many of a kind, at a price for each day. */
interface OfferRow {
  readonly id: string;
  /** How many there are of it. */
  readonly units: number;
  /** For one day, in minor units of the currency, such as cents. */
  readonly price: number;
  /** ISO 4217. */
  readonly currency: string;
}

export interface RoomTypeRow extends OfferRow {
  readonly hotel_id: string;
  /** No two room types of a hotel have the same. */
  readonly name: string;
  /** How many sleep in one room. */
  readonly guests: number;
}

export interface CarRow extends OfferRow {
  readonly model: string;
  readonly class: string;
  readonly city: string;
  readonly pickup_place: string;
}

/** What a booking has whatever it is for. */
export interface BookingRow {
  readonly id: string;
  /** Whose it is: the `X-Travel-User` who made it. */
  readonly user: string;
  readonly status: BookingStatus;
  /** Counts the changes, from 1: what an ETag is made of. */
  readonly version: number;
  /** RFC 3339, UTC, as are all times. */
  readonly created_at: string;
  /** Eight letters and digits that nobody mishears. */
  readonly reference: string;
  /** Hotels: a date. Cars: a time. */
  readonly starts_at: string;
  readonly ends_at: string;
  /** Of the whole booking, in minor units. */
  readonly price: number;
  readonly currency: string;
  /** JSON: `[{ "before": <time>, "refund": <minor units> }]`, in the order of time. */
  readonly policy: string;
  /** Of a pending booking that lapses. */
  readonly expires_at: string | null;
  /** In minor units; of cancelled bookings alone. */
  readonly refund: number | null;
}

export interface HotelBookingRow extends BookingRow {
  readonly hotel_id: string;
  /** The name that it had when it was booked. */
  readonly room_type: string;
  readonly guests: number;
}

export interface CarBookingRow extends BookingRow {
  readonly car_id: string;
}

/** One unit of an offer, taken for one day. */
export interface DayRow {
  readonly offer_id: string;
  /** Days since 1970-01-01, UTC. */
  readonly day: number;
  /** From 1: a place among the units, no door. */
  readonly unit: number;
  /** How many units there are, which keeps `unit` among them. */
  readonly units: number;
  readonly booking_id: string;
  /** From this time on the unit is free, whatever the row says. */
  readonly held_until: string | null;
}

/** An answer that a repeated request is to get again. */
export interface AnswerRow {
  /** Digest of who asked, where, and under which key. */
  readonly id: string;
  /** Digest of what was asked. */
  readonly fingerprint: string;
  /** JSON. */
  readonly body: string;
  readonly created_at: string;
}

export interface AccountRow {
  readonly id: string;
  readonly name: string;
}

export interface MessageRow {
  /** 32 bits. */
  readonly id: number;
  readonly account_id: string;
  readonly subject: string;
  readonly body: string;
  /** RFC 3339, UTC. */
  readonly created_at: string;
}

/** For Kysely: `Generated` columns may be left out of an insert. */
export interface Tables {
  readonly hotels: HotelRow;
  readonly room_types: RoomTypeRow;
  readonly cars: Defaulted<CarRow, 'pickup_place' | 'units' | 'price' | 'currency'>;
  readonly hotel_bookings: Defaulted<HotelBookingRow, 'version'>;
  readonly car_bookings: Defaulted<CarBookingRow, 'version'>;
  readonly hotel_nights: DayRow;
  readonly car_days: DayRow;
  readonly answers: AnswerRow;
  readonly accounts: AccountRow;
  readonly messages: Defaulted<MessageRow, 'id'>;
}

type Defaulted<Row, Column extends keyof Row> = Omit<Row, Column> & {
  readonly [C in Column]: Generated<Row[C]>;
};
