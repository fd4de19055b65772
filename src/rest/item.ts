/** The routes of a single item and of an index that lists the collections. */
import type { Context, Middleware } from 'koa';
import { z } from 'zod';
import { problem, publicBase, type Representations, represent, searchOf } from '#http';
import {
  createExtraArguments,
  createView,
  type ExtraSchema,
  type Field,
  itemArguments,
  parseItemQuery,
  toPublicItem,
  type View,
} from '#query';
import {
  type Awaitable,
  commonHeaders,
  keySchema,
  type Operation,
  type OperationDocs,
  pathParameters,
  type Route,
  readHeaders,
  readProblems,
} from './operation.ts';

export interface ItemDefinition<Row extends object, Extra = unknown> {
  readonly docs: OperationDocs;
  /** Must not end with a slash: `/bookings/:id`. */
  readonly path: string;
  readonly title: string;
  readonly view: View<Row>;
  /** Returns a number that changes whenever the row does. The entity tag begins with it. @default no number */
  readonly version?: (row: Row) => number;
  /** Arguments in addition to `fields`. @default none */
  readonly extra?: ExtraSchema<Extra>;
  /** Returns undefined if there is no such item or the caller may not see it. */
  readonly find: (ctx: Context, extra: Extra | undefined) => Awaitable<Row | undefined>;
}

export function item<Row extends object, Extra = unknown>(definition: ItemDefinition<Row, Extra>): Route {
  const { docs, path, title, view, version, extra, find } = definition;
  const extraArguments = extra && createExtraArguments(extra);
  const createHandler = (representations: Representations): Middleware =>
    async function handleItem(ctx: Context) {
      const formatter = representations.choose(ctx.req.headers.accept);
      const query = parseItemQuery(view, searchOf(ctx.req.url ?? '/'), extraArguments);
      const found = find(ctx, query.extra);
      const row = found instanceof Promise ? await found : found;
      if (row === undefined) throw problem('not-found');
      // Skip computing the base URL for views without URLs.
      const shown = toPublicItem(view, row, query.fields, view.usesBaseUrl ? `${publicBase(ctx)}/` : '');
      represent(ctx, formatter, shown, { title, version: version?.(row) });
    };
  const operation = (): Operation => ({
    ...docs,
    problems: { ...readProblems, ...(path.includes(':') && { 'not-found': {} }), ...docs.problems },
    path: pathParameters(path, keySchema(view)),
    query: itemArguments(view, extra),
    headers: readHeaders(),
    status: 200,
    returns: 'item',
    shape: view,
    responseHeaders: commonHeaders(),
  });
  return { method: 'GET', path, createHandler, operation };
}

export interface IndexDefinition {
  readonly docs: OperationDocs;
  readonly path: string;
  readonly title: string;
  /** The paths of the collections relative to the app's root, such as `messages/`, by name (in snake_case). */
  readonly entries: Readonly<Record<string, string>>;
}

/** Creates a route that returns an item with the absolute URL of each collection, by name. */
export function index({ docs, path, title, entries }: IndexDefinition): Route {
  const names = Object.keys(entries);
  const urlAt = (name: string): Field<IndexDefinition['entries']> => ({
    column: name,
    schema: z.url(),
    toPublic: (collectionPath, baseUrl) => `${baseUrl}${collectionPath}`,
  });
  const view = createView<IndexDefinition['entries']>({
    key: names[0] ?? '',
    name: 'Index',
    fields: Object.fromEntries(names.map((name) => [name, urlAt(name)])),
  });
  return item({ docs, path, title, view, find: () => entries });
}
