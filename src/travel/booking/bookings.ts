/** The routes of bookings: list, create, read and change them. Users can access only their own. */
import type { Context } from 'koa';
import { z } from 'zod';
import { decodeHeader, problem, requestContext, userHeader } from '#http';
import type { ListOptions, View } from '#query';
import { collection, createItem, item, type OperationDocs, type RequestIdentity, type Route, updateItem } from '#rest';
import type { BookingRow } from '../storage/schema.ts';
import { alternativesSchema } from './availability.ts';
import { formatReference } from './booking-view.ts';
import { type BookingRequest, badBody } from './create-booking.ts';
import type { IdempotentRequest } from './idempotent-requests.ts';
import { type BookingKind, capitalised, parseId, titlesOf } from './kind.ts';
import { parseStay } from './stay.ts';
import { type BookingStoreOptions, createBookingStore } from './store.ts';

export interface BookingsDefinition<Row extends BookingRow, Body extends object> {
  readonly view: View<Row>;
  readonly list: ListOptions<Row>;
  /** Schema of the request body. Its fields may include `hold` and the start and end of the stay. */
  readonly schema: z.ZodType<Body>;
  readonly requestOf: (body: Body) => Pick<BookingRequest, 'resourceId' | 'offerName' | 'guests' | 'hold'>;
}

/** Schema of the `hold` field of a booking request. */
export const holdSchema = z
  .boolean()
  .default(false)
  .describe('Creates a pending booking, which expires at `expires_at` unless it is confirmed first.');

const changeSchema = z
  .strictObject({ status: z.enum(['confirmed', 'cancelled']) })
  .meta({ id: 'BookingChange', examples: [{ status: 'cancelled' }] });

export function bookingRoutes<Row extends BookingRow, Body extends object>(
  { view, list, schema, requestOf }: BookingsDefinition<Row, Body>,
  options: BookingStoreOptions,
): readonly Route[] {
  const { kind, limits } = options;
  const store = createBookingStore<Row>(options);
  const version = (row: Row) => row.version;
  const docs = bookingDocs(kind);
  const title = ({ reference }: Row) => `Booking ${formatReference(reference)}`;

  /** Adds what else a repetition must have in common with the first request. */
  function idempotent(ctx: Context, identity: RequestIdentity | undefined): IdempotentRequest | undefined {
    if (identity === undefined) return undefined;
    return { scope: [kind.name, requireUser(ctx), ctx.method, requestContext(ctx).basePath + ctx.path], ...identity };
  }

  function find(ctx: Context) {
    const user = requireUser(ctx);
    const id = parseId(ctx['params'].id);
    return id === undefined ? undefined : store.readOwned(user, id);
  }

  return [
    collection<Row>({
      docs: docs.list,
      path: '/bookings/',
      title: titlesOf(kind).bookings,
      view,
      ...list,
      find: (ctx, query) => store.readPage(requireUser(ctx), query),
    }),
    createItem<Row, Body>({
      docs: docs.create,
      path: '/bookings/',
      title,
      view,
      version,
      schema,
      guard: requireUser,
      create(ctx, { input, identity, responseFor }) {
        const user = requireUser(ctx);
        const request = { ...requestOf(input), user, stay: stayIn(kind, limits.daysMax, input) };
        return store.create(request, idempotent(ctx, identity), responseFor);
      },
    }),
    item<Row>({ docs: docs.get, path: '/bookings/:id', title, view, version, find }),
    updateItem<Row, z.infer<typeof changeSchema>>({
      docs: docs.change,
      path: '/bookings/:id',
      title,
      view,
      version,
      schema: changeSchema,
      guard: requireUser,
      find,
      update(ctx, { input: { status }, identity, responseFor, requireCurrent }) {
        const change = { id: parseId(ctx['params'].id) ?? '', status, requireCurrent };
        return store.change(change, idempotent(ctx, identity), responseFor);
      },
    }),
  ];
}

/** Parses the stay in a request body. Throws `bad-body` if it is invalid. */
function stayIn(kind: BookingKind, daysMax: number, body: object): BookingRequest['stay'] {
  const parsed = parseStay(kind, daysMax, body as Readonly<Record<string, string | undefined>>);
  if (parsed.ok) return parsed.stay;
  throw badBody(...parsed.faults.map(({ field, detail }) => ({ pointer: `/${field}`, detail })));
}

/**
 * Returns the user that the gateway authenticated. Throws `unauthorized` if the request did not come through a gateway.
 */
function requireUser(ctx: Context): string {
  const user = ctx.req.headers[userHeader];
  if (typeof user === 'string' && user !== '') return decodeHeader(user);
  throw problem('unauthorized', {
    detail: 'Bookings belong to a user. Call this service through the gateway, which authenticates the user.',
    headers: { 'WWW-Authenticate': 'Basic realm="travel", charset="UTF-8"' },
  });
}

function bookingDocs(kind: BookingKind): Record<'list' | 'create' | 'get' | 'change', OperationDocs> {
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
      description: 'Changing a booking to the status that it already has changes nothing and returns 200.',
      problems: { 'forbidden-transition': {} },
    },
  };
}
