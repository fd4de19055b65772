/** When a hold is alive: SQL conditions for pending bookings, and for the units that bookings take. `now` is RFC 3339. */
import { type SqlBool, sql } from 'kysely';

/** For a row of bookings: it is pending and counts towards the limits. */
export function isHeldAt(now: string) {
  return sql<SqlBool>`(status = 'pending' and expires_at > ${now})`;
}

/** For a row of bookings: it is pending in its row, but shows as cancelled. */
export function hasExpiredAt(now: string) {
  return sql<SqlBool>`(status = 'pending' and expires_at <= ${now})`;
}

/** For a row of taken units: its booking is confirmed, or is held. The unit of an expired hold is free. */
export function isTakenAt(now: string) {
  return sql<SqlBool>`(held_until is null or held_until > ${now})`;
}
