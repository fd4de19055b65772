/** What clients see of a booking, whatever it is for. */

import { z } from 'zod';
import { type DerivedField, type Field, urlField } from '#query';
import type { BookingRow } from '#storage';
import { money, moneyFor, moneyOf } from './money.ts';
import type { Step } from './policy.ts';
import { readReference, showReference } from './reference.ts';
import { bookingStatus } from './status.ts';

type Fields = Readonly<Record<string, Field<BookingRow> | DerivedField<BookingRow>>>;

export interface BookingFields<Row extends BookingRow> {
  readonly first: Readonly<Record<string, Field<Row>>>;
  readonly last: Readonly<Record<string, Field<Row> | DerivedField<Row>>>;
}

/** Those of a trade stand between: what was booked, and when. */
export function bookingFields<Row extends BookingRow>(): BookingFields<Row> {
  return { first, last } as unknown as BookingFields<Row>;
}

const first: Fields = {
  status: { column: 'status', schema: bookingStatus },
  reference: {
    column: 'reference',
    schema: z.string().meta({ description: 'Short, to be read aloud.', examples: ['7Q4M-0ZKD'] }),
    toPublic: showReference,
    fromPublic: readReference,
  },
};

const policySchema = z
  .array(z.object({ before: z.iso.datetime(), refund: money }))
  .describe('Whoever cancels before that time gets so much back, in the order of time; afterwards nothing.');

const last: Fields = {
  price: {
    schema: moneyFor('Of the whole stay, as it was when it was booked.'),
    show: ({ price, currency }) => moneyOf(price, currency),
  },
  created_at: { column: 'created_at', schema: z.iso.datetime() },
  expires_at: {
    schema: z.iso
      .datetime()
      .optional()
      .describe('Of a pending booking: free again then, unless it is confirmed before.'),
    show: ({ expires_at }) => expires_at ?? undefined,
  },
  cancellation_policy: {
    schema: policySchema,
    show: ({ policy, currency }) => showPolicy(JSON.parse(policy), currency),
  },
  refund: {
    schema: moneyFor('Of a cancelled booking: what was given back.').optional(),
    show: ({ refund, currency }) => (refund === null ? undefined : moneyOf(refund, currency)),
  },
  url: urlField<BookingRow>({ column: 'id', schema: z.uuid(), path: 'bookings/' }),
};

function showPolicy(steps: readonly Step[], currency: string) {
  return steps.map(({ before, refund }) => ({ before, refund: moneyOf(refund, currency) }));
}
