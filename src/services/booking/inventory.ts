/** What there is, with what is left of it for a stay: pages and single things alike. */
import type { Kysely } from 'kysely';
import type { Tables } from '#storage';
import { offersOf, takenIn, unitsLeft } from './offers.ts';
import { lengthOf } from './stay.ts';
import type { Offer, Stay, Trade } from './trade.ts';

/** What a client asks for. */
export interface Wanted {
  readonly stay: Stay | undefined;
  /** Undefined: it did not say, and one is meant. */
  readonly guests: number | undefined;
}

/** What belongs to a thing beside its row. */
export interface Offered {
  readonly offers: readonly Offer[];
  /** What is left for the stay that was asked for, if one was. */
  readonly left: readonly Left[] | undefined;
}

export interface Left {
  readonly offer: Offer;
  readonly units: number;
  /** Of the whole stay, in minor units. */
  readonly price: number;
}

/** Only offers that are free and large enough are left. */
export async function withOffers<Thing extends { readonly id: string }>(
  kysely: Kysely<Tables>,
  trade: Trade,
  things: readonly Thing[],
  { stay, guests = 1 }: Wanted,
  nowMs: number,
): Promise<readonly (Thing & Offered)[]> {
  const ids = things.map(({ id }) => id);
  const offers = await offersOf(kysely, trade, ids);
  const left = stay && (await leftIn(kysely, trade, { offers, stay, guests, nowMs }));
  return things.map((thing) => ({
    ...thing,
    offers: offers.filter(({ thing_id }) => thing_id === thing.id),
    left: left?.filter(({ offer }) => offer.thing_id === thing.id),
  }));
}

interface Question {
  readonly offers: readonly Offer[];
  readonly stay: Stay;
  readonly guests: number;
  readonly nowMs: number;
}

async function leftIn(
  kysely: Kysely<Tables>,
  trade: Trade,
  { offers, stay, guests, nowMs }: Question,
): Promise<readonly Left[]> {
  const roomy = offers.filter((offer) => offer.guests >= guests);
  const taken = await takenIn(kysely, trade, roomy, stay, new Date(nowMs).toISOString());
  return roomy
    .map((offer) => ({ offer, units: unitsLeft(offer, stay, taken), price: offer.price * lengthOf(stay) }))
    .filter(({ units }) => units > 0);
}
