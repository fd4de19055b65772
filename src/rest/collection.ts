/** Lists that clients page through. */
import type { Context, Middleware } from 'koa';
import { z } from 'zod';
import { problem, publicBase, type Representations, represent, requestContext } from '#http';
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
  commonAnswers,
  header,
  type Operation,
  pathParameters,
  readHeaders,
  readProblems,
  type Told,
} from './operation.ts';
import type { DocumentedRoute, Eventually } from './route.ts';

/** One page of rows, and how many rows there are on all pages. */
export interface Rows<Row> {
  readonly items: readonly Row[];
  /** May be undefined where the query is not counted. */
  readonly total?: number | undefined;
  /** Whether there are rows behind these. Needed where the query is not counted or has an `after`. @default by `total` */
  readonly hasMore?: boolean;
}

export interface CollectionDefinition<Row extends object, Own = unknown> {
  readonly told: Told;
  /** Ends with a slash, such as `/bookings/`. */
  readonly path: string;
  /** Of `:id` in the path, if there is one. @default any text */
  readonly id?: z.ZodType;
  /** For people, such as `Hotel bookings`. */
  readonly title: string;
  readonly view: View<Row>;
  readonly language: ListParser<Row, Own>;
  /** Throws the problem of a collection that is not there. */
  readonly find: (ctx: Context, query: ListQuery<Row, Own>) => Eventually<Rows<Row>>;
}

/**
 * A list that clients page through: `{ items, offset, limit, total, links }`, and the same links in a `Link` header.
 * Where the client walks by `after` there is no `offset`, and where it asks for `total=false` no `total`.
 */
export function collection<Row extends object, Own = unknown>(
  definition: CollectionDefinition<Row, Own>,
): DocumentedRoute {
  const { told, path, id, title, view, language, find } = definition;
  const answer = (representations: Representations): Middleware =>
    async function answerCollection(ctx: Context) {
      const formatter = representations.choose(ctx.req.headers.accept);
      const place = `${publicBase(ctx)}/`;
      const query = language(ctx.search, place);
      const rows = await find(ctx, query);
      const { offset, limit, fields, after, wantsTotal = true } = query;
      const links = linksOf(ctx, view, query, rows, place);
      const link = formatLinkHeader(links);
      if (link !== undefined) ctx.set('Link', link);
      const items = rows.items.map((row) => toPublicItem(view, row, fields, place));
      const position = after === undefined ? { offset, limit } : { limit };
      const total = wantsTotal ? { total: rows.total } : {};
      represent(ctx, formatter, { items, ...position, ...total, links }, { title });
    };
  const operation = (): Operation => ({
    ...told,
    problems: { ...readProblems, ...told.problems },
    path: pathParameters(path, id),
    query: language.schema(),
    headers: readHeaders(),
    status: 200,
    gives: 'page',
    face: view,
    answers: commonAnswers().extend({
      Link: header(z.string().optional(), 'The links of the page (RFC 8288), unless they are longer than 4 KiB.'),
    }),
  });
  return { method: 'GET', path, answer, operation };
}

function linksOf<Row extends object>(
  ctx: Context,
  view: View<Row>,
  query: ListQuery<Row>,
  { items, total, hasMore }: Rows<Row>,
  place: string,
): PageLinks {
  const { offset, limit, after, wantsTotal = true, sort } = query;
  const at = { limit, path: requestContext(ctx).basePath + ctx.path, search: ctx.search };
  if (after === undefined) return offsetLinks({ ...at, offset, total: wantsTotal ? total : undefined, hasMore });
  const last = hasMore === true ? items.at(-1) : undefined;
  return cursorLinks({ ...at, next: last && cursorOf(view, sort, last, place) });
}

/** A list that ended here without a word would be taken for whole. */
function cursorOf<Row extends object>(view: View<Row>, sort: ListQuery<Row>['sort'], row: Row, place: string): string {
  const cursor = formatCursor(view, sort, row, place);
  if (cursor !== undefined) return cursor;
  const detail = 'has to pass a value that is too long for a URL: sort by another field, or page by offset';
  throw problem('bad-argument', { errors: [{ pointer: '#/query/after', detail }] });
}
