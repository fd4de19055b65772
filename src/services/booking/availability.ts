/** Availability: counts, reserves and releases the units of an offer day by day, and searches for free days. */
import { type Kysely, type SqlBool, sql } from 'kysely';
import { createStatement, type Tables, type TakenUnitRow } from '#storage';
import type { BookingKind, Offer } from './kind.ts';
import { endsTooLate, lengthOf, type Stay, shiftStay } from './stay.ts';

export type UnitStatements = ReturnType<typeof prepareUnits>;

/** Prepares the statements that read a kind's offers and read and write their units. */
export function prepareUnits({ tables, offer: { columns } }: BookingKind) {
  const days = sql.table(tables.days);
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
      (slot, { offers }) => sql`select offer_id, day, count(*) as taken from ${days}
        where offer_id in (${sql.join(offers.map((_, index) => slot((search) => search.offers[index]?.id)))})
          and day >= ${slot(({ firstDay }) => firstDay)} and day < ${slot(({ endDay }) => endDay)}
          and (held_until is null or held_until > ${slot(({ now }) => now)})
        group by offer_id, day`,
      ({ offers }) => offers.length,
    ),
    readUnits: createStatement<FreeStay, UnitInUse>(
      (slot) => sql`select day, unit, booking_id, held_until from ${days}
        where offer_id = ${slot(({ offer }) => offer.id)}
          and day >= ${slot(({ stay }) => stay.firstDay)} and day < ${slot(({ stay }) => stay.endDay)}`,
    ),
    insertUnits: createStatement<readonly TakenUnitRow[]>(
      (slot, rows) => {
        const names = unitColumns.map((column) => sql.ref(column));
        const valuesOf = (row: number) => unitColumns.map((column) => slot((units) => units[row]?.[column]));
        const tuples = rows.map((_, row) => sql`(${sql.join(valuesOf(row))})`);
        return sql`insert into ${days} (${sql.join(names)}) values ${sql.join(tuples)}`;
      },
      ({ length }) => length,
    ),
    cancelExpired: createStatement<{ readonly id: string; readonly now: string }>(
      (slot) => sql`update ${sql.table(tables.bookings)}
        set status = 'cancelled', version = version + 1, expires_at = null, refund = 0
        where id = ${slot(({ id }) => id)} and status = 'pending' and expires_at <= ${slot(({ now }) => now)}`,
    ),
    deleteUnits: createStatement<string>((slot) => sql`delete from ${days} where booking_id = ${slot((id) => id)}`),
    /** Makes the units of a pending booking permanent. Runs when the booking is confirmed. */
    confirmUnits: createStatement<string>(
      (slot) => sql`update ${days} set held_until = null where booking_id = ${slot((id) => id)}`,
    ),
  };
}

const unitColumns = ['offer_id', 'day', 'unit', 'units', 'booking_id', 'held_until'] as const;

type UnitInUse = Pick<TakenUnitRow, 'day' | 'unit' | 'booking_id' | 'held_until'>;

/** Returns the offers of the given hotels or cars, cheapest first. */
export async function loadOffers(
  kysely: Kysely<Tables>,
  { readOffers }: UnitStatements,
  resourceIds: readonly string[],
): Promise<readonly Offer[]> {
  return resourceIds.length === 0 ? [] : (await readOffers(kysely, resourceIds)).rows;
}

/** The number of taken units per day, by offer ID. A missing day means that no unit is taken. */
export type TakenUnits = ReadonlyMap<string, ReadonlyMap<number, number>>;

type Days = Pick<Stay, 'firstDay' | 'endDay'>;

interface TakenSearch extends Days {
  readonly offers: readonly Offer[];
  /** RFC 3339 in UTC, like every `now` in this file. */
  readonly now: string;
}

interface TakenCount {
  readonly offer_id: string;
  readonly day: number;
  readonly taken: number | string;
}

/** Counts the taken units of each offer and day. Expired holds do not count. */
export async function readTakenUnits(
  kysely: Kysely<Tables>,
  { countTaken }: UnitStatements,
  search: TakenSearch,
): Promise<TakenUnits> {
  const taken = new Map(search.offers.map(({ id }) => [id, new Map<number, number>()]));
  if (taken.size === 0) return taken;
  const { rows } = await countTaken(kysely, search);
  for (const row of rows) taken.get(row.offer_id)?.set(row.day, Number(row.taken));
  return taken;
}

