/** What is offered, and how much of it is taken on which days. Everything here reads; booking.ts writes. */
import { type Kysely, type SqlBool, sql } from 'kysely';
import type { Tables } from '#storage';
import type { Offer, Stay, Trade } from './trade.ts';

/** Of some things, the cheapest first. */
export async function offersOf(
  kysely: Kysely<Tables>,
  { offers, offer }: Trade,
  thingIds: readonly string[],
): Promise<readonly Offer[]> {
  if (thingIds.length === 0) return [];
  const { rows } = await sql<Offer>`select id, ${offer.thing} as thing_id, ${offer.name} as name,
      ${offer.guests} as guests, units, price, currency
    from ${sql.table(offers)} where ${offer.thing} in (${sql.join(thingIds)}) order by price, id`.execute(kysely);
  return rows;
}

/** How many units are taken on which day, by offer; days on which none is taken are not in it. */
export type Taken = ReadonlyMap<string, ReadonlyMap<number, number>>;

/** A hold that has lapsed by `now` (RFC 3339, UTC) takes nothing. */
export async function takenIn(
  kysely: Kysely<Tables>,
  { days }: Trade,
  offers: readonly Offer[],
  { firstDay, endDay }: Pick<Stay, 'firstDay' | 'endDay'>,
  now: string,
): Promise<Taken> {
  const taken = new Map(offers.map(({ id }) => [id, new Map<number, number>()]));
  if (offers.length === 0) return taken;
  const { rows } = await sql<{ offer_id: string; day: number; taken: number | string }>`
    select offer_id, day, count(*) as taken from ${sql.table(days)}
    where offer_id in (${sql.join([...taken.keys()])}) and day >= ${firstDay} and day < ${endDay}
      and (held_until is null or held_until > ${now})
    group by offer_id, day`.execute(kysely);
  for (const row of rows) taken.get(row.offer_id)?.set(row.day, Number(row.taken));
  return taken;
}

/** Units that are free on each day of a stay. */
export function unitsLeft({ id, units }: Offer, { firstDay, endDay }: Stay, taken: Taken): number {
  let most = 0;
  for (let day = firstDay; day < endDay; day += 1) most = Math.max(most, taken.get(id)?.get(day) ?? 0);
  return Math.max(0, units - most);
}

/** True of a thing in `things` with an offer for so many guests that is free on each day of the stay. */
export function hasRoom(trade: Trade, stay: Stay | undefined, guests: number, now: string) {
  const { things, offers, offer, days } = trade;
  const fits = sql`units > 0 and ${offer.guests} >= ${guests}`;
  const full =
    stay &&
    sql`exists (
    select 1 from ${sql.table(days)} as d
    where d.offer_id = o.id and d.day >= ${stay.firstDay} and d.day < ${stay.endDay}
      and (d.held_until is null or d.held_until > ${now})
    group by d.day having count(*) >= o.units
  )`;
  return sql<SqlBool>`exists (
    select 1 from ${sql.table(offers)} as o
    where o.${offer.thing} = ${sql.ref(`${things}.id`)} and ${fits} ${full === undefined ? sql`` : sql`and not ${full}`}
  )`;
}
