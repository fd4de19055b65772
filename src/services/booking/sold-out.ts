/** What a client is told when nothing is left: what else there is. */
import type { Kysely } from 'kysely';
import { type Problem, problem } from '#http';
import type { Tables } from '#storage';
import type { Choice, Order } from './choose.ts';
import { moneyOf } from './money.ts';
import { freeStays } from './next-free.ts';
import { takenIn, unitsLeft } from './offers.ts';
import { lengthOf, shiftStay } from './stay.ts';
import type { Offer, Trade } from './trade.ts';

export const alternativesMax = 5;

interface Refusal {
  readonly order: Order;
  /** All that the thing has. */
  readonly offers: readonly Offer[];
  /** Those that the order meant. */
  readonly fitting: readonly Offer[];
}

/** Thrown inside the transaction; what else there is, is found out after it, when nobody waits for it any more. */
export class SoldOut extends Error {
  override readonly name = 'SoldOut';
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super('nothing is left of what was ordered');
    this.refusal = refusal;
  }
}

/** The problem `sold-out`, with other offers for the days, then later days, five of them at most. */
export async function soldOutProblem(kysely: Kysely<Tables>, trade: Trade, refusal: Refusal): Promise<Problem> {
  const choices = await alternativesTo(kysely, trade, refusal);
  const alternatives = choices.map(({ offer, stay }) => ({
    ...trade.offerFields(offer),
    [trade.ends[0]]: trade.writeEnd(stay.fromMs),
    [trade.ends[1]]: trade.writeEnd(stay.toMs),
    price: moneyOf(offer.price * lengthOf(stay), offer.currency),
  }));
  return problem('sold-out', {
    detail: `Nothing is left of this ${trade.name} for these days.`,
    extension: { alternatives },
  });
}

async function alternativesTo(
  kysely: Kysely<Tables>,
  trade: Trade,
  { order: { stay, guests, nowMs }, offers, fitting }: Refusal,
): Promise<readonly Choice[]> {
  if (stay === undefined) return [];
  const roomy = offers.filter((offer) => offer.guests >= guests);
  const taken = await takenIn(kysely, trade, roomy, stay, new Date(nowMs).toISOString());
  const choices: Choice[] = roomy
    .filter((offer) => unitsLeft(offer, stay, taken) > 0)
    .slice(0, alternativesMax)
    .map((offer) => ({ offer, stay }));
  if (choices.length === alternativesMax) return choices;
  for await (const choice of freeStays(kysely, trade, { offers: fitting, stay: shiftStay(stay, 1), nowMs })) {
    choices.push(choice);
    if (choices.length === alternativesMax) break;
  }
  return choices;
}
