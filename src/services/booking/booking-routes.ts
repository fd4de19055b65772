/** Bookings over HTTP: listed, read, made and changed, each by its owner alone. */
import type { Context } from 'koa';
import { z } from 'zod';
import { requestContext } from '#http';
import { createListParser, type ListOptions, type View } from '#query';
import { collection, createItem, item, type Route, updateItem } from '#rest';
import { type BookingRow, selectPage } from '#storage';
import { badBody, type Order } from './choose.ts';
import { createLedger, type LedgerOptions } from './ledger.ts';
import { ownerOf } from './owner.ts';
import { readStay } from './stay.ts';
import { tellBookings, titlesOf } from './told.ts';
import type { Trade } from './trade.ts';
import { idOf } from './uuid.ts';

export interface BookingsDefinition<Row extends BookingRow, Wish extends object> {
  readonly view: View<Row>;
  readonly list: ListOptions<Row>;
  /** Of the body that asks for a booking; it may hold both ends of a stay and `hold`. */
  readonly schema: z.ZodType<Wish>;
  readonly wanted: (wish: Wish) => Pick<Order, 'thingId' | 'offerName' | 'guests' | 'hold'>;
}

const changed = z
  .strictObject({ status: z.enum(['confirmed', 'cancelled']) })
  .meta({ id: 'BookingChange', examples: [{ status: 'cancelled' }] });

export function bookingRoutes<Row extends BookingRow, Wish extends object>(
  { view, list, schema, wanted }: BookingsDefinition<Row, Wish>,
  means: LedgerOptions,
): readonly Route[] {
  const { database, trade } = means;
  const ledger = createLedger<Row>(means);
  const version = (row: Row) => row.version;
  const docs = tellBookings(trade);
  const titles = titlesOf(trade);

  function find(ctx: Context) {
    const owner = ownerOf(ctx);
    const id = idOf(ctx);
    return id === undefined ? undefined : ledger.firstOwned(owner, id);
  }

  return [
    collection<Row>({
      docs: docs.list,
      path: '/bookings/',
      title: titles.bookings,
      view,
      parser: createListParser(view, list),
      find: (ctx, query) => selectPage(database, ledger.ownedBy(ownerOf(ctx)), query),
    }),
    createItem<Row, Wish>({
      docs: docs.create,
      path: '/bookings/',
      title: titles.booking,
      view,
      version,
      schema,
      guard: ownerOf,
      async create(ctx, { input, key, fingerprint, responseFor }) {
        const user = ownerOf(ctx);
        const stay = stayIn(trade, input);
        const scope = [trade.name, user, ctx.method, requestContext(ctx).basePath + ctx.path];
        const question = key === undefined ? undefined : { scope, key, fingerprint };
        const made = await ledger.book({ ...wanted(input), user, stay }, question, responseFor);
        return { response: made.answer, isReplayed: made.replayed };
      },
    }),
    item<Row>({ docs: docs.get, path: '/bookings/:id', title: titles.booking, view, version, find }),
    updateItem<Row, z.infer<typeof changed>>({
      docs: docs.change,
      path: '/bookings/:id',
      title: titles.booking,
      view,
      version,
      schema: changed,
      guard: ownerOf,
      find,
      update: (ctx, { input, requireCurrent }) => ledger.change(idOf(ctx) ?? '', input.status, requireCurrent),
    }),
  ];
}

function stayIn(trade: Trade, wish: object): Order['stay'] {
  const reading = readStay(trade, wish as Readonly<Record<string, string | undefined>>);
  if (reading.ok) return reading.stay;
  throw badBody(...reading.faults.map(({ name, detail }) => ({ pointer: `/${name}`, detail })));
}
