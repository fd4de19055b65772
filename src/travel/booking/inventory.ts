/** The routes of hotels or cars: list and read them, with their availability for a stay. */
import type { Kysely, SelectQueryBuilder } from 'kysely';
import { z } from 'zod';
import { problem, queryFault } from '#http';
import type { ListOptions, ListQuery, View } from '#query';
import { collection, item, type OperationDocs, type Route } from '#rest';
import type { CarRow, HotelRow, Tables } from '../storage/schema.ts';
import { createPageReader, type Page } from '../storage/select-page.ts';
import type { Slot } from '../storage/statement.ts';
import {
  type AvailabilityStatements,
  findFreeOffers,
  hasMatchingOffer,
  loadOffers,
  prepareAvailability,
} from './availability.ts';
import { type BookingKind, capitalised, type Offer, parseId, titlesOf } from './kind.ts';
import { priceOf } from './money.ts';
import { inThePast, parseStay, type Stay, timeText } from './stay.ts';
import type { BookingStoreOptions } from './store.ts';

/** A hotel or a car. */
export interface Resource {
  readonly id: string;
}

/** The data that the view of a hotel or car needs in addition to its row. */
export interface WithAvailability {
  readonly offers: readonly Offer[];
  /** The offers that are free for the stay and large enough. Undefined when the client gave no stay. */
  readonly available: readonly Availability[] | undefined;
}

export interface Availability {
  readonly offer: Offer;
  readonly units: number;
  /** For the whole stay, in minor units. */
  readonly price: number;
}

export interface InventoryDefinition<Row extends Resource> {
  /** All columns of the row, listed by name so that prepared queries survive a column that a newer process adds. */
  readonly columns: readonly (keyof Row & (keyof HotelRow | keyof CarRow))[];
  readonly view: View<Row & WithAvailability>;
  /** The heading of the page of a hotel or car. */
  readonly title: (row: Row) => string;
  readonly list: Pick<ListOptions<Row & WithAvailability>, 'searchable' | 'defaultSort'>;
  /** Adds the argument `guests` to the routes. @default false */
  readonly hasGuests?: boolean;
}

export function inventoryRoutes<Row extends Resource>(
  { columns, view, title, list, hasGuests = false }: InventoryDefinition<Row>,
  { database, kind, clock, limits }: BookingStoreOptions,
): readonly Route[] {
  const { kysely } = database;
  const selected = kysely.selectFrom(kind.tables.resources).select(columns);
  const all = selected as unknown as SelectQueryBuilder<Tables, keyof Tables, Row>;
  const extra = createStayArguments(kind, limits.daysMax, hasGuests);
  const docs = inventoryDocs(kind);
  const readAll = createPageReader(database, () => all);
  const readLargeEnough = createPageReader(database, (slot: Slot<number>) => {
    const guests = slot((count) => count);
    return all.where(hasMatchingOffer(kind, guests));
  });
  const readFree = createPageReader(database, (slot: Slot<FreeSearch>) => {
    const days = { firstDay: slot(({ firstDay }) => firstDay), endDay: slot(({ endDay }) => endDay) };
    const guests = slot((search) => search.guests);
    return all.where(hasMatchingOffer(kind, guests, { ...days, now: slot(({ now }) => now) }));
  });
  const readFirst = database.prepareFirst<Row>(all.where('id', '=', ''));
  const statements = prepareAvailability(kind);

  function readPage({ stay, guests }: StayQuery, nowMs: number, query: ListQuery<Row>): Promise<Page<Row>> {
    if (stay !== undefined) return readFree({ ...stay, guests: guests ?? 1, now: timeText(nowMs) }, query);
    return guests === undefined ? readAll(undefined, query) : readLargeEnough(guests, query);
  }

  return [
    collection<Row & WithAvailability, StayQuery>({
      docs: docs.list,
      path: '/',
      title: titlesOf(kind).resources,
      view,
      ...list,
      extra,
      async find(_ctx, query) {
        const { extra: stayQuery = emptyStayQuery } = query;
        const nowMs = clock();
        rejectPastStay(kind, stayQuery, nowMs);
        // The view filters and sorts only by columns of the row, so this query is valid for the row as well.
        const page = await readPage(stayQuery, nowMs, query as unknown as ListQuery<Row>);
        return { ...page, items: await withAvailability(kysely, statements, page.items, stayQuery, nowMs) };
      },
    }),
    item<Row & WithAvailability, StayQuery>({
      docs: docs.get,
      path: '/:id',
      title,
      view,
      extra,
      async find(ctx, stayQuery = emptyStayQuery) {
        const id = parseId(ctx['params'].id);
        const nowMs = clock();
        rejectPastStay(kind, stayQuery, nowMs);
        const row = id === undefined ? undefined : await readFirst(id);
        return row && (await withAvailability(kysely, statements, [row], stayQuery, nowMs))[0];
      },
    }),
  ];
}

