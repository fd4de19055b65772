/** Booking limits per user: pending bookings, days of a booking, and units on any one day. */
import { type Kysely, sql } from 'kysely';
import type { Database } from '../storage/database.ts';
import type { Tables } from '../storage/schema.ts';
import { createStatement, type Slot } from '../storage/statement.ts';
import { bookingProblem } from './booking-problem.ts';
import { isHeldAt, isTakenAt } from './holds.ts';
import type { BookingKind } from './kind.ts';
import { dayMs, holdMs, type Stay, timeText } from './stay.ts';

/** The limits apply to hotels and cars separately. */
export interface BookingLimits {
  /** Pending bookings of a user at a time. */
  readonly holdsMax: number;
  /** Nights or days of one booking. */
  readonly daysMax: number;
  /** Rooms or cars that a user may book for any one day, including pending bookings. */
  readonly unitsMax: number;
}

/**
 * Locks a user's bookings until the transaction ends, so that each booking counts those before it. SQLite does not need
 * it, because it runs one write transaction at a time.
 */
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

/** Prepares the statements that count what a user has booked. */
export function prepareLimits({ tables }: BookingKind) {
  const bookings = sql.table(tables.bookings);
  const isNear = (slot: Slot<StaysNear>) => sql`b."user" = ${slot(({ user }) => user)}
    and b.starts_at >= ${slot(({ from }) => from)} and b.starts_at < ${slot(({ to }) => to)}`;
  return {
    countHolds: createStatement<HoldsSince, { readonly held: number | string; readonly ends: string | null }>(
      (slot) => sql`select count(*) as held, min(expires_at) as ends from ${bookings}
        where "user" = ${slot(({ user }) => user)} and created_at > ${slot(({ since }) => since)}
          and ${isHeldAt(slot(({ now }) => now))}`,
    ),
    countNear: createStatement<StaysNear, { readonly near: number | string }>(
      (slot) => sql`select count(*) as near from ${bookings} as b where ${isNear(slot)}`,
    ),
    findFullDay: createStatement<StaysNear, { readonly day: number; readonly taken: number | string }>(
      (slot) => sql`select d.day, count(*) as taken from ${bookings} as b
        join ${sql.table(tables.days)} as d on d.booking_id = b.id
        where ${isNear(slot)} and d.day >= ${slot(({ firstDay }) => firstDay)} and d.day < ${slot(({ endDay }) => endDay)}
          and ${isTakenAt(slot(({ now }) => now))}
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

/** Selects a user's bookings that may overlap a stay, by the range of their start times. */
interface StaysNear {
  readonly user: string;
  /** Formatted like the column `starts_at`. */
  readonly from: string;
  readonly to: string;
  readonly firstDay: number;
  readonly endDay: number;
  readonly now: string;
  readonly unitsMax: number;
}

/** Throws `too-many-holds` if the user already has the maximum number of pending bookings. */
export async function checkHoldLimit(
  transaction: Kysely<Tables>,
  { name, countHolds }: BookingKind & LimitStatements,
  { holdsMax }: BookingLimits,
  { user, nowMs, now }: { readonly user: string; readonly nowMs: number; readonly now: string },
): Promise<void> {
  // A hold lasts 15 minutes. Look back an hour, in case the clock of another process differs. Limiting the range keeps
  // the query fast for users with many old bookings.
  const since = timeText(nowMs - 4 * holdMs);
  const { rows } = await countHolds(transaction, { user, since, now });
  const { held = 0, ends } = rows[0] ?? {};
  if (Number(held) < holdsMax || !ends) return;
  throw bookingProblem('too-many-holds', {
    detail: `You have ${held} pending ${name} bookings; the limit is ${holdsMax}. Confirm or cancel one, or wait until ${ends}, when the first one expires.`,
    headers: { 'Retry-After': String(Math.max(1, Math.ceil((Date.parse(ends) - nowMs) / 1000))) },
  });
}

/** Throws `too-many-units` if the user's bookings already take the maximum number of units on a day of the stay. */
export async function checkUnitLimit(
  transaction: Kysely<Tables>,
  { dayName, offer: { unitNoun }, stay: { print }, countNear, findFullDay }: BookingKind & LimitStatements,
  { daysMax, unitsMax }: BookingLimits,
  { user, now, stay: { firstDay, endDay } }: { readonly user: string; readonly now: string; readonly stay: Stay },
): Promise<void> {
  // A booking has at most `daysMax` days, so one that overlaps the stay cannot start before this range.
  const [from, to] = [print((firstDay - daysMax + 1) * dayMs), print(endDay * dayMs)];
  const stays = { user, from, to, firstDay, endDay, now, unitsMax };
  // Each booking takes one unit per day. Usually there are fewer bookings than the limit, and no need to count by day.
  const counted = await countNear(transaction, stays);
  if (Number(counted.rows[0]?.near) < unitsMax) return;
  const [full] = (await findFullDay(transaction, stays)).rows;
  if (full === undefined) return;
  const day = timeText(full.day * dayMs).slice(0, 10);
  throw bookingProblem('too-many-units', {
    detail: `You have booked ${full.taken} ${unitNoun}s for the ${dayName} of ${day}; the limit is ${unitsMax}. Book other days, or cancel one of these bookings.`,
  });
}
