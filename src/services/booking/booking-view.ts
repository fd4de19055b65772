/** What clients see of every booking: its status, its reference, its price and what a cancellation gives back. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { type DerivedField, type Field, timeSchema, urlField } from '#query';
import type { BookingRow } from '#storage';
import type { RefundStep } from './cancellation.ts';
import { moneyFor, moneyOf, moneySchema } from './money.ts';

type Fields<Row extends BookingRow> = Readonly<Record<string, Field<Row> | DerivedField<Row>>>;

export interface BookingFields<Row extends BookingRow> {
  readonly first: Readonly<Record<string, Field<Row>>>;
  readonly last: Fields<Row>;
}

/** The fields of a kind, which say what was booked and for when, come between the two groups. */
export function bookingFields<Row extends BookingRow>(): BookingFields<Row> {
  return { first, last } as unknown as BookingFields<Row>;
}

/** Of a hotel, a car or a booking; capitals are accepted. `example`: the id of a demo row, so that readers can try it. */
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
    schema: z.string().meta({ description: 'Short, to be read aloud.', examples: ['7Q4M-0ZKD'] }),
    toPublic: formatReference,
    fromPublic: parseReference,
  },
};

const refundsSchema = z
  .array(z.object({ before: z.iso.datetime(), refund: moneySchema }))
  .describe('A cancellation before that time gives back that much, earliest first; afterwards nothing.');

const last: Fields<BookingRow> = {
  price: {
    schema: moneyFor('For the whole stay, as it was when it was booked.'),
    show: ({ price, currency }) => moneyOf(price, currency),
  },
  created_at: { column: 'created_at', schema: timeSchema },
  expires_at: {
    schema: z.iso
      .datetime()
      .optional()
      .describe('Of a pending booking: it lapses then, unless it is confirmed before.'),
    show: ({ expires_at }) => expires_at ?? undefined,
  },
  cancellation_policy: {
    schema: refundsSchema,
    show: ({ policy, currency }) => showRefunds(JSON.parse(policy), currency),
  },
  refund: {
    schema: moneyFor('Of a cancelled booking: what was given back.').optional(),
    show: ({ refund, currency }) => (refund === null ? undefined : moneyOf(refund, currency)),
  },
  url: urlField<BookingRow>({ column: 'id', schema: z.uuid().toLowerCase(), path: 'bookings/' }),
};

function showRefunds(steps: readonly RefundStep[], currency: string) {
  return steps.map(({ before, refund }) => ({ before, refund: moneyOf(refund, currency) }));
}

/** Crockford's base 32: without I, L, O and U, no letter is misread or misheard. */
const referenceLetters = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** Eight characters, 40 random bits: the last ones of a UUID, since Node draws the bits of many UUIDs at once. */
export function createReference(): string {
  let bits = Number.parseInt(randomUUID().slice(-10), 16);
  let reference = '';
  for (; reference.length < 8; bits = Math.floor(bits / 32)) reference += referenceLetters.charAt(bits % 32);
  return reference;
}

/** In two groups, such as `7Q4M-0ZKD`. */
export function formatReference(reference: string): string {
  return `${reference.slice(0, 4)}-${reference.slice(4)}`;
}

/** Accepts what a person heard or wrote: small letters, no dash, letters that look alike. Undefined if it is no reference. */
export function parseReference(text: string): string | undefined {
  const plain = text.toUpperCase().replaceAll('-', '').replaceAll('O', '0').replaceAll(/[IL]/g, '1');
  return /^[\dA-HJKMNP-TV-Z]{8}$/.test(plain) ? plain : undefined;
}
