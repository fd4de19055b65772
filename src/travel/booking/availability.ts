/** Availability: which offers are free for a stay, when a stay is free, and what can be booked instead when sold out. */
import { type Kysely, type SqlBool, sql } from 'kysely';
import { z } from 'zod';
import type { Problem } from '#http';
import type { Tables } from '../storage/schema.ts';
import { createStatement } from '../storage/statement.ts';
import { bookingProblem } from './booking-problem.ts';
import { isTakenAt } from './holds.ts';
import type { BookingKind, Offer } from './kind.ts';
import { moneyOf, moneySchema, priceOf } from './money.ts';
import { endsTooLate, lengthOf, type Stay, shiftStay, stayEndSchemas } from './stay.ts';

export type AvailabilityStatements = ReturnType<typeof prepareAvailability>;

/** Prepares the statements that read the offers of a kind and count their taken units. */
export function prepareAvailability({ tables, offer: { columns } }: BookingKind) {
  return {
    readOffers: createStatement<readonly string[], Offer>(
      (slot, resourceIds) => sql`select id, ${columns.resource} as resource_id, ${columns.name} as name,
          ${columns.guests} as guests, units, price, currency
        from ${sql.table(tables.offers)}
        where ${columns.resource} in (${sql.join(resourceIds.map((_, index) => slot((ids) => ids[index])))})
        order by price, id`,
      ({ length }) => length,
    ),
    countTaken: createStatement<TakenSearch, TakenCount>(
      (slot, { offers }) => sql`select offer_id, day, count(*) as taken from ${sql.table(tables.days)}
        where offer_id in (${sql.join(offers.map((_, index) => slot((search) => search.offers[index]?.id)))})
          and day >= ${slot(({ firstDay }) => firstDay)} and day < ${slot(({ endDay }) => endDay)}
          and ${isTakenAt(slot(({ now }) => now))}
        group by offer_id, day`,
      ({ offers }) => offers.length,
    ),
  };
}

/** Returns the offers of the given hotels or cars, cheapest first. */
export async function loadOffers(
  kysely: Kysely<Tables>,
  { readOffers }: AvailabilityStatements,
  resourceIds: readonly string[],
): Promise<readonly Offer[]> {
  return resourceIds.length === 0 ? [] : (await readOffers(kysely, resourceIds)).rows;
}

export interface StaySearch {
  /** In order of preference. */
  readonly offers: readonly Offer[];
  readonly stay: Stay;
  /** RFC 3339 in UTC, like every `now` in this file. */
  readonly now: string;
}

/** Returns the offers that are free for the stay, each with the number of units that can be booked for all of it. */
export async function findFreeOffers(
  kysely: Kysely<Tables>,
  statements: AvailabilityStatements,
  { offers, stay, now }: StaySearch,
): Promise<readonly { readonly offer: Offer; readonly units: number }[]> {
  const taken = await readTakenUnits(kysely, statements, { ...stay, offers, now });
  return offers.map((offer) => ({ offer, units: unitsLeft(offer, stay, taken) })).filter(({ units }) => units > 0);
}

/** An offer and a stay for which it is free. */
export interface FreeStay {
  readonly offer: Offer;
  readonly stay: Stay;
}

/** How many start dates a search tries: those of the coming year. */
export const startDatesMax = 365;
const startDatesPerQuery = 30;

/**
 * Moves the stay from day to day and yields it where an offer is free, earliest first. Tries the given number of start
 * dates, of which the first is that of `stay`.
 */
export async function* findFreeStays(
  kysely: Kysely<Tables>,
  statements: AvailabilityStatements,
  { offers, stay, now }: StaySearch,
  startDates: number,
): AsyncGenerator<FreeStay, undefined> {
  for (let from = 0; from < startDates; from += startDatesPerQuery) {
    const to = Math.min(from + startDatesPerQuery, startDates);
    const days = { firstDay: stay.firstDay + from, endDay: stay.firstDay + to - 1 + lengthOf(stay) };
    const taken = await readTakenUnits(kysely, statements, { ...days, offers, now });
    for (let ahead = from; ahead < to; ahead += 1) {
      const shifted = shiftStay(stay, ahead);
      if (endsTooLate(shifted)) return undefined;
      const offer = offers.find((each) => unitsLeft(each, shifted, taken) > 0);
      if (offer !== undefined) yield { offer, stay: shifted };
    }
  }
}

/** The number of taken units per day, by offer ID. A missing day means that no unit is taken. */
type TakenUnits = ReadonlyMap<string, ReadonlyMap<number, number>>;

type Days = Pick<Stay, 'firstDay' | 'endDay'>;

interface TakenSearch extends Days {
  readonly offers: readonly Offer[];
  readonly now: string;
}

interface TakenCount {
  readonly offer_id: string;
  readonly day: number;
  readonly taken: number | string;
}

/** Counts the taken units of each offer and day. Expired holds do not count. */
async function readTakenUnits(
  kysely: Kysely<Tables>,
  { countTaken }: AvailabilityStatements,
  search: TakenSearch,
): Promise<TakenUnits> {
  const taken = new Map(search.offers.map(({ id }) => [id, new Map<number, number>()]));
  if (taken.size === 0) return taken;
  const { rows } = await countTaken(kysely, search);
  for (const row of rows) taken.get(row.offer_id)?.set(row.day, Number(row.taken));
  return taken;
}

