/** The fields that all bookings have in the API: status, reference, price, cancellation policy and so on. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { type DerivedField, type Field, timeSchema, urlField } from '#query';
import type { BookingRow } from '../storage/schema.ts';
import { moneyFor, moneyOf, moneySchema, type RefundStep } from './money.ts';

type Fields<Row extends BookingRow> = Readonly<Record<string, Field<Row> | DerivedField<Row>>>;

export interface BookingFields<Row extends BookingRow> {
  readonly first: Readonly<Record<string, Field<Row>>>;
  readonly last: Fields<Row>;
}

/** Returns the common fields in two groups. Each kind puts its own fields (what was booked, and when) between them. */
export function bookingFields<Row extends BookingRow>(): BookingFields<Row> {
  return { first, last } as unknown as BookingFields<Row>;
}

/**
 * Schema for the ID of a hotel, car or booking. Accepts upper case. Pass the ID of a demo row as `example`, so that
 * readers of the documentation can try it.
 */
export function idSchema(example: string) {
  return z
    .uuid()
    .toLowerCase()
    .meta({ examples: [example] });
}

export const bookingStatusSchema = z.enum(['pending', 'confirmed', 'cancelled']);

const first: Fields<BookingRow> = {
  status: { column: 'status', schema: bookingStatusSchema },
  reference: {
    column: 'reference',
    schema: z.string().meta({ description: 'A short code that is easy to read aloud.', examples: ['7Q4M-0ZKD'] }),
    toPublic: formatReference,
    fromPublic: parseReference,
  },
};

const refundsSchema = z
  .array(z.object({ before: z.iso.datetime(), refund: moneySchema }))
  .describe(
    'The refund steps, earliest first: cancelling before the time in `before` refunds `refund`. After the last, nothing is refunded.',
  );

const last: Fields<BookingRow> = {
  price: {
    schema: moneyFor('The price of the whole stay, fixed at the time of booking.'),
    show: ({ price, currency }) => moneyOf(price, currency),
  },
  created_at: { column: 'created_at', schema: timeSchema },
  expires_at: {
    schema: z.iso
      .datetime()
      .optional()
      .describe('The time at which a pending booking expires unless it is confirmed. Only pending bookings have it.'),
    show: ({ expires_at }) => expires_at ?? undefined,
  },
  cancellation_policy: {
    schema: refundsSchema,
    show: ({ policy, currency }) => showRefunds(JSON.parse(policy), currency),
  },
  refund: {
    schema: moneyFor('The amount that was refunded. Only cancelled bookings have it.').optional(),
    show: ({ refund, currency }) => (refund === null ? undefined : moneyOf(refund, currency)),
  },
  url: urlField<BookingRow>({ column: 'id', schema: z.uuid().toLowerCase(), path: 'bookings/' }),
};

function showRefunds(steps: readonly RefundStep[], currency: string) {
  return steps.map(({ before, refund }) => ({ before, refund: moneyOf(refund, currency) }));
}

/** Crockford's Base32 alphabet. It leaves out I, L, O and U, which are easily misread or misheard. */
const referenceLetters = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** Returns eight random characters: the last 40 bits of a UUID, for which Node keeps random bytes in stock. */
export function createReference(): string {
  let bits = Number.parseInt(randomUUID().slice(-10), 16);
  let reference = '';
  for (; reference.length < 8; bits = Math.floor(bits / 32)) reference += referenceLetters.charAt(bits % 32);
  return reference;
}

/** Formats a reference in two groups, such as `7Q4M-0ZKD`. */
export function formatReference(reference: string): string {
  return `${reference.slice(0, 4)}-${reference.slice(4)}`;
}

/**
 * Parses a reference as a person may type it: in lower case, without the dash, or with look-alike letters. Undefined if
 * it is not a reference.
 */
export function parseReference(text: string): string | undefined {
  const plain = text.toUpperCase().replaceAll('-', '').replaceAll('O', '0').replaceAll(/[IL]/g, '1');
  return /^[\dA-HJKMNP-TV-Z]{8}$/.test(plain) ? plain : undefined;
}
