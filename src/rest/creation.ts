/** Making an item: POST to its collection. */
import type { Context, Middleware } from 'koa';
import { z } from 'zod';
import {
  createBodySchema,
  fingerprintOf,
  idempotencyKeyOf,
  publicBase,
  type Representations,
  readJsonBody,
  renderResponse,
  type StoredResponse,
  searchOf,
  sendStoredResponse,
} from '#http';
import { itemArguments, parseItemQuery, toPublicItem, type View } from '#query';
import { bodyProblems, commonAnswers, header, type Operation, pathParameters, type Told } from './operation.ts';
import { type DocumentedRoute, type Eventually, type Guard, tagOf } from './route.ts';

/** What is to be made, and the means to answer it once and for all. */
export interface CreationRequest<Row extends object, Input> {
  readonly input: Input;
  /** Names this request for its user, method and path, so that it is carried out once; at most 255 characters. */
  readonly key: string | undefined;
  /** Of the body as it was sent: another one under the same key is another request. 43 characters. */
  readonly fingerprint: string;
  /** The answer to this request once the row is made: plain data, to be kept where the row is. */
  readonly answerWith: (row: Row) => StoredResponse;
}

export interface Creation {
  /** From `answerWith`, now or when the request came first. */
  readonly answer: StoredResponse;
  /** True: this request made nothing, its answer is that of an earlier one. */
  readonly isReplayed: boolean;
}

export interface CreationDefinition<Row extends object, Input> {
  readonly told: Told;
  /** The collection's, such as `/bookings/`; what is made is below it under its view's key. */
  readonly path: string;
  /** Of the item, as are the view and the version: what a GET of it gives. */
  readonly title: string;
  readonly view: View<Row>;
  readonly version?: (row: Row) => string | number;
  /** Of the body. Unknown fields are refused if it is strict. */
  readonly schema: z.ZodType<Input>;
  /** @default everybody may ask */
  readonly guard?: Guard;
  readonly create: (ctx: Context, order: CreationRequest<Row, Input>) => Eventually<Creation>;
}

/** 201 with `Location`, `ETag` and the item as a GET of it gives it; `Idempotent-Replayed: true` where it was made before. */
export function creation<Row extends object, Input>(definition: CreationDefinition<Row, Input>): DocumentedRoute {
  const { told, path, title, view, version, schema, guard, create } = definition;
  const check = createBodySchema(schema);
  const answer = (representations: Representations): Middleware =>
    async function answerCreation(ctx: Context) {
      guard?.(ctx);
      const formatter = representations.choose(ctx.req.headers.accept);
      const { fields } = parseItemQuery(view, searchOf(ctx.url));
      const key = idempotencyKeyOf(ctx.req.headers);
      const body = await readJsonBody(ctx);
      const input = check(body);
      const base = publicBase(ctx);
      const answerWith = (row: Row) =>
        renderResponse(formatter, toPublicItem(view, row, fields, `${base}/`), {
          title,
          version: version && tagOf(version(row), fields),
          status: 201,
          headers: { Location: `${base}${ctx.path}${encodeURIComponent(String(row[view.key]))}` },
        });
      const made = await create(ctx, { input, key, fingerprint: fingerprintOf(body), answerWith });
      sendStoredResponse(ctx, made.answer, made.isReplayed);
    };
  const operation = (): Operation => ({
    ...told,
    problems: { ...bodyProblems, ...keyProblems, ...told.problems },
    path: pathParameters(path),
    query: itemArguments(view, undefined),
    headers: keyHeaders(),
    body: schema,
    status: 201,
    gives: 'item',
    face: view,
    answers: creationAnswers(),
  });
  return { method: 'POST', path, answer, operation };
}

const keyProblems = Object.freeze({ 'bad-request': {}, 'idempotency-running': {}, 'idempotency-mismatch': {} });

function keyHeaders(): z.ZodObject {
  const description = 'Of your making, up to 255 characters: the same key and body get the same answer for 24 hours.';
  return z.object({ 'Idempotency-Key': z.string().min(1).optional().meta({ param: { description } }) });
}

function creationAnswers(): z.ZodObject {
  return commonAnswers().extend({
    Location: header(z.url(), 'Of what was made.'),
    'Idempotent-Replayed': header(z.literal('true').optional(), 'There if an earlier request made it.'),
  });
}
