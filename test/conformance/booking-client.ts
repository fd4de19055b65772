/** What a client of a booking service does, so that the cases can say it in a word. */
import assert from 'node:assert/strict';
import type { Test } from 'supertest';
import type { BookingKind, InventoryItem, Offer, Stay } from './booking-kinds.ts';
import { below, call, callAsDemo, type OpenDesk } from './desk.ts';

export interface Money {
  readonly amount: string;
  readonly currency: string;
}

/** What both services answer alike; dates stand beside these under the names of their kind. */
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
  /** A stay that no other case books. @default one night or day long */
  readonly nextStay: (length?: number) => Stay;
  /** Of all that the service has several of, what there is least of. */
  readonly scarcest: () => Promise<Offer>;
  /** A POST of a booking by `user`, whose password is the name. @default demo */
  readonly post: (body: string | object, user?: string) => Test;
  /** A POST that must be answered with 201. */
  readonly book: (body: object) => Promise<Booking>;
  /** A POST for each unit of the offer, so that it is sold out for the stay. */
  readonly bookAll: (offer: Offer, stay: Stay) => Promise<readonly Booking[]>;
  readonly change: (booking: Booking, body: object, ifMatch?: string) => Test;
  readonly read: (booking: Booking) => Test;
  /** How many are left of the offer in a stay, as the item itself says. */
  readonly left: (offer: Offer, stay: Stay) => Promise<number>;
  /** The path of a booking below the desk's base URL. */
  readonly pathOf: (booking: Booking) => string;
}

export function createBookingClient(desk: OpenDesk, kind: BookingKind): BookingClient {
  const { prefix, thing, offersOf, leftOf } = kind;
  const post = (body: string | object, user = 'demo') =>
    call(desk, `${prefix}/bookings/`, 'post').auth(user, user).type('json').send(body);
  const pathOf = ({ url }: Booking) => below(desk, new URL(url).pathname);

  async function book(body: object): Promise<Booking> {
    const { status, body: booking } = await post(body);
    assert.equal(status, 201, JSON.stringify(booking));
    return booking;
  }

  return {
    desk,
    kind,
    nextStay: createCalendar(kind),
    post,
    book,
    pathOf,
    read: (booking) => callAsDemo(desk, pathOf(booking)),
    change(booking, body, ifMatch) {
      const patch = callAsDemo(desk, pathOf(booking), 'patch').type('json').send(body);
      return ifMatch === undefined ? patch : patch.set('If-Match', ifMatch);
    },
    async scarcest() {
      const { body } = await callAsDemo(desk, `${prefix}/?limit=100`).expect(200);
      const offers = (body.items as InventoryItem[]).flatMap(offersOf).filter(({ units }) => units > 1);
      const [least] = offers.toSorted((a, b) => a.units - b.units);
      assert.ok(least !== undefined, `nothing is offered at ${prefix}/`);
      return least;
    },
    async bookAll({ request, units }, stay) {
      return Promise.all(Array.from({ length: units }, () => book({ ...request, ...stay })));
    },
    async left(offer, stay) {
      const path = `${prefix}/${offer.request[thing]}?${new URLSearchParams(stay)}`;
      return leftOf((await callAsDemo(desk, path).expect(200)).body, offer);
    },
  };
}

/** Far enough ahead that a cancellation is free, and that "the next free night" does not reach it. */
function createCalendar({ stay }: BookingKind): BookingClient['nextStay'] {
  let next = 60;
  return (length = 1) => {
    const daysAhead = next;
    next += length + 1;
    return stay(daysAhead, length);
  };
}
