/** What people and generated clients are told of the routes, in the words of the trade. */
import { z } from 'zod';
import type { ApiInfo, OperationDocs } from '#rest';
import { money } from './money.ts';
import { alternativesMax } from './sold-out.ts';
import { daysMax, endSchema } from './stay.ts';
import type { Trade } from './trade.ts';

/** Head the pages for people. */
export interface Titles {
  readonly things: string;
  readonly thing: string;
  readonly bookings: string;
  readonly booking: string;
}

export function titlesOf({ name, things }: Trade): Titles {
  const thing = capital(name);
  return { things: capital(things), thing, bookings: `${thing} bookings`, booking: `${thing} booking` };
}

export function aboutTrade({ name, dayName, things, ends: [from, to] }: Trade): ApiInfo {
  return {
    title: capital(things),
    version: '1',
    description: [
      `${capital(things)}, what is left of them for a stay, and the bookings of whoever is signed in.`,
      `A booking is for whole ${dayName}s, at most ${daysMax}, from \`${from}\` to \`${to}\`. It goes from \`pending\` to \`confirmed\``,
      `to \`cancelled\`, and nobody but the user who made it sees it: for everybody else a ${name} booking is 404.`,
    ].join(' '),
    signedIn: true,
    problems: { 'storage-unavailable': {}, 'too-many-requests': {} },
  };
}

export function tellInventory({ name, things, ends: [from, to] }: Trade): Record<'list' | 'get', OperationDocs> {
  const left = `With \`${from}\` and \`${to}\` it says what is left for the stay, and what that costs.`;
  return {
    list: {
      operationId: `list${capital(things)}`,
      summary: `List ${things}`,
      description: `${left} Then only ${things} of which something is left are listed.`,
    },
    get: { operationId: `get${capital(name)}`, summary: `Read a ${name}`, description: left },
  };
}

export function tellBookings(trade: Trade): Record<'list' | 'create' | 'get' | 'change', OperationDocs> {
  const { name, dayName, ends } = trade;
  const one = `${capital(name)}Booking`;
  return {
    list: { operationId: `list${one}s`, summary: `List your ${name} bookings` },
    create: {
      operationId: `create${one}`,
      summary: `Book a ${name}`,
      description: `Give both \`${ends.join('` and `')}\`, or neither: then it is the next free ${dayName}, for one.`,
      problems: { 'sold-out': { alternatives: alternatives(trade) } },
    },
    get: { operationId: `get${one}`, summary: `Read a ${name} booking` },
    change: {
      operationId: `change${one}`,
      summary: `Confirm or cancel a ${name} booking`,
      description: 'To cancel what is cancelled changes nothing and is 200.',
      problems: { 'forbidden-transition': {} },
    },
  };
}

/** What `soldOutProblem` tells. */
function alternatives(trade: Trade): z.ZodType {
  const [from, to] = trade.ends;
  const end = endSchema(trade);
  return z
    .array(z.object({ ...trade.offerShape, [from]: end, [to]: end, price: money }))
    .max(alternativesMax)
    .optional()
    .describe('What can be booked instead.');
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
