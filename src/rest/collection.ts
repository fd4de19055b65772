/** GET of a list: a page of items with its links. */
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
  /** On all pages. May be undefined where the query wants no total. */
  readonly total?: number | undefined;
  /** Whether there are rows after these. Required where the query wants no total or has an `after`. @default by `total` */
  readonly hasMore?: boolean;
}

export interface CollectionDefinition<Row extends object, Extra = unknown> {
  readonly docs: OperationDocs;
  /** Ends with a slash, such as `/bookings/`. */
  readonly path: string;
  /** Of `:id` in the path, if there is one. @default any text */
  readonly id?: z.ZodType;
  /** Heads the page for people: `Hotel bookings`. */
  readonly title: string;
  readonly view: View<Row>;
  readonly parser: ListParser<Row, Extra>;
  /** Throws the problem of a collection that does not exist. */
  readonly find: (ctx: Context, query: ListQuery<Row, Extra>) => Awaitable<Rows<Row>>;
}

/**
 * Answers `{ items, offset, limit, total, links }`, and the same links in a `Link` header. Paged by `after` it has no
 * `offset`, and with `total=false` no `total`.
 */
export function collection<Row extends object, Extra = unknown>(definition: CollectionDefinition<Row, Extra>): Route {
  const { docs, path, id, title, view, parser, find } = definition;
  const createHandler = (representations: Representations): Middleware =>
    async function answerCollection(ctx: Context) {
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
      Link: header(z.string().optional(), 'The links of the page (RFC 8288), unless they are longer than 4 KiB.'),
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

/** Throws where there is no cursor: without a `next` link, the list would look complete. */
function cursorOf<Row extends object>(
  view: View<Row>,
  sort: ListQuery<Row>['sort'],
  row: Row,
  baseUrl: string,
): string {
  const cursor = formatCursor(view, sort, row, baseUrl);
  if (cursor !== undefined) return cursor;
  const detail =
    'the next page begins after a value that is too long for a URL: sort by another field, or page by offset';
  throw problem('bad-argument', { errors: [queryFault('after', detail)] });
}
