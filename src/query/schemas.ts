/** The schemas of items and of query arguments for the OpenAPI documents, and the bounds of arguments. */
import { z } from 'zod';
import { argumentsIn, type ExtraSchema } from './arguments.ts';
import type { Order } from './fields.ts';
import type { Column, ItemShape, View } from './view.ts';

export const limitDefault = 20;
export const limitMax = 100;
/** In characters, as JSON Schema counts them (RFC 8259): an emoji is one. */
export const searchTextLengthMax = 200;
/** Limits the value of a filter in the same way, so that page links stay short. */
export const filterLengthMax = 500;

/** Returns the schema of an item with all fields. */
export function itemSchema({ shown }: ItemShape): z.ZodObject {
  return z.object(Object.fromEntries([...shown].map(([name, { schema }]) => [name, schema])));
}

/** Returns the schema of an item's arguments, including those that its service adds. */
export function itemArguments(shape: ItemShape, extra: ExtraSchema<unknown> | undefined): z.ZodObject {
  return z.object({ ...(extra && argumentsIn(extra)), fields: fieldsArgument(shape) });
}

/** Returns the schema of a list's arguments. Every field that is based on a column is a filter. */
export function listArguments<Row extends object>(
  view: View<Row>,
  searchable: readonly Column<Row>[],
  extra: ExtraSchema<unknown> | undefined,
  defaultSort: readonly Order<Row>[],
): z.ZodObject {
  const filters = view.list.map(({ name, schema }) => [name, filterArgument(name, schema)] as const);
  return z.object({
    ...(extra && argumentsIn(extra)),
    ...(searchable.length > 0 && { q: searchArgument(view, searchable) }),
    ...Object.fromEntries(filters),
    sort: sortArgument(view, defaultSort),
    fields: fieldsArgument(view),
    ...pageArguments(),
  });
}

function pageArguments() {
  return {
    limit: argument(
      z.int().min(1).default(limitDefault),
      `The maximum number of items per page. Values above ${limitMax} are reduced to ${limitMax}.`,
    ),
    // Not `default(0)`: some generated clients send defaults, and `after` rejects any offset.
    offset: argument(z.int().min(0).optional(), 'The items to skip, 0 by default. Cannot be combined with `after`.'),
    after: argument(
      z.string().min(1).optional(),
      'Pages by cursor instead of `offset`: begin with `start`, then follow `links.next`. Every page takes the same time.',
    ),
    total: argument(z.boolean().default(true), 'Whether to count the items of all pages.'),
  };
}

function filterArgument(name: string, schema: z.ZodType): z.ZodType {
  return argument(schema.optional(), `Only items with this \`${name}\`.`, {}, lengthsOf(schema));
}

/** Returns the length bounds of a text, unless its values or its format already limit it. */
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
    `Only items that contain this text in any of ${where}. Case is ignored.`,
  );
}

function sortArgument<Row extends object>(
  { key, fields, list }: View<Row>,
  defaultSort: readonly Order<Row>[],
): z.ZodType {
  const names = [...fields.keys()];
  const nameOf = (column: Column<Row>) => list.find((field) => field.column === column)?.name;
  const terms = z.array(z.enum([...names, ...names.map((name) => `-${name}`)])).min(1);
  const defaults = defaultSort.map(({ column, descending }) => `${descending ? '-' : ''}${nameOf(column)}`);
  const description = 'The fields to sort by, most important first, each at most once. `-` means descending.';
  const ties = `By default \`${defaults}\`. Equal items are sorted by \`${nameOf(key)}\`.`;
  // Go's generator turns the default of a list into invalid code, and Java's turns `uniqueItems` into an unordered set.
  return argument(terms.optional(), `${description} ${ties}`, commaSeparated);
}

function fieldsArgument({ shown }: ItemShape): z.ZodType {
  const names = z.array(z.enum([...shown.keys(), '*'])).min(1);
  const description =
    'The fields to return. By default, all are returned. Items then lack the others, although their schema requires them.';
  return argument(names.optional(), description, commaSeparated);
}

const commaSeparated = { style: 'form', explode: false };

/** In OpenAPI the description belongs to the parameter, not to its schema. */
function argument(schema: z.ZodType, description: string, more: object = {}, bounds: object = {}): z.ZodType {
  return schema.meta({ ...bounds, param: { description, ...more } });
}
