/** Which units of an offer are free on which day: counts them, takes and releases them, and looks ahead for free days. */
import { type Kysely, type SqlBool, sql } from 'kysely';
import { createStatement, type Tables, type TakenUnitRow } from '#storage';
import type { BookingKind, Offer } from './kind.ts';
import { endsTooLate, lengthOf, type Stay, shiftStay } from './stay.ts';

export type UnitStatements = ReturnType<typeof prepareUnits>;

/** The statements about the offers of a kind and their units. */
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
        const valuesOf = (row: number) => unitColumns.map((column) => slot((others) => others[row]?.[column]));
        const tuples = rows.map((_, row) => sql`(${sql.join(valuesOf(row))})`);
        return sql`insert into ${days} (${sql.join(names)}) values ${sql.join(tuples)}`;
      },
      ({ length }) => length,
    ),
    cancelLapsed: createStatement<{ readonly id: string; readonly now: string }>(
      (slot) => sql`update ${sql.table(tables.bookings)}
        set status = 'cancelled', version = version + 1, expires_at = null, refund = 0
        where id = ${slot(({ id }) => id)} and status = 'pending' and expires_at <= ${slot(({ now }) => now)}`,
    ),
    deleteUnits: createStatement<string>((slot) => sql`delete from ${days} where booking_id = ${slot((id) => id)}`),
    /** Ends the hold of a booking that is confirmed: its units no longer lapse. */
    keepUnits: createStatement<string>(
      (slot) => sql`update ${days} set held_until = null where booking_id = ${slot((id) => id)}`,
    ),
  };
}

const unitColumns = ['offer_id', 'day', 'unit', 'units', 'booking_id', 'held_until'] as const;

type UnitInUse = Pick<TakenUnitRow, 'day' | 'unit' | 'booking_id' | 'held_until'>;

/** The offers of some hotels or cars, cheapest first. */
export async function offersOf(
  kysely: Kysely<Tables>,
  { readOffers }: UnitStatements,
  resourceIds: readonly string[],
): Promise<readonly Offer[]> {
  return resourceIds.length === 0 ? [] : (await readOffers(kysely, resourceIds)).rows;
}

/** How many units are taken on which day, by offer; a day without an entry has none taken. */
export type TakenUnits = ReadonlyMap<string, ReadonlyMap<number, number>>;

type Days = Pick<Stay, 'firstDay' | 'endDay'>;

interface TakenSearch extends Days {
  readonly offers: readonly Offer[];
  /** RFC 3339, UTC, as in all searches. */
  readonly now: string;
}

interface TakenCount {
  readonly offer_id: string;
  readonly day: number;
  readonly taken: number | string;
}

/** A hold that has lapsed takes nothing. */
export async function takenIn(
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

/** The number of units that are free on every day of a stay. */
export function unitsLeft({ id, units }: Offer, { firstDay, endDay }: Stay, taken: TakenUnits): number {
  let most = 0;
  for (let day = firstDay; day < endDay; day += 1) most = Math.max(most, taken.get(id)?.get(day) ?? 0);
  return Math.max(0, units - most);
}

/** True for a hotel or car with an offer for so many guests, and if there is a stay, one that is free on all of its days. */
export function hasRoom(
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

/** An offer with the days on which it is free. */
export interface FreeStay {
  readonly offer: Offer;
  readonly stay: Stay;
}

/** The first of the offers that is free for the stay. */
export async function findFreeOffer(
  kysely: Kysely<Tables>,
  statements: UnitStatements,
  { offers, stay, now }: StaySearch,
): Promise<FreeStay | undefined> {
  const taken = await takenIn(kysely, statements, { ...stay, offers, now });
  const offer = offers.find((each) => unitsLeft(each, stay, taken) > 0);
  return offer && { offer, stay };
}

const daysAhead = 365;
const daysAtOnce = 30;

export interface StaySearch {
  /** In the order in which they are tried for each day. */
  readonly offers: readonly Offer[];
  /** The first stay that would do; later ones have the same length. */
  readonly stay: Stay;
  readonly now: string;
}

/** The offers that are free for as long as the stay, with the day on which it would begin: earliest first, a year ahead at most. */
export async function* freeStays(
  kysely: Kysely<Tables>,
  statements: UnitStatements,
  { offers, stay, now }: StaySearch,
): AsyncGenerator<FreeStay, undefined> {
  for (let from = 0; from < daysAhead; from += daysAtOnce) {
    const to = Math.min(from + daysAtOnce, daysAhead);
    const days = { firstDay: stay.firstDay + from, endDay: stay.firstDay + to - 1 + lengthOf(stay) };
    const taken = await takenIn(kysely, statements, { ...days, offers, now });
    for (let ahead = from; ahead < to; ahead += 1) {
      const shifted = shiftStay(stay, ahead);
      if (endsTooLate(shifted)) return undefined;
      const offer = offers.find((each) => unitsLeft(each, shifted, taken) > 0);
      if (offer !== undefined) yield { offer, stay: shifted };
    }
  }
}

/**
 * The first free unit of each day of a stay, once the holds that have lapsed are released; undefined if a day has none
 * after all. Units count places and name no particular room, so a stay may have different ones: so stays fit, in any order
 * of booking, as long as no day needs more units than there are.
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

/** As `<day> <unit>`. */
async function unitsInUse(
  kysely: Kysely<Tables>,
  statements: UnitStatements,
  wanted: FreeStay,
  now: string,
): Promise<ReadonlySet<string>> {
  const read = async () => (await statements.readUnits(kysely, wanted)).rows;
  let rows = await read();
  const lapsed = rows.filter(({ held_until }) => held_until !== null && held_until <= now);
  for (const id of new Set(lapsed.map(({ booking_id }) => booking_id))) {
    await releaseLapsed(kysely, statements, id, now);
  }
  if (lapsed.length > 0) rows = await read();
  return new Set(rows.map(({ day, unit }) => `${day} ${unit}`));
}

/**
 * Writes the booking before its days, like every other writer of both: otherwise two of them could deadlock. A booking
 * that was confirmed in the meantime keeps its days.
 */
async function releaseLapsed(
  kysely: Kysely<Tables>,
  { cancelLapsed, deleteUnits }: UnitStatements,
  id: string,
  now: string,
): Promise<void> {
  const { numAffectedRows } = await cancelLapsed(kysely, { id, now });
  if (numAffectedRows !== 0n) await deleteUnits(kysely, id);
}
