/** Routes as data: method, path, handler, and the OpenAPI operation. */
import type { Context, Middleware } from 'koa';
import { z } from 'zod';
import { type Formatter, isPage, type PageRoute, type Representations } from '#http';
import type { ItemShape } from '#query';
import type { RunOnce } from './idempotency-store.ts';

/**
 * A route of an app. `collection`, `item`, `createItem` and the like create documented ones. One of your own may be
 * `{ method: 'DELETE', path: '/orders/:id', createHandler: () => handler }`, whose handler may throw problems.
 */
export interface Route {
  /** A GET route handles HEAD as well. */
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** May contain parameters: `/orders/:id`. */
  readonly path: string;
  /** The heading of its HTML page, for links to it. @default other pages do not link to it */
  readonly title?: string;
  /** Called once, when the app is created. */
  readonly createHandler: (app: AppParts) => Middleware;
  /** Called when the OpenAPI document is first requested. @default the route is not documented */
  readonly operation?: () => Operation;
}

/** What all routes of an app share, and the pages around the route. */
export interface AppParts {
  readonly representations: Representations;
  readonly runOnce: RunOnce;
  readonly page: PageRoute;
}

/** The heading of an HTML page: text, or a function of the row, such as `({ name }) => name`. */
export type ItemTitle<Row extends object> = string | ((row: Row) => string);

/** Skips computing titles that are not shown. */
export function titleOf<Row extends object>(title: ItemTitle<Row>, row: Row, formatter: Formatter): string {
  if (typeof title === 'string') return title;
  return isPage(formatter) ? title(row) : '';
}

export type Awaitable<T> = T | Promise<T>;

/** Throws a problem if the caller may not use the route. Called before the request is read. */
export type Guard = (ctx: Context) => void;

/** The documentation of a route. Texts are in CommonMark. */
export interface OperationDocs {
  /** In camelCase, such as `listOrders`. Generated clients use it as a name, so it must not change. */
  readonly operationId: string;
  /** A few words. */
  readonly summary: string;
  readonly description?: string;
  /** Whether clients should stop using it; `description` says what to use instead. @default false */
  readonly deprecated?: boolean;
  /** Problems in addition to those that all routes of the same kind have. @default none */
  readonly problems?: Problems;
}

/** Problems by slug, each with the members that its body has in addition to the common ones. */
export type Problems = Readonly<Record<string, z.ZodRawShape>>;

/** An OpenAPI operation as plain data, with the schemas that also validate requests. */
export interface Operation extends OperationDocs {
  readonly problems: Problems;
  /** Path parameters. */
  readonly path: z.ZodObject;
  readonly query: z.ZodObject;
  readonly headers: z.ZodObject;
  readonly body?: z.ZodType;
  readonly status: 200 | 201;
  /** The body of a successful response: one item, or a page of items. */
  readonly returns: 'item' | 'page';
  readonly shape: ItemShape;
  /** Headers of a successful response. */
  readonly responseHeaders: z.ZodObject;
}

/** Returns the schema of the parameters in a path such as `/orders/:id`. */
export function pathParameters(path: string, id: z.ZodType = z.string()): z.ZodObject {
  return z.object(Object.fromEntries(Array.from(path.matchAll(/:(\w+)/g), ([, name = '']) => [name, id])));
}

interface KeyField {
  readonly name: string;
  readonly schema: z.ZodType;
}

/** Returns the schema of a view's key, as it occurs in the paths of items. */
export function keySchema({ key, list }: { readonly key: string; readonly list: readonly KeyField[] }): z.ZodType {
  return list.find(({ name }) => name === key)?.schema ?? z.string();
}

/** Returns the request headers of every GET. */
export function readHeaders(): z.ZodObject {
  const tag = (description: string) => z.string().optional().meta({ param: { description } });
  return z.object({
    'If-Match': tag('The only `ETag` that you accept. If the current one differs, the response is 412.'),
    'If-None-Match': tag('The `ETag` of a response that you have. If it is still current, the response is 304.'),
  });
}

/** Returns the response headers of every item and page. */
export function commonHeaders(): z.ZodObject {
  const description = 'The entity tag of this representation.';
  return z.object({ ETag: header(z.string().meta({ examples: ['"3-7lVe9mJ1qlp4MDof-f-_xN"'] }), description) });
}

/** Describes a response header. In OpenAPI the description belongs to the header, not to its schema. */
export function header(schema: z.ZodType, description: string): z.ZodType {
  return schema.meta({ header: { description } });
}

const queryProblems: Problems = Object.freeze({ 'bad-argument': {}, 'not-acceptable': {} });

export const readProblems: Problems = Object.freeze({ ...queryProblems, 'precondition-failed': {} });

export const bodyProblems: Problems = Object.freeze({
  ...queryProblems,
  'bad-body': {},
  'body-too-large': {},
  'unsupported-media-type': {},
});