function inventoryDocs({ name, plural, stay: { fields } }: BookingKind): Record<'list' | 'get', OperationDocs> {
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

/** The stay and the number of guests in the query string. */
interface StayQuery {
  readonly stay: Stay | undefined;
  /** Undefined when the client gave no number; availability is then computed for one guest. */
  readonly guests: number | undefined;
}

interface FreeSearch extends Pick<Stay, 'firstDay' | 'endDay'> {
  readonly guests: number;
  /** RFC 3339, UTC. */
  readonly now: string;
}

const emptyStayQuery: StayQuery = Object.freeze({ stay: undefined, guests: undefined });

/** Applies the same rule as a booking does. Pass the time that the search uses, so that both agree. */
function rejectPastStay({ stay: { fields, earliestMs } }: BookingKind, { stay }: StayQuery, nowMs: number): void {
  if (stay === undefined || stay.fromMs >= earliestMs(nowMs)) return;
  throw problem('bad-argument', { errors: [queryFault(fields[0], inThePast)] });
}

const guestsPattern = /^(?:[1-9]|1\d|20)$/;

/**
 * Creates the schema of a stay's arguments: both start and end or neither, and the guests if the kind has them. Makes
 * all checks in the transform: Zod would skip it if the object itself were invalid, and we report all faults together.
 */
function createStayArguments(kind: BookingKind, daysMax: number, hasGuests: boolean) {
  const shape = stayArgumentShape(kind, hasGuests);
  return z.object(shape).transform((given, ctx): StayQuery => {
    const addFault = (field: string, message: string) => ctx.addIssue({ code: 'custom', path: [field], message });
    const parsed = parseStay(kind, daysMax, given);
    for (const { field, detail } of parsed.ok ? [] : parsed.faults) addFault(field, detail);
    const { guests } = given;
    if (guests !== undefined && !guestsPattern.test(guests)) addFault('guests', 'must be a whole number from 1 to 20');
    return { stay: parsed.ok ? parsed.stay : undefined, guests: guests === undefined ? undefined : Number(guests) };
  });
}

function stayArgumentShape({ stay }: BookingKind, hasGuests: boolean): Record<string, z.ZodType<string | undefined>> {
  const { fields, format, examples } = stay;
  const description = `The dates to show availability for. Give both \`${fields.join('` and `')}\`, or neither.`;
  const end = (example: string) =>
    z
      .string()
      .meta({ format, examples: [example] })
      .optional()
      .meta({ param: { description } });
  const ends = Object.fromEntries(fields.map((field, index) => [field, end(examples[index] ?? '')]));
  // Text in a query, but a number for generated clients.
  const guests = z
    .string()
    .meta({ type: 'integer', minimum: 1, maximum: 20, examples: [2] })
    .optional()
    .meta({ param: { description: 'The number of guests that one room must sleep.' } });
  return { ...ends, ...(hasGuests && { guests }) };
}

export async function withAvailability<Row extends Resource>(
  kysely: Kysely<Tables>,
  statements: AvailabilityStatements,
  resources: readonly Row[],
  { stay, guests = 1 }: StayQuery,
  nowMs: number,
): Promise<readonly (Row & WithAvailability)[]> {
  const ids = resources.map(({ id }) => id);
  const offers = await loadOffers(kysely, statements, ids);
  const available = stay && (await availableFor(kysely, statements, offers, { stay, guests, nowMs }));
  return resources.map((resource) => ({
    ...resource,
    offers: offers.filter(({ resource_id }) => resource_id === resource.id),
    available: available?.filter(({ offer }) => offer.resource_id === resource.id),
  }));
}

async function availableFor(
  kysely: Kysely<Tables>,
  statements: AvailabilityStatements,
  all: readonly Offer[],
  { stay, guests, nowMs }: { readonly stay: Stay; readonly guests: number; readonly nowMs: number },
): Promise<readonly Availability[]> {
  const offers = all.filter((offer) => offer.guests >= guests);
  const free = await findFreeOffers(kysely, statements, { offers, stay, now: timeText(nowMs) });
  return free.map(({ offer, units }) => ({ offer, units, price: priceOf(offer, stay) }));
}
