/** The types of the tables: their rows, and the columns that an insert may omit. */
import type { Generated } from 'kysely';

export type BookingStatus = 'pending' | 'confirmed' | 'cancelled';

export interface HotelRow {
  /** A UUID in lower case, like all IDs except those of accounts and messages. */
  readonly id: string;
  readonly name: string;
  readonly city: string;
}

/** Something that can be booked: a number of units at a price per day. */
interface OfferRow {
  readonly id: string;
  /** The number of units that exist. */
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
  /** The number of guests that a room sleeps. */
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
  /** The owner, from the header `X-Travel-User`. */
  readonly user: string;
  readonly status: BookingStatus;
  /** Starts at 1 and increases with every change. ETags are derived from it. */
  readonly version: number;
  /** RFC 3339 in UTC, like all times. */
  readonly created_at: string;
  /** Eight letters and digits that are easy to read aloud. */
  readonly reference: string;
  /** A date for hotels, a time for cars. */
  readonly starts_at: string;
  readonly ends_at: string;
  /** For the whole booking, in minor units. */
  readonly price: number;
  readonly currency: string;
  /** JSON: `[{ "before": <time>, "refund": <minor units> }]`, earliest first. */
  readonly policy: string;
  /** When a pending booking expires. */
  readonly expires_at: string | null;
  /** In minor units. Only cancelled bookings have it. */
  readonly refund: number | null;
}

export interface HotelBookingRow extends BookingRow {
  readonly hotel_id: string;
  /** The name of the room type at the time of booking. */
  readonly room_type: string;
  readonly guests: number;
}

export interface CarBookingRow extends BookingRow {
  readonly car_id: string;
}

/** One unit of an offer that is taken for one day. */
export interface TakenUnitRow {
  readonly offer_id: string;
  /** Days since 1970-01-01, UTC. */
  readonly day: number;
  /** From 1 to `units`. It does not identify a particular room or car. */
  readonly unit: number;
  /** The number of units that the offer has. A check constraint limits `unit` to it. */
  readonly units: number;
  readonly booking_id: string;
  /** The unit is free from this time on, even while the row still exists. Null for confirmed bookings. */
  readonly held_until: string | null;
}

/** A response that is replayed to repeated requests. */
export interface StoredResponseRow {
  /** Digest of the user, method, path and idempotency key. */
  readonly id: string;
  /** Digest of the request body. */
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
  /** A 32-bit integer. */
  readonly id: number;
  readonly account_id: string;
  readonly subject: string;
  readonly body: string;
  /** RFC 3339, UTC. */
  readonly created_at: string;
}

/** The tables by name, for Kysely. Inserts may omit `Generated` columns. */
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
