/** Titles and descriptions for the API documentation of a booking service. */
import { z } from 'zod';
import type { ApiInfo, OperationDocs } from '#rest';
import { alternativesMax } from './create-booking.ts';
import type { BookingKind } from './kind.ts';
import type { BookingLimits } from './limits.ts';
import { moneySchema } from './money.ts';
import { stayEndSchemas } from './stay.ts';

export function apiInfo(
  { dayName, plural, offer: { unitNoun }, stay: { fields } }: BookingKind,
  { holdsMax, daysMax, unitsMax }: BookingLimits,
): ApiInfo {
  const [from, to] = fields;
  return {
    title: capitalised(plural),
    version: '1',
    description: [
      `${capitalised(plural)}, their availability, and your bookings.`,
      `A booking is for up to ${daysMax} ${dayName}s, from \`${from}\` to \`${to}\`. It is created as \`confirmed\` or,`,
      'with `hold`, as `pending`, and it can be `cancelled`.',
      `Only the user who made a booking can see it; other users get 404.`,
      `A user may have up to ${holdsMax} pending bookings at a time, and up to ${unitsMax} ${unitNoun}s on one ${dayName}.`,
    ].join(' '),
    groups: { '': `The ${plural} that can be booked.`, bookings: 'Your bookings.' },
    signedIn: true,
    problems: { 'storage-unavailable': {}, 'too-many-requests': {} },
  };
}

/** Returns the headings of the HTML pages. */
export function titlesOf({ name, plural }: BookingKind) {
  const resource = capitalised(name);
  return {
    resources: capitalised(plural),
    resource,
    bookings: `${resource} bookings`,
    booking: `${resource} booking`,
  };
}

export function inventoryDocs({ name, plural, stay: { fields } }: BookingKind): Record<'list' | 'get', OperationDocs> {
  const [from, to] = fields;
  const availability = `With \`${from}\` and \`${to}\`, the response includes the availability and the price for these dates.`;
  return {
    list: {
      operationId: `list${capitalised(plural)}`,
      summary: `List ${plural}`,
      description: `${availability} Fully booked ${plural} are then left out.`,
    },
    get: { operationId: `get${capitalised(name)}`, summary: `Read a ${name}`, description: availability },
  };
}

export function bookingDocs(kind: BookingKind): Record<'list' | 'create' | 'get' | 'change', OperationDocs> {
  const { name, dayName, stay } = kind;
  const one = `${capitalised(name)}Booking`;
  return {
    list: {
      operationId: `list${one}s`,
      summary: `List your ${name} bookings`,
      description: 'Lists bookings of every status. Filter by `status` to narrow the list.',
    },
    create: {
      operationId: `create${one}`,
      summary: `Book a ${name}`,
      description: `Give both \`${stay.fields.join('` and `')}\`, or neither to book the next free ${dayName}.`,
      problems: { 'sold-out': { alternatives: alternativesSchema(kind) }, 'too-many-holds': {}, 'too-many-units': {} },
    },
    get: {
      operationId: `get${one}`,
      summary: `Read a ${name} booking`,
      description: 'To change the booking, send its `ETag` in `If-Match`.',
    },
    change: {
      operationId: `change${one}`,
      summary: `Confirm or cancel a ${name} booking`,
      description: 'Cancelling a booking that is already cancelled changes nothing and returns 200.',
      problems: { 'forbidden-transition': {} },
    },
  };
}

/** Describes the alternatives that `soldOutProblem` lists. */
function alternativesSchema(kind: BookingKind): z.ZodType {
  const [from, to] = kind.stay.fields;
  const [fromSchema, toSchema] = stayEndSchemas(kind);
  return z
    .array(z.object({ ...kind.alternative.shape, [from]: fromSchema, [to]: toSchema, price: moneySchema }))
    .max(alternativesMax)
    .optional()
    .describe('Offers and stays that can be booked instead.');
}

function capitalised(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
