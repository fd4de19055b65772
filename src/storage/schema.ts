/** The tables as types: what a row holds when read, and what may be left out when written. */
import type { Generated } from 'kysely';

export type BookingStatus = 'pending' | 'confirmed' | 'cancelled';

export interface HotelRow {
  /** UUID, lower-case, as are all ids but those of accounts and messages. */
  readonly id: string;
  readonly name: string;
  readonly city: string;
}

/** What can be booked: a number of units, at a price for each day. */
interface OfferRow {
  readonly id: string;
  /** How many of them exist. */
  readonly units: number;
  /** Per day, in minor units of the currency, such as cents. */
  readonly price: number;
  /** ISO 4217. */
  readonly currency: string;
}

export interface RoomTypeRow extends OfferRow {
  readonly hotel_id: string;
  /** Unique within the hotel. */
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

/** The columns that bookings of hotels and cars share. */
export interface BookingRow {
  readonly id: string;
  /** Its owner: the `X-Travel-User` who made it. */
  readonly user: string;
  readonly status: BookingStatus;
  /** Counts the changes, from 1; ETags are made of it. */
  readonly version: number;
  /** RFC 3339, UTC, as are all times. */
  readonly created_at: string;
  /** Eight letters and digits that are easy to tell apart when read aloud. */
  readonly reference: string;
  /** Hotels: a date. Cars: a time. */
  readonly starts_at: string;
  readonly ends_at: string;
  /** For the whole booking, in minor units. */
  readonly price: number;
  readonly currency: string;
  /** JSON: `[{ "before": <time>, "refund": <minor units> }]`, earliest first. */
  readonly policy: string;
  /** When a pending booking lapses. */
  readonly expires_at: string | null;
  /** In minor units; only cancelled bookings have one. */
  readonly refund: number | null;
}

export interface HotelBookingRow extends BookingRow {
  readonly hotel_id: string;
  /** Its name at the time of booking. */
  readonly room_type: string;
  readonly guests: number;
}

export interface CarBookingRow extends BookingRow {
  readonly car_id: string;
}

/** One unit of an offer, taken for one day. */
export interface TakenUnitRow {
  readonly offer_id: string;
  /** Days since 1970-01-01, UTC. */
  readonly day: number;
  /** From 1 to `units`. It counts places and names no particular room or car. */
  readonly unit: number;
  /** How many units the offer has; a check keeps `unit` within it. */
  readonly units: number;
  readonly booking_id: string;
  /** From this time on the unit is free, although the row is still there. */
  readonly held_until: string | null;
}

/** A response that a repeated request gets again. */
export interface StoredResponseRow {
  /** Digest of the user, the URL and the idempotency key. */
  readonly id: string;
  /** Digest of the request. */
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
  readonly hotel_nights: TakenUnitRow;
  readonly car_days: TakenUnitRow;
  readonly answers: StoredResponseRow;
  readonly accounts: AccountRow;
  readonly messages: Defaulted<MessageRow, 'id'>;
}

type Defaulted<Row, Column extends keyof Row> = Omit<Row, Column> & {
  readonly [C in Column]: Generated<Row[C]>;
};
