/** Hotels and cars as the same cases see them: what differs is data. */
import { guestsCarBooking, guestsHotelBooking } from './desk.ts';

/** Something that can be booked: what a request for it says, and how many there are of it. */
export interface Offer {
  readonly request: Readonly<Record<string, string>>;
  readonly units: number;
}

/** From when to when, under the names of its kind. */
export type Stay = Readonly<Record<string, string>>;

export interface BookingKind {
  readonly prefix: '/v1/hotels' | '/v1/cars';
  readonly thing: 'hotel_id' | 'car_id';
  /** The ends of a stay: fields of a booking, and arguments of the list. */
  readonly ends: readonly [from: string, to: string];
  /** A stay of so many nights or days that begins so many days from now. */
  readonly stay: (daysAhead: number, length?: number) => Stay;
  readonly guests: string;
  /** What an item of the inventory offers. */
  readonly offersOf: (item: InventoryItem) => readonly Offer[];
  /** How many are left of an offer, as an item shows it for a stay. */
  readonly leftOf: (item: InventoryItem, offer: Offer) => number;
}

export interface InventoryItem {
  readonly id: string;
  readonly room_types?: readonly { readonly name: string; readonly rooms: number; readonly guests: number }[];
  readonly count?: number;
  readonly availability?: unknown;
}

/** An ISO date, so many days from today in UTC. */
export function dateIn(days: number): string {
  return new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
}

const hotels: BookingKind = {
  prefix: '/v1/hotels',
  thing: 'hotel_id',
  ends: ['check_in', 'check_out'],
  stay: (daysAhead, length = 1) => ({ check_in: dateIn(daysAhead), check_out: dateIn(daysAhead + length) }),
  guests: guestsHotelBooking,
  offersOf: ({ id, room_types = [] }) =>
    room_types.map(({ name, rooms }) => ({ request: { hotel_id: id, room_type: name }, units: rooms })),
  leftOf({ availability }, { request }) {
    const rows = (availability ?? []) as { room_type: string; rooms_left: number }[];
    return rows.find(({ room_type }) => room_type === request['room_type'])?.rooms_left ?? 0;
  },
};

const cars: BookingKind = {
  prefix: '/v1/cars',
  thing: 'car_id',
  ends: ['pickup_at', 'dropoff_at'],
  stay: (daysAhead, length = 1) => ({
    pickup_at: `${dateIn(daysAhead)}T09:00:00Z`,
    dropoff_at: `${dateIn(daysAhead + length - 1)}T18:30:00Z`,
  }),
  guests: guestsCarBooking,
  offersOf: ({ id, count = 0 }) => [{ request: { car_id: id }, units: count }],
  leftOf: ({ availability }) => (availability as { cars_left: number } | undefined)?.cars_left ?? 0,
};

export const bookingKinds: readonly BookingKind[] = [hotels, cars];
