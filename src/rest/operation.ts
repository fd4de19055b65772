/** A route as data: method, path, handler, and what the API's description says of it. */
import type { Context, Middleware } from 'koa';
import { z } from 'zod';
import type { ProblemSlug, Representations } from '#http';
import type { ItemShape } from '#query';

export interface Route {
  /** A route for GET answers HEAD as well. */
  readonly method: 'GET' | 'POST' | 'PATCH';
  /** Segments, of which some are parameters: `/bookings/:id`. */
  readonly path: string;
  /** Called once, when the app is made. */
  readonly createHandler: (representations: Representations) => Middleware;
  /** Called when the description is first requested. @default the route is not described */
  readonly operation?: () => Operation;
}

export type Awaitable<T> = T | Promise<T>;

/** Throws the problem of a caller who has no access, before anything is read or looked up. */
export type Guard = (ctx: Context) => void;

/** What the description needs beside the rest of a definition. Texts are in CommonMark. */
export interface OperationDocs {
  /** In camelCase, such as `listHotels`. Generated clients use it as a name, so it must not change. */
  readonly operationId: string;
  /** A few words. */
  readonly summary: string;
  readonly description?: string;
  /** Of this route, beside those that all routes of its kind have. @default none */
  readonly problems?: Problems;
}

/** By slug, with the members that its body has beside those of every error body. */
export type Problems = { readonly [Slug in ProblemSlug]?: z.ZodRawShape };

/** An operation of the API as plain data, from the schemas that validate it. */
export interface Operation extends OperationDocs {
  readonly problems: Problems;
  /** Parameters in the path. */
  readonly path: z.ZodObject;
  readonly query: z.ZodObject;
  readonly headers: z.ZodObject;
  readonly body?: z.ZodType;
  readonly status: 200 | 201;
  /** The body of a success: one item, or a page of them. */
  readonly returns: 'item' | 'page';
  readonly shape: ItemShape;
  /** Of a success. */
  readonly responseHeaders: z.ZodObject;
}

/** The version part of an entity tag; a partial item has another tag than the whole one. */
export function tagOf(version: string | number, fields: readonly string[] | undefined): string {
  return fields === undefined ? String(version) : `${version}-${fields.join('.')}`;
}

/** `/bookings/:id` with the schema of `id`, which comes as text. */
export function pathParameters(path: string, id: z.ZodType = z.string()): z.ZodObject {
  return z.object(Object.fromEntries(Array.from(path.matchAll(/:(\w+)/g), ([, name = '']) => [name, id])));
}

interface KeyField {
  readonly name: string;
  readonly column: string;
  readonly schema: z.ZodType;
}

/** The schema of the key of a view's items, as it is in their paths. */
export function keySchema({ key, list }: { readonly key: string; readonly list: readonly KeyField[] }): z.ZodType {
  const fields = list.filter(({ column }) => column === key);
  return (fields.find(({ name }) => name === key) ?? fields[0])?.schema ?? z.string();
}

/** Request headers of every GET. */
export function readHeaders(): z.ZodObject {
  const description = 'An `ETag` that you have: if it is still current, the response is 304.';
  return z.object({ 'If-None-Match': z.string().optional().meta({ param: { description } }) });
}

/** Response headers of every item and every page. */
export function commonHeaders(): z.ZodObject {
  return z.object({ ETag: header(z.string().meta({ examples: ['"3-json"'] }), 'Of this representation.') });
}

/** In OpenAPI the description belongs to the response header, not to its schema. */
export function header(schema: z.ZodType, description: string): z.ZodType {
  return schema.meta({ header: { description } });
}

export const readProblems: Problems = Object.freeze({ 'bad-argument': {}, 'not-acceptable': {} });

export const bodyProblems: Problems = Object.freeze({
  ...readProblems,
  'bad-body': {},
  'body-too-large': {},
  'unsupported-media-type': {},
});
