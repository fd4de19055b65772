/** Looking ahead for days on which something is free, no further than a year and no more at once than needed. */
import type { Kysely } from 'kysely';
import type { Tables } from '#storage';
import type { Choice } from './choose.ts';
import { takenIn, unitsLeft } from './offers.ts';
import { lengthOf, shiftStay } from './stay.ts';
import type { Offer, Stay, Trade } from './trade.ts';

const daysAhead = 365;
const daysAtOnce = 30;

export interface Wish {
  /** In the order in which they are tried for each day. */
  readonly offers: readonly Offer[];
  /** The first that would do; later ones are as long. */
  readonly stay: Stay;
  readonly nowMs: number;
}

/** The earliest stay that is free, with the first offer that is free then. */
export async function firstFreeStay(kysely: Kysely<Tables>, trade: Trade, wish: Wish): Promise<Choice | undefined> {
  for await (const choice of freeStays(kysely, trade, wish)) return choice;
  return undefined;
}

/** One choice for each day from which on the stay is free, the earliest first. */
export async function* freeStays(
  kysely: Kysely<Tables>,
  trade: Trade,
  { offers, stay, nowMs }: Wish,
): AsyncGenerator<Choice, undefined> {
  const now = new Date(nowMs).toISOString();
  for (let from = 0; from < daysAhead; from += daysAtOnce) {
    const to = Math.min(from + daysAtOnce, daysAhead);
    const days = { firstDay: stay.firstDay + from, endDay: stay.firstDay + to - 1 + lengthOf(stay) };
    const taken = await takenIn(kysely, trade, offers, days, now);
    for (let ahead = from; ahead < to; ahead += 1) {
      const shifted = shiftStay(stay, ahead);
      const offer = offers.find((each) => unitsLeft(each, shifted, taken) > 0);
      if (offer !== undefined) yield { offer, stay: shifted };
    }
  }
}
