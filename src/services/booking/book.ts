/** Making a booking: in one transaction, what is free is found, taken and written down. */
import { randomUUID } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import type { BookingRow, Database, Tables } from '#storage';
import { choose, type Order } from './choose.ts';
import { createPolicy } from './policy.ts';
import { createReference } from './reference.ts';
import { SoldOut } from './sold-out.ts';
import { lengthOf } from './stay.ts';
import type { Offer, Stay, Trade } from './trade.ts';
import { takeUnits } from './units.ts';

const holdMs = 15 * 60_000;

/** In a transaction. Throws a problem, after which nothing must be kept of the transaction. */
export async function book<Row extends BookingRow>(
  { dialect }: Pick<Database, 'dialect'>,
  transaction: Kysely<Tables>,
  trade: Trade,
  order: Order,
): Promise<Row> {
  if (dialect === 'postgres') await lock(transaction, trade, order.thingId);
  const { offer, stay } = await choose(transaction, trade, order);
  const id = randomUUID();
  const expiresAt = order.hold ? new Date(order.nowMs + holdMs).toISOString() : null;
  const row = await write(transaction, trade, { id, order, offer, stay, expiresAt });
  const taking = { offer, stay, bookingId: id, heldUntil: expiresAt, nowMs: order.nowMs };
  // A hold that lapsed by our clock may have been confirmed by another's.
  if (!(await takeUnits(transaction, trade, taking))) throw new SoldOut({ order, offers: [offer], fitting: [offer] });
  return row as unknown as Row;
}

/** One booking of a thing at a time. In SQLite the transaction itself is the lock. */
async function lock(transaction: Kysely<Tables>, { things }: Trade, id: string): Promise<void> {
  await sql`select 1 from ${sql.table(things)} where id = ${id} for no key update`.execute(transaction);
}

interface Draft {
  readonly id: string;
  readonly order: Order;
  readonly offer: Offer;
  readonly stay: Stay;
  readonly expiresAt: string | null;
}

/** The row. References are drawn until one is new; of a million bookings, one in a million needs a second try. */
async function write(transaction: Kysely<Tables>, trade: Trade, draft: Draft) {
  const columns = columnsOf(trade, draft);
  for (let attempt = 0; attempt < 5; attempt += 1) {
    const row = { reference: createReference(), ...columns };
    const names = sql.join(Object.keys(row).map((name) => sql.ref(name)));
    const { numAffectedRows } = await sql`insert into ${sql.table(trade.bookings)} (${names})
      values (${sql.join(Object.values(row))}) on conflict (reference) do nothing`.execute(transaction);
    if (numAffectedRows !== 0n) return row;
  }
  throw new Error('no new reference was found for a booking');
}

function columnsOf(trade: Trade, { id, order, offer, stay, expiresAt }: Draft) {
  const price = offer.price * lengthOf(stay);
  return {
    id,
    [trade.thing]: offer.thing_id,
    user: order.user,
    status: order.hold ? 'pending' : 'confirmed',
    created_at: new Date(order.nowMs).toISOString(),
    starts_at: trade.writeEnd(stay.fromMs),
    ends_at: trade.writeEnd(stay.toMs),
    price,
    currency: offer.currency,
    policy: JSON.stringify(createPolicy(price, stay.fromMs, order.nowMs)),
    expires_at: expiresAt,
    refund: null,
    version: 1,
    ...trade.moreOf(offer, order.guests),
  };
}
