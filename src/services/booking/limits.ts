/** How much one user may book: holds at once, days of a booking, and units on any day; so that no user can hold every room. */
import { type Kysely, sql } from 'kysely';
import { problem } from '#http';
import { createStatement, type Database, type Slot, type Tables } from '#storage';
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

export type LimitStatements = ReturnType<typeof prepareLimits>;

/** The statements that count what a user has booked. */
export function prepareLimits({ tables }: BookingKind) {
  const bookings = sql.table(tables.bookings);
  const isNear = (slot: Slot<StaysNear>) => sql`b."user" = ${slot(({ user }) => user)}
    and b.starts_at >= ${slot(({ from }) => from)} and b.starts_at < ${slot(({ to }) => to)}`;
  return {
    countHolds: createStatement<HoldsSince, { readonly held: number | string; readonly ends: string | null }>(
      (slot) => sql`select count(*) as held, min(expires_at) as ends from ${bookings}
        where "user" = ${slot(({ user }) => user)} and created_at > ${slot(({ since }) => since)}
          and status = 'pending' and expires_at > ${slot(({ now }) => now)}`,
    ),
    countNear: createStatement<StaysNear, { readonly near: number | string }>(
      (slot) => sql`select count(*) as near from ${bookings} as b where ${isNear(slot)}`,
    ),
    findFullDay: createStatement<StaysNear, { readonly day: number; readonly taken: number | string }>(
      (slot) => sql`select d.day, count(*) as taken from ${bookings} as b
        join ${sql.table(tables.days)} as d on d.booking_id = b.id
        where ${isNear(slot)} and d.day >= ${slot(({ firstDay }) => firstDay)} and d.day < ${slot(({ endDay }) => endDay)}
          and (d.held_until is null or d.held_until > ${slot(({ now }) => now)})
        group by d.day having count(*) >= ${slot(({ unitsMax }) => unitsMax)} order by d.day limit 1`,
    ),
  };
}

interface HoldsSince {
  readonly user: string;
  /** RFC 3339, UTC. */
  readonly since: string;
  readonly now: string;
}

/** The bookings of a user that may take a day of a stay, by when they begin. */
interface StaysNear {
  readonly user: string;
  /** As the column has it. */
  readonly from: string;
  readonly to: string;
  readonly firstDay: number;
  readonly endDay: number;
  readonly now: string;
  readonly unitsMax: number;
}

/** Throws `too-many-holds` when the user has as many as allowed. */
export async function requireHold(
  transaction: Kysely<Tables>,
  { name, countHolds }: BookingKind & LimitStatements,
  { holdsMax }: BookingLimits,
  { user, nowMs, now }: { readonly user: string; readonly nowMs: number; readonly now: string },
): Promise<void> {
  // An hour back, in case the clock of another process differs; these are few, even where the user has booked much
  // before.
  const since = timeText(nowMs - 4 * holdMs);
  const { rows } = await countHolds(transaction, { user, since, now });
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
  { name, dayName, offer: { unitNoun }, stay: { print }, countNear, findFullDay }: BookingKind & LimitStatements,
  { daysMax, unitsMax }: BookingLimits,
  { user, now, stay: { firstDay, endDay } }: { readonly user: string; readonly now: string; readonly stay: Stay },
): Promise<void> {
  // A booking of so many days that takes the first one begins no earlier.
  const [from, to] = [print((firstDay - daysMax + 1) * dayMs), print(endDay * dayMs)];
  const stays = { user, from, to, firstDay, endDay, now, unitsMax };
  // Each takes one unit a day, so that most users need no look at the days.
  const counted = await countNear(transaction, stays);
  if (Number(counted.rows[0]?.near) < unitsMax) return;
  const [full] = (await findFullDay(transaction, stays)).rows;
  if (full === undefined) return;
  const day = timeText(full.day * dayMs).slice(0, 10);
  throw problem('too-many-units', {
    detail: `Your ${name} bookings take ${full.taken} ${unitNoun}s on the ${dayName} of ${day}, and may take ${unitsMax}: book other days, or cancel one of them.`,
  });
}
