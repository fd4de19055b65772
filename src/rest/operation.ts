/** What a route says of itself when it is asked: an operation of the API as plain data, from the schemas that hold it. */
import { z } from 'zod';
import type { ProblemSlug } from '#http';
import type { ItemShape } from '#query';

/** What does not follow from the rest of a definition. Texts for people are in CommonMark. */
export interface Told {
  /** In camelCase, such as `listHotels`: generated clients are named after it, so it stays. */
  readonly operationId: string;
  /** A few words. */
  readonly summary: string;
  readonly description?: string;
  /** Those of this route alone; what comes with its kind is known. @default none */
  readonly problems?: Problems;
}

/** By slug, with the members that its body has beside those of every error body. */
export type Problems = { readonly [Slug in ProblemSlug]?: z.ZodRawShape };

export interface Operation extends Told {
  readonly problems: Problems;
  /** Parameters. */
  readonly path: z.ZodObject;
  readonly query: z.ZodObject;
  readonly headers: z.ZodObject;
  readonly body?: z.ZodType;
  readonly status: 200 | 201;
  /** What a success gives: one item, or a page of them. */
  readonly gives: 'item' | 'page';
  readonly face: ItemShape;
  /** Response headers of a success. */
  readonly answers: z.ZodObject;
}

/** `/bookings/:id` with the schema of `id`, which comes as text. */
export function pathParameters(path: string, id: z.ZodType = z.string()): z.ZodObject {
  return z.object(Object.fromEntries(Array.from(path.matchAll(/:(\w+)/g), ([, name = '']) => [name, id])));
}

/** The schema of the key of a view's items, as it stands in their paths. */
export function keySchema({ key, list }: { readonly key: string; readonly list: readonly KeyField[] }): z.ZodType {
  const fields = list.filter(({ column }) => column === key);
  return (fields.find(({ name }) => name === key) ?? fields[0])?.schema ?? z.string();
}

interface KeyField {
  readonly name: string;
  readonly column: string;
  readonly schema: z.ZodType;
}

/** Who reads may say what he has. */
export function readHeaders(): z.ZodObject {
  const description = 'An `ETag` that you have: if it still holds, the answer is 304.';
  return z.object({ 'If-None-Match': z.string().optional().meta({ param: { description } }) });
}

/** Response headers that every item and every page has. */
export function commonAnswers(): z.ZodObject {
  return z.object({ ETag: header(z.string().meta({ examples: ['"3-json"'] }), 'Of this representation.') });
}

/** What is said of a response header is not said of its schema. */
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
