/** The units of an offer, day by day: which are free, and who takes them. */
import { type Kysely, sql } from 'kysely';
import type { Tables, TakenUnitRow } from '#storage';
import type { Offer, Stay, Trade } from './trade.ts';

export interface Taking {
  readonly offer: Offer;
  /** On each of its days a unit is free, as `takenIn` says. */
  readonly stay: Stay;
  readonly bookingId: string;
  readonly heldUntil: string | null;
  readonly nowMs: number;
}

/**
 * A unit is a place among so many, no door: on each day the first that is free. Stays that overlap on no day more than
 * there are rooms can always be given rooms without a move, so that nobody is turned away for an unlucky order.
 * False, and nothing is taken, when a day has none after all.
 */
export async function takeUnits(kysely: Kysely<Tables>, trade: Trade, taking: Taking): Promise<boolean> {
  const { offer, stay, bookingId, heldUntil } = taking;
  const taken = await freshUnits(kysely, trade, taking);
  const rows: ReturnType<typeof sql>[] = [];
  for (let day = stay.firstDay; day < stay.endDay; day += 1) {
    const unit = firstFree(taken.get(day));
    if (unit > offer.units) return false;
    rows.push(sql`(${sql.join([offer.id, day, unit, offer.units, bookingId, heldUntil])})`);
  }
  await sql`insert into ${sql.table(trade.days)} (offer_id, day, unit, units, booking_id, held_until)
    values ${sql.join(rows)}`.execute(kysely);
  return true;
}

/** By day, once the holds that have lapsed are released. */
async function freshUnits(
  kysely: Kysely<Tables>,
  trade: Trade,
  { offer, stay, nowMs }: Taking,
): Promise<ReadonlyMap<number, ReadonlySet<number>>> {
  const now = new Date(nowMs).toISOString();
  const read = async () => {
    const { rows } = await sql<TakenUnitRow>`select day, unit, booking_id, held_until from ${sql.table(trade.days)}
      where offer_id = ${offer.id} and day >= ${stay.firstDay} and day < ${stay.endDay}`.execute(kysely);
    return rows;
  };
  const rows = await read();
  const lapsed = new Set(rows.filter((row) => row.held_until !== null && row.held_until <= now).map(bookingOf));
  for (const id of lapsed) await releaseLapsed(kysely, trade, id, now);
  return unitsByDay(lapsed.size === 0 ? rows : await read());
}

function bookingOf({ booking_id }: TakenUnitRow): string {
  return booking_id;
}

/** The booking before its days, as everybody does who writes both; one that was confirmed meanwhile keeps them. */
async function releaseLapsed(kysely: Kysely<Tables>, trade: Trade, id: string, now: string): Promise<void> {
  const { numAffectedRows } = await sql`update ${sql.table(trade.bookings)}
    set status = 'cancelled', version = version + 1, expires_at = null, refund = 0
    where id = ${id} and status = 'pending' and expires_at <= ${now}`.execute(kysely);
  if (numAffectedRows !== 0n) await releaseUnits(kysely, trade, id);
}

export async function releaseUnits(kysely: Kysely<Tables>, { days }: Trade, bookingId: string): Promise<void> {
  await sql`delete from ${sql.table(days)} where booking_id = ${bookingId}`.execute(kysely);
}

/** What was held is held no longer but taken. */
export async function keepUnits(kysely: Kysely<Tables>, { days }: Trade, bookingId: string): Promise<void> {
  await sql`update ${sql.table(days)} set held_until = null where booking_id = ${bookingId}`.execute(kysely);
}

function unitsByDay(rows: readonly TakenUnitRow[]): ReadonlyMap<number, ReadonlySet<number>> {
  const byDay = new Map<number, Set<number>>();
  for (const { day, unit } of rows) byDay.set(day, (byDay.get(day) ?? new Set()).add(unit));
  return byDay;
}

function firstFree(taken: ReadonlySet<number> | undefined): number {
  let unit = 1;
  while (taken?.has(unit)) unit += 1;
  return unit;
}
