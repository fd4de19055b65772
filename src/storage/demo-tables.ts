/** What a row of demo data must hold, table by table. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Tables } from './schema.ts';

export interface DemoTable {
  readonly columns: z.ZodType<DemoRow>;
  /** Where a column names the id of a row in another table. */
  readonly reference?: { readonly column: string; readonly table: keyof Tables };
}

export type DemoRow = Readonly<Record<string, string | number>>;

/** In the order in which rows can be put in: a row comes after the row that it refers to. `createdAt` is RFC 3339. */
export function createDemoTables(createdAt: string): ReadonlyMap<keyof Tables, DemoTable> {
  const text = z.string().min(1);
  const id = z.uuid().toLowerCase();
  const written = z.iso.datetime().default(createdAt);
  const offer = {
    units: z.int32().min(0).default(1),
    price: z.int32().min(0).max(10_000_000).default(5_000),
    currency,
  };
  const roomType = { id, hotel_id: id, name: text, guests: z.int32().min(1).default(2), ...offer };
  const car = { id, model: text, class: text, city: text, pickup_place: text.optional(), ...offer };
  const message = { id: z.int32().min(1), account_id: text, subject: text, body: text, created_at: written };
  const booking = {
    id,
    user: text,
    status: z.enum(['pending', 'confirmed', 'cancelled']),
    version: z.int32().min(1).default(1),
    created_at: written,
    price: z.int32().min(0).default(0),
    currency,
  };
  const stay = { room_type: text.default('standard'), guests: z.int32().min(1).default(1) };
  return new Map<keyof Tables, DemoTable>([
    ['hotels', { columns: z.strictObject({ id, name: text, city: text }) }],
    ['room_types', { columns: z.strictObject(roomType), reference: { column: 'hotel_id', table: 'hotels' } }],
    [
      'cars',
      { columns: z.strictObject(car).transform((row) => ({ ...row, pickup_place: row.pickup_place ?? row.city })) },
    ],
    [
      'hotel_bookings',
      bookingTable({ ...booking, hotel_id: id, ...stay }, '', { column: 'hotel_id', table: 'hotels' }),
    ],
    ['car_bookings', bookingTable({ ...booking, car_id: id }, midnight, { column: 'car_id', table: 'cars' })],
    ['accounts', { columns: z.strictObject({ id: text, name: text }) }],
    ['messages', { columns: z.strictObject(message), reference: { column: 'account_id', table: 'accounts' } }],
  ]);
}

const midnight = 'T00:00:00.000Z';
const dayMs = 86_400_000;

const currency = z
  .string()
  .regex(/^[A-Z]{3}$/)
  .default('EUR');

/** A booking of demo data is for the day on which it was made, takes no room from anybody, and gives nothing back. */
function bookingTable(
  columns: Readonly<Record<string, z.ZodType<string | number>>>,
  time: string,
  reference: NonNullable<DemoTable['reference']>,
): DemoTable {
  const row = z.strictObject(columns).transform((booking): DemoRow => {
    const madeAt = String(booking['created_at']);
    const nextDay = new Date(Date.parse(madeAt) + dayMs).toISOString();
    return {
      ...booking,
      reference: referenceOf(String(booking['id'])),
      starts_at: madeAt.slice(0, 10) + time,
      ends_at: nextDay.slice(0, 10) + time,
      policy: '[]',
      ...(booking['status'] === 'cancelled' && { refund: 0 }),
    };
  });
  return { columns: row, reference };
}

/** The same at each start, and eight hexadecimal digits are letters of a reference as well. */
function referenceOf(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, 8).toUpperCase();
}
