/** Which units of an offer are free on which day: counts them, takes and releases them, and looks ahead for free days. */
import { type Kysely, type SqlBool, sql } from 'kysely';
import type { Tables, TakenUnitRow } from '#storage';
import type { BookingKind, Fragment, Offer } from './kind.ts';
import { lengthOf, type Stay, shiftStay, timeText } from './stay.ts';

/** The offers of some hotels or cars, cheapest first. */
export async function offersOf(
  kysely: Kysely<Tables>,
  { tables, offer: { columns } }: BookingKind,
  resourceIds: readonly string[],
): Promise<readonly Offer[]> {
  if (resourceIds.length === 0) return [];
  const { rows } = await sql<Offer>`select id, ${columns.resource} as resource_id, ${columns.name} as name,
      ${columns.guests} as guests, units, price, currency
    from ${sql.table(tables.offers)} where ${columns.resource} in (${sql.join(resourceIds)})
    order by price, id`.execute(kysely);
  return rows;
}

/** How many units are taken on which day, by offer; a day without an entry has none taken. */
export type TakenUnits = ReadonlyMap<string, ReadonlyMap<number, number>>;

type Days = Pick<Stay, 'firstDay' | 'endDay'>;

/** A hold that has lapsed takes nothing. */
export async function takenIn(
  kysely: Kysely<Tables>,
  { tables }: BookingKind,
  offers: readonly Offer[],
  { firstDay, endDay }: Days,
  nowMs: number,
): Promise<TakenUnits> {
  const taken = new Map(offers.map(({ id }) => [id, new Map<number, number>()]));
  if (offers.length === 0) return taken;
  const { rows } = await sql<{ offer_id: string; day: number; taken: number | string }>`
    select offer_id, day, count(*) as taken from ${sql.table(tables.days)}
    where offer_id in (${sql.join([...taken.keys()])}) and day >= ${firstDay} and day < ${endDay}
      and (held_until is null or held_until > ${timeText(nowMs)})
    group by offer_id, day`.execute(kysely);
  for (const row of rows) taken.get(row.offer_id)?.set(row.day, Number(row.taken));
  return taken;
}

/** The number of units that are free on every day of a stay. */
export function unitsLeft({ id, units }: Offer, { firstDay, endDay }: Stay, taken: TakenUnits): number {
  let most = 0;
  for (let day = firstDay; day < endDay; day += 1) most = Math.max(most, taken.get(id)?.get(day) ?? 0);
  return Math.max(0, units - most);
}

/** True for a hotel or car with an offer for so many guests that is free on every day of the stay. */
export function hasRoom(
  { tables, offer: { columns } }: BookingKind,
  stay: Stay | undefined,
  guests: number,
  nowMs: number,
) {
  const { resources, offers, days } = tables;
  const fits = sql`units > 0 and ${columns.guests} >= ${guests}`;
  const isFull =
    stay &&
    sql`exists (
    select 1 from ${sql.table(days)} as d
    where d.offer_id = o.id and d.day >= ${stay.firstDay} and d.day < ${stay.endDay}
      and (d.held_until is null or d.held_until > ${timeText(nowMs)})
    group by d.day having count(*) >= o.units
  )`;
  return sql<SqlBool>`exists (
    select 1 from ${sql.table(offers)} as o where o.${columns.resource} = ${sql.ref(`${resources}.id`)}
      and ${fits} ${isFull === undefined ? sql`` : sql`and not ${isFull}`}
  )`;
}

/** The values of `hasRoom`, in the order of its SQL. */
export function roomValues(stay: Stay | undefined, guests: number, nowMs: number): readonly (string | number)[] {
  return stay === undefined ? [guests] : [guests, stay.firstDay, stay.endDay, timeText(nowMs)];
}

/** An offer with the days on which it is free. */
export interface FreeStay {
  readonly offer: Offer;
  readonly stay: Stay;
}

/** The first of the offers that is free for the stay. */
export async function findFreeOffer(
  kysely: Kysely<Tables>,
  kind: BookingKind,
  { offers, stay, nowMs }: StaySearch,
): Promise<FreeStay | undefined> {
  const taken = await takenIn(kysely, kind, offers, stay, nowMs);
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
  readonly nowMs: number;
}