/** Returns how many units of the offer can be booked for the whole stay. */
function unitsLeft({ id, units }: Offer, { firstDay, endDay }: Stay, taken: TakenUnits): number {
  let mostTaken = 0;
  for (let day = firstDay; day < endDay; day += 1) mostTaken = Math.max(mostTaken, taken.get(id)?.get(day) ?? 0);
  return Math.max(0, units - mostTaken);
}

/**
 * Builds an SQL condition for hotels or cars that have an offer for the number of guests. With a stay, the offer must
 * also be free on every day of it.
 */
export function hasMatchingOffer(
  { tables, offer: { columns } }: BookingKind,
  guests: number,
  stay?: Days & { readonly now: string },
) {
  const { resources, offers, days } = tables;
  const fits = sql`units > 0 and ${columns.guests} >= ${guests}`;
  const isFull =
    stay &&
    sql`exists (
    select 1 from ${sql.table(days)} as d
    where d.offer_id = o.id and d.day >= ${stay.firstDay} and d.day < ${stay.endDay}
      and ${isTakenAt(stay.now)}
    group by d.day having count(*) >= o.units
  )`;
  return sql<SqlBool>`exists (
    select 1 from ${sql.table(offers)} as o where o.${columns.resource} = ${sql.ref(`${resources}.id`)}
      and ${fits} ${isFull === undefined ? sql`` : sql`and not ${isFull}`}
  )`;
}

interface SoldOutRequest {
  /** Undefined if any day of the coming year would do. */
  readonly stay: Stay | undefined;
  /** All offers of the hotel or car that are large enough. */
  readonly largeEnough: readonly Offer[];
  /** The offers that match the request. */
  readonly matching: readonly Offer[];
  readonly now: string;
}

/** Aborts the transaction. Alternatives are searched afterwards, so that other requests do not wait for the search. */
export class SoldOut extends Error {
  override readonly name = 'SoldOut';
  readonly request: SoldOutRequest;

  constructor(request: SoldOutRequest) {
    super('sold out');
    this.request = request;
  }
}

const alternativesMax = 5;

/** Describes the alternatives that `soldOutProblem` lists. */
export function alternativesSchema(kind: BookingKind): z.ZodType {
  const [from, to] = kind.stay.fields;
  const [fromSchema, toSchema] = stayEndSchemas(kind);
  return z
    .array(z.object({ ...kind.alternative.shape, [from]: fromSchema, [to]: toSchema, price: moneySchema }))
    .max(alternativesMax)
    .optional()
    .describe('Offers and stays that can be booked instead.');
}

/** Creates the `sold-out` problem. Its alternatives are other offers for the same days, then later days. */
export async function soldOutProblem(
  kysely: Kysely<Tables>,
  kind: BookingKind & AvailabilityStatements,
  { request }: SoldOut,
): Promise<Problem> {
  const [from, to] = kind.stay.fields;
  const found = await findAlternatives(kysely, kind, request);
  const alternatives = found.map(({ offer, stay }) => ({
    ...kind.alternative.valuesOf(offer),
    [from]: kind.stay.print(stay.fromMs),
    [to]: kind.stay.print(stay.toMs),
    price: moneyOf(priceOf(offer, stay), offer.currency),
  }));
  return bookingProblem('sold-out', {
    detail: soldOutDetail(kind, request, found),
    extension: { alternatives },
  });
}

function soldOutDetail(
  { name, stay: { print }, alternative }: BookingKind,
  { stay }: SoldOutRequest,
  found: readonly FreeStay[],
): string {
  // Without a stay, every day of the coming year has been tried.
  if (stay === undefined) return `This ${name} is fully booked for a year.`;
  const areOthersFree = found.some((other) => other.stay === stay);
  const sentence = `${areOthersFree ? 'What you asked for' : `This ${name}`} is fully booked for these days`;
  if (found.length === 0) return `${sentence}, and for any stay of this length within a year.`;
  const others = found.map(({ offer, stay: { fromMs, toMs } }) =>
    [...Object.values(alternative.valuesOf(offer)), `${print(fromMs)} to ${print(toMs)}`].join(' '),
  );
  return `${sentence}. Available instead: ${others.join('; ')}.`;
}

async function findAlternatives(
  kysely: Kysely<Tables>,
  statements: AvailabilityStatements,
  { stay, largeEnough, matching, now }: SoldOutRequest,
): Promise<readonly FreeStay[]> {
  if (stay === undefined) return [];
  const others = await findFreeOffers(kysely, statements, { offers: largeEnough, stay, now });
  const found: FreeStay[] = others.slice(0, alternativesMax).map(({ offer }) => ({ offer, stay }));
  if (found.length === alternativesMax) return found;
  const nextDay = { offers: matching, stay: shiftStay(stay, 1), now };
  for await (const later of findFreeStays(kysely, statements, nextDay, startDatesMax)) {
    found.push(later);
    if (found.length === alternativesMax) break;
  }
  return found;
}
