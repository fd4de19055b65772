/** What items show and what lists accept, as schemas for the API's description; and the limits of both. */
import { z } from 'zod';
import { argumentsIn, type ExtraSchema } from './arguments.ts';
import type { Column, ItemShape, View } from './view.ts';

export const limitDefault = 20;
export const limitMax = 100;
export const searchTextLengthMax = 200;
/** Of any filter. Longer ones would make long links. */
export const filterLengthMax = 500;

/** Of a whole item. */
export function itemSchema({ shown }: ItemShape): z.ZodObject {
  return z.object(Object.fromEntries([...shown].map(([name, { schema }]) => [name, schema])));
}

/** The arguments of an item. `extra`: those that its service adds. */
export function itemArguments(shape: ItemShape, extra: ExtraSchema<unknown> | undefined): z.ZodObject {
  return z.object({ ...(extra && argumentsIn(extra)), fields: fieldsArgument(shape) });
}

/** The arguments of a list; each field of its items that is a column is a filter. */
export function listArguments<Row extends object>(
  view: View<Row>,
  searchable: readonly Column<Row>[],
  extra: ExtraSchema<unknown> | undefined,
): z.ZodObject {
  const filters = view.list.map(({ name, schema }) => [name, filterArgument(name, schema)] as const);
  return z.object({
    ...(extra && argumentsIn(extra)),
    ...(searchable.length > 0 && { q: searchArgument(view, searchable) }),
    ...Object.fromEntries(filters),
    sort: sortArgument(view),
    fields: fieldsArgument(view),
    ...pageArguments(),
  });
}

function pageArguments() {
  return {
    limit: argument(
      z.int().min(1).default(limitDefault),
      `Items on a page. More than ${limitMax} counts as ${limitMax}.`,
    ),
    offset: argument(z.int().min(0).default(0), 'Items to skip. Not together with `after`.'),
    after: argument(
      z.string().min(1).optional(),
      'Pages by cursor in place of `offset`: `start`, then the one in `links.next`. Every page costs the same then.',
    ),
    total: argument(z.boolean().default(true), 'Whether the items of all pages are counted.'),
  };
}

function filterArgument(name: string, schema: z.ZodType): z.ZodType {
  return argument(schema.optional(), `Only items with this \`${name}\`.`, {}, lengthsOf(schema));
}

/** The bounds of a text, unless its values or its format bound it already. */
function lengthsOf(schema: z.ZodType): object {
  const { type, enum: values, const: value, format, maxLength = filterLengthMax } = z.toJSONSchema(schema);
  const isBounded = values !== undefined || value !== undefined || (format !== undefined && format !== 'uri');
  if (type !== 'string' || isBounded) return {};
  return { minLength: 1, maxLength: Math.min(maxLength, filterLengthMax) };
}

function searchArgument<Row extends object>({ list }: View<Row>, searchable: readonly Column<Row>[]): z.ZodType {
  const names = searchable.flatMap((column) => list.find((field) => field.column === column)?.name ?? []);
  const where = names.map((name) => `\`${name}\``).join(', ');
  return argument(
    z.string().min(1).max(searchTextLengthMax).optional(),
    `Only items with this text, in any case, in one of ${where}.`,
  );
}

function sortArgument<Row extends object>({ fields }: View<Row>): z.ZodType {
  const names = [...fields.keys()];
  const terms = z.array(z.enum([...names, ...names.map((name) => `-${name}`)])).min(1);
  const description = 'Fields to sort by, each once, the most important first; `-` is descending.';
  return argument(terms.optional(), description, commaSeparated, { uniqueItems: true });
}

function fieldsArgument({ shown }: ItemShape): z.ZodType {
  const names = z.array(z.enum([...shown.keys(), '*'])).min(1);
  const description = 'Items then have only these fields.';
  return argument(names.optional(), description, commaSeparated);
}

const commaSeparated = { style: 'form', explode: false };

/** In OpenAPI the description belongs to the parameter, not to its schema. */
function argument(schema: z.ZodType, description: string, more: object = {}, bounds: object = {}): z.ZodType {
  return schema.meta({ ...bounds, param: { description, ...more } });
}
