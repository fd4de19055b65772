/** Which offer and which days an order gets. */
import type { Kysely } from 'kysely';
import { type Fault, type Problem, problem } from '#http';
import type { Tables } from '#storage';
import { firstFreeStay } from './next-free.ts';
import { offersOf, takenIn, unitsLeft } from './offers.ts';
import { SoldOut } from './sold-out.ts';
import { stayOf } from './stay.ts';
import { dayMs, type Offer, type Stay, type Trade } from './trade.ts';

export interface Order {
  readonly user: string;
  readonly thingId: string;
  /** Undefined: the cheapest that is free. */
  readonly offerName: string | undefined;
  /** Undefined: the next free day. */
  readonly stay: Stay | undefined;
  readonly guests: number;
  readonly hold: boolean;
  readonly nowMs: number;
}

export interface Choice {
  readonly offer: Offer;
  readonly stay: Stay;
}

/** Throws `bad-body` for what there is not, and SoldOut for what is not free. */
export async function choose(kysely: Kysely<Tables>, trade: Trade, order: Order): Promise<Choice> {
  // Not before, since a request that comes again is answered as it was, however late.
  if (order.stay && order.stay.fromMs < trade.earliestMs(order.nowMs)) {
    throw badBody({ pointer: `/${trade.ends[0]}`, detail: 'lies in the past' });
  }
  const offers = await offersOf(kysely, trade, [order.thingId]);
  const fitting = fittingOffers(trade, offers, order);
  const choice = order.stay
    ? await chooseOffer(kysely, trade, fitting, { ...order, stay: order.stay })
    : await firstFreeStay(kysely, trade, { offers: fitting, stay: nextStay(trade, order.nowMs), nowMs: order.nowMs });
  if (choice === undefined) throw new SoldOut({ order, offers, fitting });
  return choice;
}

function nextStay(trade: Trade, nowMs: number): Stay {
  const fromMs = trade.nextDay(nowMs) * dayMs;
  return stayOf(fromMs, fromMs + dayMs);
}

async function chooseOffer(
  kysely: Kysely<Tables>,
  trade: Trade,
  offers: readonly Offer[],
  { stay, nowMs }: { readonly stay: Stay; readonly nowMs: number },
): Promise<Choice | undefined> {
  const taken = await takenIn(kysely, trade, offers, stay, new Date(nowMs).toISOString());
  const offer = offers.find((each) => unitsLeft(each, stay, taken) > 0);
  return offer && { offer, stay };
}

/** Of all offers of a thing, those that the order may mean. */
function fittingOffers(trade: Trade, offers: readonly Offer[], { offerName, guests }: Order): readonly Offer[] {
  if (offers.length === 0) throw badBody({ pointer: `/${trade.thing}`, detail: `is the id of no ${trade.name}` });
  const named = offers.filter(({ name }) => offerName === undefined || name === offerName);
  if (named.length === 0) {
    const known = offers.map(({ name }) => name).join(', ');
    throw badBody({ pointer: '/room_type', detail: `is no room type of this hotel; known: ${known}` });
  }
  const fitting = named.filter((offer) => offer.guests >= guests);
  if (fitting.length > 0) return fitting;
  const most = Math.max(...named.map((offer) => offer.guests));
  throw badBody({ pointer: '/guests', detail: `must be at most ${most} in one room` });
}

/** Each `pointer` is a JSON pointer into the request body. */
export function badBody(...errors: readonly Fault[]): Problem {
  return problem('bad-body', { errors });
}
