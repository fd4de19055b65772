/** From one status of a booking to the next. */
import { type Kysely, sql } from 'kysely';
import { type Problem, problem } from '#http';
import type { BookingRow, BookingStatus, Database, Tables } from '#storage';
import { refundAt, type Step } from './policy.ts';
import { bookingsAt } from './rows.ts';
import type { Trade } from './trade.ts';
import { keepUnits, releaseUnits } from './units.ts';

const allowed: Readonly<Record<BookingStatus, readonly BookingStatus[]>> = {
  pending: ['confirmed', 'cancelled'],
  confirmed: ['cancelled'],
  cancelled: [],
};

export interface Change<Row extends BookingRow> {
  readonly id: string;
  readonly status: BookingStatus;
  /** Throws unless the client knows the booking as it stands. */
  readonly requireCurrent: (row: Row) => void;
  readonly nowMs: number;
}

/** The booking afterwards; one that is cancelled already stays as it is. Throws `forbidden-transition`. */
export async function changeStatus<Row extends BookingRow>(
  { dialect }: Pick<Database, 'dialect'>,
  transaction: Kysely<Tables>,
  trade: Trade,
  { id, status, requireCurrent, nowMs }: Change<Row>,
): Promise<Row> {
  const now = new Date(nowMs).toISOString();
  if (dialect === 'postgres') await lock(transaction, trade, id);
  const find = () => bookingsAt<Row>(transaction, trade, now).where(sql.ref('id'), '=', id).executeTakeFirstOrThrow();
  const before = await find();
  if (status === 'cancelled' && before.status === 'cancelled') return before;
  requireCurrent(before);
  if (!allowed[before.status].includes(status)) throw forbidden(before.status, status);
  await write(transaction, trade, before, status, nowMs);
  return find();
}

async function lock(transaction: Kysely<Tables>, { bookings }: Trade, id: string): Promise<void> {
  await sql`select 1 from ${sql.table(bookings)} where id = ${id} for update`.execute(transaction);
}

/** The booking before its days, as in units.ts. */
async function write(
  transaction: Kysely<Tables>,
  trade: Trade,
  { id, status: from, policy }: BookingRow,
  status: BookingStatus,
  nowMs: number,
): Promise<void> {
  // Nothing is paid before a booking is confirmed.
  const due = from === 'confirmed' ? refundAt(JSON.parse(policy) as readonly Step[], nowMs) : 0;
  await sql`update ${sql.table(trade.bookings)} set status = ${status}, version = version + 1, expires_at = null,
    refund = ${status === 'cancelled' ? due : null} where id = ${id}`.execute(transaction);
  await (status === 'cancelled' ? releaseUnits : keepUnits)(transaction, trade, id);
}

function forbidden(from: BookingStatus, to: BookingStatus): Problem {
  const next = allowed[from];
  const ways = next.length === 0 ? 'it can no longer change' : `it can become ${next.join(' or ')}`;
  return problem('forbidden-transition', { detail: `The booking is ${from} and cannot become ${to}: ${ways}.` });
}
