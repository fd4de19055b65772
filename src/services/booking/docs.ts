/** Titles and texts of the API description, in the words of the kind. */
import { z } from 'zod';
import type { ApiInfo, OperationDocs } from '#rest';
import { alternativesMax } from './create-booking.ts';
import type { BookingKind } from './kind.ts';
import type { BookingLimits } from './limits.ts';
import { moneySchema } from './money.ts';
import { stayEndSchemas } from './stay.ts';

export function apiInfo(
  { name, dayName, plural, offer: { unitNoun }, stay: { fields } }: BookingKind,
  { holdsMax, daysMax, unitsMax }: BookingLimits,
): ApiInfo {
  const [from, to] = fields;
  return {
    title: capitalised(plural),
    version: '1',
    description: [
      `${capitalised(plural)}, what is left of them for a stay, and your bookings of them.`,
      `A booking is for whole ${dayName}s, at most ${daysMax}, from \`${from}\` to \`${to}\`. It goes from \`pending\` to \`confirmed\``,
      `to \`cancelled\`. Only the user who made it sees it: for every other user a ${name} booking is 404.`,
      `A user may hold ${holdsMax} bookings at once, and have ${unitsMax} ${unitNoun}s on one ${dayName}.`,
    ].join(' '),
    groups: { '': 'What can be booked.', bookings: 'What you have booked.' },
    signedIn: true,
    problems: { 'storage-unavailable': {}, 'too-many-requests': {} },
  };
}

/** The headings of the pages for people. */
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
  const availability = `With \`${from}\` and \`${to}\` it shows what is left for the stay, and its price.`;
  return {
    list: {
      operationId: `list${capitalised(plural)}`,
      summary: `List ${plural}`,
      description: `${availability} Then only ${plural} of which something is left are listed.`,
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
      description: 'Those of every status, unless a filter chooses.',
    },
    create: {
      operationId: `create${one}`,
      summary: `Book a ${name}`,
      description: `Give both \`${stay.fields.join('` and `')}\`, or neither: then it is the next free ${dayName}, for one.`,
      problems: { 'sold-out': { alternatives: alternativesSchema(kind) }, 'too-many-holds': {}, 'too-many-units': {} },
    },
    get: {
      operationId: `get${one}`,
      summary: `Read a ${name} booking`,
      description: 'Its `ETag` is what a change sends in `If-Match`.',
    },
    change: {
      operationId: `change${one}`,
      summary: `Confirm or cancel a ${name} booking`,
      description: 'To cancel a cancelled booking changes nothing and is 200.',
      problems: { 'forbidden-transition': {} },
    },
  };
}

/** As in `soldOutProblem`. */
function alternativesSchema(kind: BookingKind): z.ZodType {
  const [from, to] = kind.stay.fields;
  const [fromSchema, toSchema] = stayEndSchemas(kind);
  return z
    .array(z.object({ ...kind.alternative.shape, [from]: fromSchema, [to]: toSchema, price: moneySchema }))
    .max(alternativesMax)
    .optional()
    .describe('What can be booked instead.');
}

function capitalised(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
