/** The route of a collection: GET returns a page of items with links to other pages. */
import type { Context, Middleware } from 'koa';
import { z } from 'zod';
import { problem, publicBase, queryFault, type Representations, represent, requestContext } from '#http';
import {
  cursorLinks,
  formatCursor,
  formatLinkHeader,
  type ListParser,
  type ListQuery,
  offsetLinks,
  type PageLinks,
  toPublicItem,
  type View,
} from '#query';
import {
  type Awaitable,
  commonHeaders,
  header,
  type Operation,
  type OperationDocs,
  pathParameters,
  type Route,
  readHeaders,
  readProblems,
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

export interface CollectionDefinition<Row extends object, Extra = unknown> {
  readonly docs: OperationDocs;
  /** Ends with a slash, such as `/bookings/`. */
  readonly path: string;
  /** Schema of `:id` in the path, if the path has it. @default any text */
  readonly id?: z.ZodType;
  /** The heading of the HTML page, such as `Hotel bookings`. */
  readonly title: string;
  readonly view: View<Row>;
  readonly parser: ListParser<Row, Extra>;
  /** Throws `not-found` if the collection does not exist. */
  readonly find: (ctx: Context, query: ListQuery<Row, Extra>) => Awaitable<Rows<Row>>;
}

/**
 * Creates a route that responds with `{ items, offset, limit, total, links }`, and with the same links in a `Link`
 * header. With `after` there is no `offset`, and with `total=false` no `total`.
 */
export function collection<Row extends object, Extra = unknown>(definition: CollectionDefinition<Row, Extra>): Route {
  const { docs, path, id, title, view, parser, find } = definition;
  const createHandler = (representations: Representations): Middleware =>
    async function handleCollection(ctx: Context) {
      const formatter = representations.choose(ctx.req.headers.accept);
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
      represent(ctx, formatter, { items, ...position, ...total, links }, { title });
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
  return { method: 'GET', path, createHandler, operation };
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
