/** What a service offers, declared: collections, items and indexes, each with the function that finds its data. */
import type { Context, Middleware } from 'koa';
import { z } from 'zod';
import { exchangeOf, problem, publicBase, type Representations, represent, searchOf } from '#http';
import {
  createView,
  type Field,
  formatLinkHeader,
  type ListLanguage,
  type ListQuery,
  pageLinks,
  parseItemQuery,
  present,
  type View,
} from '#query';

/** A path in the router's syntax, and how a GET of it is answered. */
export interface ResourceRoute {
  readonly path: string;
  readonly answer: (representations: Representations) => Middleware;
}

/** One page of rows, and how many rows there are on all pages. */
export interface Rows<Row> {
  readonly items: readonly Row[];
  readonly total: number;
}

type Eventually<T> = T | Promise<T>;

export interface CollectionDefinition<Row extends object> {
  /** Ends with a slash, such as `/bookings/`. */
  readonly path: string;
  /** For people, such as `Hotel bookings`. */
  readonly title: string;
  readonly view: View<Row>;
  readonly language: ListLanguage<Row>;
  /** Throws the problem of a collection that is not there. */
  readonly find: (ctx: Context, query: ListQuery<Row>) => Eventually<Rows<Row>>;
}

/** A list that clients page through: `{ items, offset, limit, total, links }`, and the same links in a `Link` header. */
export function collection<Row extends object>(definition: CollectionDefinition<Row>): ResourceRoute {
  const { path, title, view, language, find } = definition;
  const answer = (representations: Representations): Middleware =>
    async function answerCollection(ctx: Context) {
      const formatter = representations.choose(ctx.req.headers.accept);
      const place = `${publicBase(ctx)}/`;
      const query = language(ctx.search, place);
      const { items, total } = await find(ctx, query);
      const { offset, limit, fields } = query;
      const links = pageLinks({ offset, limit, total, path: exchangeOf(ctx).basePath + ctx.path, search: ctx.search });
      ctx.set('Link', formatLinkHeader(links));
      const shown = items.map((row) => present(view, row, fields, place));
      represent(ctx, formatter, { items: shown, offset, limit, total, links }, { title });
    };
  return { path, answer };
}

export interface ItemDefinition<Row extends object> {
  /** Has no slash at the end, such as `/bookings/:id`. */
  readonly path: string;
  readonly title: string;
  readonly view: View<Row>;
  /** Changes whenever the row does; makes the entity tag. @default a digest of the representation */
  readonly version?: (row: Row) => string | number;
  /** Undefined: there is no such thing, or it is not the caller's to see. */
  readonly find: (ctx: Context) => Eventually<Row | undefined>;
}

/** One thing under its id. */
export function item<Row extends object>({ path, title, view, version, find }: ItemDefinition<Row>): ResourceRoute {
  // Most views write no URL, and then nobody asks where we are.
  const isPlaced = view.list.some(({ toPublic }) => toPublic !== undefined);
  const answer = (representations: Representations): Middleware =>
    async function answerItem(ctx: Context) {
      const formatter = representations.choose(ctx.req.headers.accept);
      const { fields } = parseItemQuery(view, searchOf(ctx.url));
      const found = find(ctx);
      const row = found instanceof Promise ? await found : found;
      if (row === undefined) throw problem('not-found');
      const shown = present(view, row, fields, isPlaced ? `${publicBase(ctx)}/` : '');
      represent(ctx, formatter, shown, { title, version: version && tagOf(version(row), fields) });
    };
  return { path, answer };
}

export interface IndexDefinition {
  readonly path: string;
  readonly title: string;
  /** Paths below the app's root, such as `messages/`, by name (`snake_case`). */
  readonly entries: Readonly<Record<string, string>>;
}

/** The way in: names of collections, with their absolute URLs. An item like any other, whose fields are the names. */
export function index({ path, title, entries }: IndexDefinition): ResourceRoute {
  const names = Object.keys(entries);
  const urlAt = (name: string): Field<IndexDefinition['entries']> => ({
    column: name,
    schema: z.url(),
    toPublic: (below, place) => `${place}${below}`,
  });
  const view = createView<IndexDefinition['entries']>({
    key: names[0] ?? '',
    fields: Object.fromEntries(names.map((name) => [name, urlAt(name)])),
  });
  return item({ path, title, view, find: () => entries });
}

/** A partial representation has a tag of its own. */
function tagOf(version: string | number, fields: readonly string[] | undefined): string {
  return fields === undefined ? String(version) : `${version}-${fields.join('.')}`;
}
