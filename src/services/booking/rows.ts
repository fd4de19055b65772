/** Bookings as they are at a moment: a hold that has lapsed is cancelled, whether or not anybody has written it down. */
import { type Kysely, type SelectQueryBuilder, sql } from 'kysely';
import type { BookingRow, Tables } from '#storage';
import type { Trade } from './trade.ts';

const plain = ['id', 'user', 'created_at', 'reference', 'starts_at', 'ends_at', 'price', 'currency', 'policy'] as const;

/**
 * All bookings of a trade as they are at `now` (RFC 3339, UTC): the one parameter, and the first in the SQL. The version
 * counts the lapse, so that a tag from before it no longer matches, and writing it down changes nothing.
 */
export function bookingsAt<Row extends BookingRow>(kysely: Kysely<Tables>, trade: Trade, now: string) {
  const table = sql.table(trade.bookings);
  const columns = [...plain, trade.thing, ...trade.more].map((column) => sql.ref(column));
  const rows = sql<Row>`(
    select ${sql.join(columns)},
      case when lapsed = 1 then 'cancelled' else status end as status,
      version + lapsed as version,
      case when lapsed = 0 then expires_at end as expires_at,
      case when lapsed = 1 then 0 else refund end as refund
    from (
      select *, case when status = 'pending' and expires_at <= ${now} then 1 else 0 end as lapsed from ${table}
    ) as written
  )`;
  const query = kysely.selectFrom(rows.as('bookings')).selectAll();
  return query as unknown as SelectQueryBuilder<{ bookings: Row }, 'bookings', Row>;
}
