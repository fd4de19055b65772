/** What a row of demo data must hold, table by table. */
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
  const booking = {
    id,
    user: text,
    status: z.enum(['pending', 'confirmed', 'cancelled']),
    version: z.int32().min(1).default(1),
    created_at: written,
  };
  const message = { id: z.int32().min(1), account_id: text, subject: text, body: text, created_at: written };
  return new Map<keyof Tables, DemoTable>([
    ['hotels', { columns: z.strictObject({ id, name: text, city: text }) }],
    ['cars', { columns: z.strictObject({ id, model: text, class: text, city: text }) }],
    ['hotel_bookings', bookingTable({ ...booking, hotel_id: id }, 'hotel_id', 'hotels')],
    ['car_bookings', bookingTable({ ...booking, car_id: id }, 'car_id', 'cars')],
    ['accounts', { columns: z.strictObject({ id: text, name: text }) }],
    ['messages', { columns: z.strictObject(message), reference: { column: 'account_id', table: 'accounts' } }],
  ]);
}

function bookingTable(
  columns: Readonly<Record<string, z.ZodType<string | number>>>,
  column: string,
  table: keyof Tables,
): DemoTable {
  return { columns: z.strictObject(columns), reference: { column, table } };
}
