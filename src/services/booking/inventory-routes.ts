/** The inventory over HTTP: what there is, and what is left of it for a stay. */
import type { Kysely, SelectQueryBuilder } from 'kysely';
import { z } from 'zod';
import { createListParser, type ListOptions, type ListQuery, type View } from '#query';
import { collection, item, type Route } from '#rest';
import { selectPage, type Tables } from '#storage';
import { type Offered, type Wanted, withOffers } from './inventory.ts';
import type { LedgerOptions } from './ledger.ts';
import { hasRoom } from './offers.ts';
import { endSchema, readStay } from './stay.ts';
import { tellInventory, titlesOf } from './told.ts';
import type { Trade } from './trade.ts';
import { idOf } from './uuid.ts';

/** A hotel or a car. */
export interface Thing {
  readonly id: string;
}

export interface InventoryDefinition<Row extends Thing> {
  /** Names its columns: it is prepared once, and must outlive a column that a migration adds. */
  readonly all: (kysely: Kysely<Tables>) => SelectQueryBuilder<Tables, keyof Tables, Row>;
  readonly view: View<Row & Offered>;
  readonly list: Pick<ListOptions<Row & Offered>, 'searchable' | 'defaultSort'>;
  /** @default false */
  readonly hasGuests?: boolean;
}

export function inventoryRoutes<Row extends Thing>(
  { all, view, list, hasGuests = false }: InventoryDefinition<Row>,
  { database, trade, clock }: LedgerOptions,
): readonly Route[] {
  const { kysely } = database;
  const own = createArguments(trade, hasGuests);
  const docs = tellInventory(trade);
  const titles = titlesOf(trade);
  const first = database.prepareFirst<Row>(all(kysely).where('id', '=', ''));
  const enrich = (rows: readonly Row[], asked: Asked | undefined) =>
    withOffers(kysely, trade, rows, wantedOf(trade, asked), clock());
  return [
    collection<Row & Offered, Asked>({
      docs: docs.list,
      path: '/',
      title: titles.things,
      view,
      parser: createListParser<Row & Offered, Asked>(view, { ...list, extra: own }),
      async find(_ctx, query) {
        const { stay, guests } = wantedOf(trade, query.extra);
        const isNarrowed = stay !== undefined || guests !== undefined;
        const free = hasRoom(trade, stay, guests ?? 1, new Date(clock()).toISOString());
        const rows = isNarrowed ? all(kysely).where(free) : all(kysely);
        // The columns that a view can filter and sort by are those of the row.
        const page = await selectPage(database, rows, query as unknown as ListQuery<Row>);
        return { ...page, items: await enrich(page.items, query.extra) };
      },
    }),
    item<Row & Offered, Asked>({
      docs: docs.get,
      path: '/:id',
      title: titles.thing,
      view,
      extra: own,
      async find(ctx, asked) {
        const id = idOf(ctx);
        const row = id === undefined ? undefined : await first(id);
        return row && (await enrich([row], asked))[0];
      },
    }),
  ];
}

type Asked = Readonly<Record<string, string | undefined>>;

/** Both ends of a stay or none, and guests where a thing has any. */
function createArguments(trade: Trade, hasGuests: boolean) {
  const guests = z
    .string()
    .regex(/^(?:[1-9]|1\d|20)$/, 'must be a whole number from 1 to 20')
    .optional()
    .meta({ param: { description: 'How many are to sleep there, from 1 to 20.' }, examples: ['2'] });
  const [from, to] = trade.ends;
  const description = `Of the stay: give both \`${from}\` and \`${to}\`, or neither.`;
  const end = endSchema(trade).optional().meta({ param: { description } });
  const shape: Record<string, z.ZodType<string | undefined>> = { [from]: end, [to]: end, ...(hasGuests && { guests }) };
  return z.object(shape).superRefine((asked, ctx) => {
    const reading = readStay(trade, asked);
    if (reading.ok) return;
    for (const { name, detail } of reading.faults) ctx.addIssue({ code: 'custom', path: [name], message: detail });
  });
}

function wantedOf(trade: Trade, asked: Asked = {}): Wanted {
  const reading = readStay(trade, asked);
  const guests = asked['guests'];
  return { stay: reading.ok ? reading.stay : undefined, guests: guests === undefined ? undefined : Number(guests) };
}
