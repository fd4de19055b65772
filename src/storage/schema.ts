/** The tables, as the migrations leave them: what a row holds when read, and what may be left out when written. */
import type { Generated } from 'kysely';

export type BookingStatus = 'pending' | 'confirmed' | 'cancelled';

export interface HotelRow {
  /** UUID, lower-case, as are all ids but those of accounts and messages. */
  readonly id: string;
  readonly name: string;
  readonly city: string;
}

export interface CarRow {
  readonly id: string;
  readonly model: string;
  readonly class: string;
  readonly city: string;
}

interface BookingRow {
  readonly id: string;
  /** Whose it is: the `X-Travel-User` who made it. */
  readonly user: string;
  readonly status: BookingStatus;
  /** Counts the changes, from 1: what an ETag is made of. */
  readonly version: number;
  /** RFC 3339, UTC. */
  readonly created_at: string;
}

export interface HotelBookingRow extends BookingRow {
  readonly hotel_id: string;
}

export interface CarBookingRow extends BookingRow {
  readonly car_id: string;
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
  readonly cars: CarRow;
  readonly hotel_bookings: Omit<HotelBookingRow, 'version'> & {
    readonly version: Generated<number>;
  };
  readonly car_bookings: Omit<CarBookingRow, 'version'> & {
    readonly version: Generated<number>;
  };
  readonly accounts: AccountRow;
  readonly messages: Omit<MessageRow, 'id'> & {
    readonly id: Generated<number>;
  };
}