/** Returns how many units of the offer can be booked for the whole stay. */
export function unitsLeft({ id, units }: Offer, { firstDay, endDay }: Stay, taken: TakenUnits): number {
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
      and (d.held_until is null or d.held_until > ${stay.now})
    group by d.day having count(*) >= o.units
  )`;
  return sql<SqlBool>`exists (
    select 1 from ${sql.table(offers)} as o where o.${columns.resource} = ${sql.ref(`${resources}.id`)}
      and ${fits} ${isFull === undefined ? sql`` : sql`and not ${isFull}`}
  )`;
}

/** An offer and a stay for which it is free. */
export interface FreeStay {
  readonly offer: Offer;
  readonly stay: Stay;
}

/** Finds the first offer that is free for the stay. */
export async function findFreeOffer(
  kysely: Kysely<Tables>,
  statements: UnitStatements,
  { offers, stay, now }: StaySearch,
): Promise<FreeStay | undefined> {
  const taken = await readTakenUnits(kysely, statements, { ...stay, offers, now });
  const offer = offers.find((each) => unitsLeft(each, stay, taken) > 0);
  return offer && { offer, stay };
}

const daysAhead = 365;
const daysPerQuery = 30;

export interface StaySearch {
  /** In order of preference. */
  readonly offers: readonly Offer[];
  /** The earliest acceptable stay. Later ones have the same length. */
  readonly stay: Stay;
  readonly now: string;
}

/** Yields free stays of the same length, earliest first: one per start date, up to a year ahead. */
export async function* findFreeStays(
  kysely: Kysely<Tables>,
  statements: UnitStatements,
  { offers, stay, now }: StaySearch,
): AsyncGenerator<FreeStay, undefined> {
  for (let from = 0; from < daysAhead; from += daysPerQuery) {
    const to = Math.min(from + daysPerQuery, daysAhead);
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

/**
 * Releases expired holds, then returns the first free unit of each day of the stay. Undefined if some day has no free
 * unit after all. A unit is not a particular room, so its number may differ from day to day. This way, a stay fits
 * whenever every day has a free unit, in whatever order the bookings were made.
 */
export async function findUnits(
  kysely: Kysely<Tables>,
  statements: UnitStatements,
  { offer, stay }: FreeStay,
  now: string,
): Promise<readonly number[] | undefined> {
  const taken = await unitsInUse(kysely, statements, { offer, stay }, now);
  const units: number[] = [];
  for (let day = stay.firstDay; day < stay.endDay; day += 1) {
    let unit = 1;
    while (taken.has(`${day} ${unit}`)) unit += 1;
    if (unit > offer.units) return undefined;
    units.push(unit);
  }
  return units;
}

/** Returns the taken units as `<day> <unit>`. */
async function unitsInUse(
  kysely: Kysely<Tables>,
  statements: UnitStatements,
  freeStay: FreeStay,
  now: string,
): Promise<ReadonlySet<string>> {
  const read = async () => (await statements.readUnits(kysely, freeStay)).rows;
  let rows = await read();
  const expired = rows.filter(({ held_until }) => held_until !== null && held_until <= now);
  for (const id of new Set(expired.map(({ booking_id }) => booking_id))) {
    await releaseExpired(kysely, statements, id, now);
  }
  if (expired.length > 0) rows = await read();
  return new Set(rows.map(({ day, unit }) => `${day} ${unit}`));
}

/**
 * Cancels a booking whose hold has expired and frees its units, unless it was confirmed in the meantime. Writes the
 * booking before its days, like all code that writes both: a different order could deadlock.
 */
async function releaseExpired(
  kysely: Kysely<Tables>,
  { cancelExpired, deleteUnits }: UnitStatements,
  id: string,
  now: string,
): Promise<void> {
  const { numAffectedRows } = await cancelExpired(kysely, { id, now });
  if (numAffectedRows !== 0n) await deleteUnits(kysely, id);
}