/** The offers that are free for as long as the stay, with the day on which it would begin: earliest first, a year ahead at most. */
export async function* freeStays(
  kysely: Kysely<Tables>,
  kind: BookingKind,
  { offers, stay, nowMs }: StaySearch,
): AsyncGenerator<FreeStay, undefined> {
  for (let from = 0; from < daysAhead; from += daysAtOnce) {
    const to = Math.min(from + daysAtOnce, daysAhead);
    const days = { firstDay: stay.firstDay + from, endDay: stay.firstDay + to - 1 + lengthOf(stay) };
    const taken = await takenIn(kysely, kind, offers, days, nowMs);
    for (let ahead = from; ahead < to; ahead += 1) {
      const shifted = shiftStay(stay, ahead);
      const offer = offers.find((each) => unitsLeft(each, shifted, taken) > 0);
      if (offer !== undefined) yield { offer, stay: shifted };
    }
  }
}

export interface UnitsToTake extends FreeStay {
  readonly bookingId: string;
  /** RFC 3339, UTC; null for a confirmed booking. */
  readonly heldUntil: string | null;
  readonly nowMs: number;
}

/**
 * Takes the first free unit of each day. Units count places and name no particular room, so a stay may have different
 * ones: so stays fit, in any order of booking, as long as no day needs more units than there are. Returns
 * false, and takes nothing, if a day has no free unit after all.
 */
export async function takeUnits(kysely: Kysely<Tables>, kind: BookingKind, request: UnitsToTake): Promise<boolean> {
  const { offer, stay, bookingId, heldUntil, nowMs } = request;
  const taken = await unitsInUse(kysely, kind, offer, stay, timeText(nowMs));
  const rows: Fragment[] = [];
  for (let day = stay.firstDay; day < stay.endDay; day += 1) {
    let unit = 1;
    while (taken.has(`${day} ${unit}`)) unit += 1;
    if (unit > offer.units) return false;
    rows.push(sql`(${sql.join([offer.id, day, unit, offer.units, bookingId, heldUntil])})`);
  }
  await sql`insert into ${sql.table(kind.tables.days)} (offer_id, day, unit, units, booking_id, held_until)
    values ${sql.join(rows)}`.execute(kysely);
  return true;
}

/** As `<day> <unit>`, once the holds that have lapsed by `now` are released. */
async function unitsInUse(
  kysely: Kysely<Tables>,
  kind: BookingKind,
  { id }: Offer,
  { firstDay, endDay }: Days,
  now: string,
): Promise<ReadonlySet<string>> {
  const read = async () => {
    const { rows } =
      await sql<TakenUnitRow>`select day, unit, booking_id, held_until from ${sql.table(kind.tables.days)}
      where offer_id = ${id} and day >= ${firstDay} and day < ${endDay}`.execute(kysely);
    return rows;
  };
  let rows = await read();
  const lapsed = rows.filter(({ held_until }) => held_until !== null && held_until <= now);
  for (const bookingId of new Set(lapsed.map(({ booking_id }) => booking_id))) {
    await releaseLapsed(kysely, kind, bookingId, now);
  }
  if (lapsed.length > 0) rows = await read();
  return new Set(rows.map(({ day, unit }) => `${day} ${unit}`));
}

/**
 * Writes the booking before its days, like every other writer of both: otherwise two of them could deadlock. A booking
 * that was confirmed in the meantime keeps its days.
 */
async function releaseLapsed(kysely: Kysely<Tables>, kind: BookingKind, id: string, now: string): Promise<void> {
  const { numAffectedRows } = await sql`update ${sql.table(kind.tables.bookings)}
    set status = 'cancelled', version = version + 1, expires_at = null, refund = 0
    where id = ${id} and status = 'pending' and expires_at <= ${now}`.execute(kysely);
  if (numAffectedRows !== 0n) await releaseUnits(kysely, kind, id);
}

export async function releaseUnits(kysely: Kysely<Tables>, { tables }: BookingKind, bookingId: string): Promise<void> {
  await sql`delete from ${sql.table(tables.days)} where booking_id = ${bookingId}`.execute(kysely);
}

/** Ends the hold of a booking that is confirmed: its units no longer lapse. */
export async function keepUnits(kysely: Kysely<Tables>, { tables }: BookingKind, bookingId: string): Promise<void> {
  await sql`update ${sql.table(tables.days)} set held_until = null where booking_id = ${bookingId}`.execute(kysely);
}
