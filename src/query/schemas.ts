/** What items show and what the language takes, as schemas: for whoever describes the API. */
import { z } from 'zod';
import { limitMax, searchTextLengthMax } from './list-words.ts';
import type { Column, Face, View } from './view.ts';

export const limitDefault = 20;

/** Of a whole item; with `fields` it holds fewer. */
export function itemSchema({ shown }: Face): z.ZodObject {
  return z.object(Object.fromEntries([...shown].map(([name, { schema }]) => [name, schema])));
}

/** The arguments of an item. `own`: those that its service adds. */
export function itemArguments(face: Face, own: z.ZodObject | undefined): z.ZodObject {
  return z.object({ ...own?.shape, fields: fieldsOf(face) });
}

/** The arguments of a list; each field of its items that is not made of others is a filter. */
export function listArguments<Row extends object>(
  view: View<Row>,
  searchable: readonly Column<Row>[],
  own: z.ZodObject | undefined,
): z.ZodObject {
  const filters = view.list.map(({ name, schema }) => [name, filterBy(name, schema)] as const);
  return z.object({
    ...own?.shape,
    ...(searchable.length > 0 && { q: textIn(view, searchable) }),
    ...Object.fromEntries(filters),
    sort: sortBy(view),
    fields: fieldsOf(view),
    ...pageArguments(),
  });
}

function pageArguments() {
  return {
    limit: argument(
      z.int().min(1).default(limitDefault),
      `Items on a page. More than ${limitMax} is taken as ${limitMax}.`,
    ),
    offset: argument(z.int().min(0).default(0), 'Items to skip. Not together with `after`.'),
    after: argument(
      z.string().optional(),
      'Walks in place of `offset`: `start`, then what `links.next` says. No page is dearer than another then.',
    ),
    total: argument(z.boolean().default(true), 'Whether the items of all pages are counted.'),
  };
}

function filterBy(name: string, schema: z.ZodType): z.ZodType {
  return argument(schema.optional(), `Only items with this \`${name}\`.`);
}

function textIn<Row extends object>({ list }: View<Row>, searchable: readonly Column<Row>[]): z.ZodType {
  const names = searchable.flatMap((column) => list.find((field) => field.column === column)?.name ?? []);
  const where = names.map((name) => `\`${name}\``).join(', ');
  return argument(
    z.string().max(searchTextLengthMax).optional(),
    `Only items with this text, in any case, in one of ${where}.`,
  );
}

function sortBy<Row extends object>({ fields }: View<Row>): z.ZodType {
  const names = [...fields.keys()];
  const terms = z.array(z.enum([...names, ...names.map((name) => `-${name}`)])).min(1);
  return argument(terms.optional(), 'Fields to sort by, the weightiest first; `-` is descending.', separated);
}

function fieldsOf({ shown }: Face): z.ZodType {
  const names = z.array(z.enum([...shown.keys(), '*'])).min(1);
  return argument(names.optional(), 'Items then hold these alone, also where their schema requires more.', separated);
}

/** A list in one argument, with commas between. */
const separated = { style: 'form', explode: false };

/** What is said of an argument is not said of its schema. */
function argument(schema: z.ZodType, description: string, more: object = {}): z.ZodType {
  return schema.meta({ param: { description, ...more } });
}
