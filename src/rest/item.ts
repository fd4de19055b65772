/** Single things under their ids, and the index that names the collections. */
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
  commonAnswers,
  keySchema,
  type Operation,
  pathParameters,
  readHeaders,
  readProblems,
  type Told,
} from './operation.ts';
import { type DocumentedRoute, type Eventually, tagOf } from './route.ts';

export interface ItemDefinition<Row extends object, Own = unknown> {
  readonly told: Told;
  /** Has no slash at the end, such as `/bookings/:id`. */
  readonly path: string;
  readonly title: string;
  readonly view: View<Row>;
  /** Changes whenever the row does; makes the entity tag. @default a digest of the representation */
  readonly version?: (row: Row) => string | number;
  /** Arguments beside `fields`. @default none */
  readonly own?: ExtraSchema<Own>;
  /** `own` is what the client asked, if the item has arguments. Undefined: there is no such thing, or it is not the caller's to see. */
  readonly find: (ctx: Context, own: Own | undefined) => Eventually<Row | undefined>;
}

/** One thing under its id. */
export function item<Row extends object, Own = unknown>(definition: ItemDefinition<Row, Own>): DocumentedRoute {
  const { told, path, title, view, version, own, find } = definition;
  const reader = own && createExtraArguments(own);
  const answer = (representations: Representations): Middleware =>
    async function answerItem(ctx: Context) {
      const formatter = representations.choose(ctx.req.headers.accept);
      const query = parseItemQuery(view, searchOf(ctx.req.url ?? '/'), reader);
      const found = find(ctx, query.extra);
      const row = found instanceof Promise ? await found : found;
      if (row === undefined) throw problem('not-found');
      // Most views write no URL, and then nobody asks where we are.
      const shown = toPublicItem(view, row, query.fields, view.usesBaseUrl ? `${publicBase(ctx)}/` : '');
      represent(ctx, formatter, shown, { title, version: version && tagOf(version(row), query.fields) });
    };
  const operation = (): Operation => ({
    ...told,
    problems: { ...readProblems, ...(path.includes(':') && { 'not-found': {} }), ...told.problems },
    path: pathParameters(path, keySchema(view)),
    query: itemArguments(view, own),
    headers: readHeaders(),
    status: 200,
    gives: 'item',
    face: view,
    answers: commonAnswers(),
  });
  return { method: 'GET', path, answer, operation };
}

export interface IndexDefinition {
  readonly told: Told;
  readonly path: string;
  readonly title: string;
  /** Paths below the app's root, such as `messages/`, by name (`snake_case`). */
  readonly entries: Readonly<Record<string, string>>;
}

/** The way in: names of collections, with their absolute URLs. An item like any other, whose fields are the names. */
export function index({ told, path, title, entries }: IndexDefinition): DocumentedRoute {
  const names = Object.keys(entries);
  const urlAt = (name: string): Field<IndexDefinition['entries']> => ({
    column: name,
    schema: z.url(),
    toPublic: (below, place) => `${place}${below}`,
  });
  const view = createView<IndexDefinition['entries']>({
    key: names[0] ?? '',
    name: 'Index',
    fields: Object.fromEntries(names.map((name) => [name, urlAt(name)])),
  });
  return item({ told, path, title, view, find: () => entries });
}
