/** How much one user may book: holds at once, days of a booking, and units on any day; so that no user can hold every room. */
import { type Kysely, sql } from 'kysely';
import { problem } from '#http';
import type { Database, Tables } from '#storage';
import type { BookingKind } from './kind.ts';
import { dayMs, holdMs, type Stay, timeText } from './stay.ts';

/** Of one kind of booking each. */
export interface BookingLimits {
  /** Pending bookings of a user. */
  readonly holdsMax: number;
  /** Nights or days of one booking. */
  readonly daysMax: number;
  /** Rooms or cars that the bookings of a user take on one day, held ones included. */
  readonly unitsMax: number;
}

export const defaultLimits: BookingLimits = Object.freeze({ holdsMax: 10, daysMax: 90, unitsMax: 20 });

interface Booker {
  readonly user: string;
  readonly nowMs: number;
}

/** Until the transaction ends, one booking of a user at a time, so that each counts those before it. In SQLite the transaction itself is the lock. */
export async function lockUser(
  { dialect }: Pick<Database, 'dialect'>,
  transaction: Kysely<Tables>,
  { name }: BookingKind,
  user: string,
): Promise<void> {
  if (dialect !== 'postgres') return;
  await sql`select pg_advisory_xact_lock(hashtextextended(${`${name} ${user}`}, 0))`.execute(transaction);
}

/** Throws `too-many-holds` when the user has as many as allowed. */
export async function requireHold(
  transaction: Kysely<Tables>,
  { name, tables }: BookingKind,
  { holdsMax }: BookingLimits,
  { user, nowMs }: Booker,
): Promise<void> {
  // An hour back, in case the clock of another process differs; these are few, even where the user has booked much
  // before.
  const since = timeText(nowMs - 4 * holdMs);
  const { rows } = await sql<{ held: number | string; ends: string | null }>`
    select count(*) as held, min(expires_at) as ends from ${sql.table(tables.bookings)}
    where "user" = ${user} and created_at > ${since} and status = 'pending' and expires_at > ${timeText(nowMs)}
  `.execute(transaction);
  const { held = 0, ends } = rows[0] ?? {};
  if (Number(held) < holdsMax || !ends) return;
  throw problem('too-many-holds', {
    detail: `You hold ${held} ${name} bookings, and may hold ${holdsMax} at once: confirm or cancel one, or wait until ${ends}, when the first expires.`,
    headers: { 'Retry-After': String(Math.max(1, Math.ceil((Date.parse(ends) - nowMs) / 1000))) },
  });
}

/** Throws `too-many-units` when the user's bookings take as many units as allowed on a day of the stay. */
export async function requireUnit(
  transaction: Kysely<Tables>,
  { name, dayName, tables, offer: { unitNoun }, stay: { print } }: BookingKind,
  { daysMax, unitsMax }: BookingLimits,
  { user, nowMs, stay: { firstDay, endDay } }: Booker & { readonly stay: Stay },
): Promise<void> {
  // A booking of so many days that takes the first one begins no earlier.
  const earliest = firstDay - daysMax + 1;
  const near = sql`b."user" = ${user} and b.starts_at >= ${print(earliest * dayMs)}
    and b.starts_at < ${print(endDay * dayMs)}`;
  // Each takes one unit a day, so that most users need no look at the days.
  const { rows: counts } = await sql<{ near: number | string }>`
    select count(*) as near from ${sql.table(tables.bookings)} as b where ${near}`.execute(transaction);
  if (Number(counts[0]?.near) < unitsMax) return;
  const { rows } = await sql<{ day: number; taken: number | string }>`
    select d.day, count(*) as taken from ${sql.table(tables.bookings)} as b
    join ${sql.table(tables.days)} as d on d.booking_id = b.id
    where ${near} and d.day >= ${firstDay} and d.day < ${endDay} and (d.held_until is null or d.held_until > ${timeText(nowMs)})
    group by d.day having count(*) >= ${unitsMax} order by d.day limit 1`.execute(transaction);
  const [full] = rows;
  if (full === undefined) return;
  const day = timeText(full.day * dayMs).slice(0, 10);
  throw problem('too-many-units', {
    detail: `Your ${name} bookings take ${full.taken} ${unitNoun}s on the ${dayName} of ${day}, and may take ${unitsMax}: book other days, or cancel one of them.`,
  });
}
