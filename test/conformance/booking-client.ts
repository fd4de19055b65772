/** A test client for the booking services, and the differences between hotels and cars. */
import assert from 'node:assert/strict';
import type { Test } from 'supertest';
import {
  below,
  call,
  callAsDemo,
  carBooking,
  guestCarBooking,
  guestHotelBooking,
  hotelBooking,
  type OpenDesk,
} from './desk.ts';

/** Something that can be booked: the request fields that select it, and the number of units. */
export interface Offer {
  readonly request: Readonly<Record<string, string>>;
  readonly units: number;
}

/** The start and the end of a stay, under the field names of its kind. */
export type Stay = Readonly<Record<string, string>>;

export interface BookingKind {
  readonly prefix: '/v1/hotels' | '/v1/cars';
  readonly idField: 'hotel_id' | 'car_id';
  /** The fields for the start and the end of a stay, which are also query arguments of the list. */
  readonly ends: readonly [from: string, to: string];
  /** Returns a stay of `length` nights or days that begins `daysAhead` days from today. */
  readonly stay: (daysAhead: number, length?: number) => Stay;
  /** The ID of a booking of the user `demo`. */
  readonly demoBooking: string;
  /** The ID of a booking of the user `guest`. */
  readonly guestBooking: string;
  readonly offersOf: (item: InventoryItem) => readonly Offer[];
  /** Returns how many units of an offer are left, according to the item. */
  readonly leftOf: (item: InventoryItem, offer: Offer) => number;
}

export interface InventoryItem {
  readonly id: string;
  readonly room_types?: readonly { readonly name: string; readonly rooms: number; readonly guests: number }[];
  readonly count?: number;
  readonly availability?: unknown;
}

export interface Money {
  readonly amount: string;
  readonly currency: string;
}

/** A booking as both services return it. The names of its dates depend on the kind. */
export interface Booking extends Readonly<Record<string, unknown>> {
  readonly id: string;
  readonly status: string;
  readonly reference: string;
  readonly price: Money;
  readonly created_at: string;
  readonly expires_at?: string;
  readonly cancellation_policy: readonly { readonly before: string; readonly refund: Money }[];
  readonly refund?: Money;
  readonly url: string;
}

export interface BookingClient {
  readonly desk: OpenDesk;
  readonly kind: BookingKind;
  /** Returns a stay that no other test books. @default one night or day long */
  readonly nextStay: (length?: number) => Stay;
  /** Returns the offer with the fewest units, but more than one. */
  readonly scarcest: () => Promise<Offer>;
  /** Returns a request body for a booking that is available. */
  readonly newRequest: () => Promise<object>;
  /** Posts a booking as `user`, whose password is the same as the name. @default demo */
  readonly post: (body: string | object, user?: string) => Test;
  /** Posts a booking and expects a 201. */
  readonly book: (body: object) => Promise<Booking>;
  /** Makes a new booking and returns it with its entity tag. */
  readonly bookNew: (more?: object) => Promise<{ readonly booking: Booking; readonly tag: string }>;
  /** Books every unit of the offer, so that it is sold out for the stay. */
  readonly bookAll: (offer: Offer, stay: Stay) => Promise<readonly Booking[]>;
  readonly change: (booking: Booking, body: object, ifMatch?: string) => Test;
  readonly read: (booking: Booking, user?: string) => Test;
  /** Returns how many units of the offer are left for a stay. */
  readonly left: (offer: Offer, stay: Stay) => Promise<number>;
  /** Returns the path of a booking below the desk's base URL. */
  readonly pathOf: (booking: Booking) => string;
}

