/** The routes that read: a page of a collection with links to other pages, a single item, and an index of collections. */
import type { Context, Middleware } from 'koa';
import { z } from 'zod';
import { problem, publicBase, queryFault, represent, requestContext, searchOf } from '#http';
import {
  createExtraArguments,
  createListParser,
  createView,
  cursorLinks,
  type ExtraSchema,
  type Field,
  formatCursor,
  formatLinkHeader,
  itemArguments,
  type ListOptions,
  type ListQuery,
  offsetLinks,
  type PageLinks,
  parseItemQuery,
  toPublicItem,
  type View,
} from '#query';
import {
  type AppParts,
  type Awaitable,
  commonHeaders,
  header,
  type ItemTitle,
  keySchema,
  type Operation,
  type OperationDocs,
  pathParameters,
  type Route,
  readHeaders,
  readProblems,
  titleOf,
} from './operation.ts';

/** One page of rows. */
export interface Rows<Row> {
  readonly items: readonly Row[];
  /** The number of rows on all pages. May be undefined if the query does not want a total. */
  readonly total?: number | undefined;
  /**
   * Whether there are rows after this page. Required if the query has `after` or does not want a total.
   * @default computed from `total`
   */
  readonly hasMore?: boolean;
}

export interface CollectionDefinition<Row extends object, Extra = unknown> extends ListOptions<Row, Extra> {
  readonly docs: OperationDocs;
  /** Ends with a slash, such as `/orders/`. */
  readonly path: string;
  /** Schema of `:id` in the path, if the path has it. @default any text */
  readonly id?: z.ZodType;
  /** The heading of the HTML page, such as `Open orders`. */
  readonly title: string;
  readonly view: View<Row>;
  /** Reads one page; `pageOf` takes it from an array. Throws `not-found` if the collection does not exist. */
  readonly find: (ctx: Context, query: ListQuery<Row, Extra>) => Awaitable<Rows<Row>>;
}

/**
 * Creates a route that responds with `{ items, offset, limit, total, links }`, and with the same links in a `Link`
 * header (RFC 8288). With `after` there is no `offset`, and with `total=false` no `total`. Clients page by `offset` and
 * `limit` or by `after`, sort by `sort=name,-id`, filter by any field that shows a column, search by `q`, and select
 * `fields`. Every fault of the query is in one 400.
 * @throws {TypeError} if a field has the name of an argument, or `defaultSort` a column that the view does not show.
 */
export function collection<Row extends object, Extra = unknown>(definition: CollectionDefinition<Row, Extra>): Route {
  const { docs, path, id, title, view, find } = definition;
  const parser = createListParser(view, definition);
  const createHandler = ({ representations, page: around }: AppParts): Middleware => {
    const page = { ...around, collections: view.collections };
    return async function handleCollection(ctx: Context) {
      const baseUrl = `${publicBase(ctx)}/`;
      const query = parser(ctx.search, baseUrl);
      const rows = await find(ctx, query);
      const { offset, limit, fields, after, wantsTotal = true } = query;
      const links = linksOf(ctx, view, query, rows, baseUrl);
      const link = formatLinkHeader(links);
      if (link !== undefined) ctx.set('Link', link);
      const items = rows.items.map((row) => toPublicItem(view, row, fields, baseUrl));
      const position = after === undefined ? { offset, limit } : { limit };
      const total = wantsTotal ? { total: rows.total } : {};
      const body = { items, ...position, ...total, links };
      represent(ctx, representations.choose(ctx.req.headers.accept), body, { title, page });
    };
  };
  const operation = (): Operation => ({
    ...docs,
    problems: { ...readProblems, ...docs.problems },
    path: pathParameters(path, id),
    query: parser.schema(),
    headers: readHeaders(),
    status: 200,
    returns: 'page',
    shape: view,
    responseHeaders: commonHeaders().extend({
      Link: header(z.string().optional(), 'The same links as in the body (RFC 8288). Omitted if longer than 4 KiB.'),
    }),
  });
  return { method: 'GET', path, title, createHandler, operation };
}

function linksOf<Row extends object>(
  ctx: Context,
  view: View<Row>,
  query: ListQuery<Row>,
  { items, total, hasMore }: Rows<Row>,
  baseUrl: string,
): PageLinks {
  const { offset, limit, after, wantsTotal = true, sort } = query;
  const page = { limit, path: requestContext(ctx).basePath + ctx.path, search: ctx.search };
  if (after === undefined) return offsetLinks({ ...page, offset, total: wantsTotal ? total : undefined, hasMore });
  const last = hasMore === true ? items.at(-1) : undefined;
  return cursorLinks({ ...page, next: last && cursorOf(view, sort, last, baseUrl) });
}

/** Throws if the row has no cursor: a page without a `next` link would look like the last one. */
function cursorOf<Row extends object>(
  view: View<Row>,
  sort: ListQuery<Row>['sort'],
  row: Row,
  baseUrl: string,
): string {
  const cursor = formatCursor(view, sort, row, baseUrl);
  if (cursor !== undefined) return cursor;
  const detail = 'the cursor of the next page would be too long for a URL: sort by another field, or page by offset';
  throw problem('bad-argument', { errors: [queryFault('after', detail)] });
}

export interface ItemDefinition<Row extends object, Extra = unknown> {
  readonly docs: OperationDocs;
  /** Must not end with a slash: `/orders/:id`. */
  readonly path: string;
  /** The heading of the HTML page. */
  readonly title: ItemTitle<Row>;
  readonly view: View<Row>;
  /** Returns a number that changes whenever the row does. The entity tag begins with it. @default no number */
  readonly version?: (row: Row) => number;
  /** Arguments in addition to `fields`. @default none */
  readonly extra?: ExtraSchema<Extra>;
  /** Returns undefined if there is no such item or the caller may not see it. */
  readonly find: (ctx: Context, extra: Extra | undefined) => Awaitable<Row | undefined>;
}

/**
 * Creates a route that responds with the row as its view shows it, and with an `ETag`; with 304 or 412 as `If-None-Match`
 * and `If-Match` say (RFC 9110 section 13), 404 if there is no row, 400 with every fault of the query, and 406.
 */
export function item<Row extends object, Extra = unknown>(definition: ItemDefinition<Row, Extra>): Route {
  const { docs, path, title, view, version, extra, find } = definition;
  const extraArguments = extra && createExtraArguments(extra);
  const createHandler = ({ representations, page: around }: AppParts): Middleware => {
    const page = { ...around, collections: view.collections };
    return async function handleItem(ctx: Context) {
      const query = parseItemQuery(view, searchOf(ctx.req.url ?? '/'), extraArguments);
      const found = find(ctx, query.extra);
      const row = found instanceof Promise ? await found : found;
      if (row === undefined) throw problem('not-found');
      // Skip computing the base URL for views without URLs.
      const shown = toPublicItem(view, row, query.fields, view.usesBaseUrl ? `${publicBase(ctx)}/` : '');
      const formatter = representations.choose(ctx.req.headers.accept);
      const shownTitle = titleOf(title, row, formatter);
      represent(ctx, formatter, shown, { title: shownTitle, version: version?.(row), page });
    };
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
  return { method: 'GET', path, title: typeof title === 'string' ? title : '', createHandler, operation };
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