export function createBookingClient(desk: OpenDesk, kind: BookingKind): BookingClient {
  const { prefix, idField, offersOf, leftOf } = kind;
  const nextStay = createCalendar(kind);
  const post = (body: string | object, user = 'demo') =>
    call(desk, `${prefix}/bookings/`, 'post').auth(user, user).type('json').send(body);
  const pathOf = ({ url }: Booking) => below(desk, new URL(url).pathname);
  const read = (booking: Booking, user = 'demo') => call(desk, pathOf(booking)).auth(user, user);

  async function book(body: object): Promise<Booking> {
    const { status, body: booking } = await post(body);
    assert.equal(status, 201, JSON.stringify(booking));
    return booking;
  }

  async function scarcest(): Promise<Offer> {
    const { body } = await callAsDemo(desk, `${prefix}/?limit=100`).expect(200);
    const offers = (body.items as InventoryItem[]).flatMap(offersOf).filter(({ units }) => units > 1);
    const [least] = offers.toSorted((a, b) => a.units - b.units);
    assert.ok(least !== undefined, `nothing is offered at ${prefix}/`);
    return least;
  }

  const newRequest = async () => ({ ...(await scarcest()).request, ...nextStay() });

  return {
    desk,
    kind,
    nextStay,
    scarcest,
    newRequest,
    post,
    book,
    pathOf,
    read,
    async bookNew(more = {}) {
      const booking = await book({ ...(await newRequest()), ...more });
      return { booking, tag: String((await read(booking).expect(200)).headers['etag']) };
    },
    change(booking, body, ifMatch) {
      const patch = callAsDemo(desk, pathOf(booking), 'patch').type('json').send(body);
      return ifMatch === undefined ? patch : patch.set('If-Match', ifMatch);
    },
    bookAll: ({ request, units }, stay) =>
      Promise.all(Array.from({ length: units }, () => book({ ...request, ...stay }))),
    async left(offer, stay) {
      const path = `${prefix}/${offer.request[idField]}?${new URLSearchParams(stay)}`;
      return leftOf((await callAsDemo(desk, path).expect(200)).body, offer);
    },
  };
}

/** Starts far enough ahead that cancelling is free and that bookings of "the next free night" do not interfere. */
function createCalendar({ stay }: BookingKind): BookingClient['nextStay'] {
  let next = 60;
  return (length = 1) => {
    const daysAhead = next;
    next += length + 1;
    return stay(daysAhead, length);
  };
}

/** Returns the ISO date that is `days` days from today in UTC. */
export function dateIn(days: number): string {
  return new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
}

/** Returns a date or a time that is `days` days later. */
export function daysAfter(text: string, days: number): string {
  const later = new Date(Date.parse(text) + days * 86_400_000).toISOString();
  return text.includes('T') ? later : later.slice(0, 10);
}

export const hotels: BookingKind = {
  prefix: '/v1/hotels',
  idField: 'hotel_id',
  ends: ['check_in', 'check_out'],
  stay: (daysAhead, length = 1) => ({ check_in: dateIn(daysAhead), check_out: dateIn(daysAhead + length) }),
  demoBooking: hotelBooking,
  guestBooking: guestHotelBooking,
  offersOf: ({ id, room_types = [] }) =>
    room_types.map(({ name, rooms }) => ({ request: { hotel_id: id, room_type: name }, units: rooms })),
  leftOf({ availability }, { request }) {
    const rows = (availability ?? []) as { room_type: string; rooms_left: number }[];
    return rows.find(({ room_type }) => room_type === request['room_type'])?.rooms_left ?? 0;
  },
};

export const cars: BookingKind = {
  prefix: '/v1/cars',
  idField: 'car_id',
  ends: ['pickup_at', 'dropoff_at'],
  stay: (daysAhead, length = 1) => ({
    pickup_at: `${dateIn(daysAhead)}T09:00:00Z`,
    dropoff_at: `${dateIn(daysAhead + length - 1)}T18:30:00Z`,
  }),
  demoBooking: carBooking,
  guestBooking: guestCarBooking,
  offersOf: ({ id, count = 0 }) => [{ request: { car_id: id }, units: count }],
  leftOf: ({ availability }) => (availability as { cars_left: number } | undefined)?.cars_left ?? 0,
};
