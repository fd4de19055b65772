/** Making an item: POST to its collection. */
import type { Context, Middleware } from 'koa';
import type { z } from 'zod';
import {
  createBodySchema,
  fingerprintOf,
  idempotencyKeyOf,
  prepareAnswer,
  publicBase,
  type Representations,
  readJsonBody,
  type StoredAnswer,
  searchOf,
  sendAnswer,
} from '#http';
import { parseItemQuery, present, type View } from '#query';
import { type Eventually, type Guard, type ResourceRoute, tagOf } from './route.ts';

/** What is to be made, and the means to answer it once and for all. */
export interface CreationRequest<Row extends object, Input> {
  readonly input: Input;
  /** Names this request for its user, method and path, so that it is carried out once; at most 255 characters. */
  readonly key: string | undefined;
  /** Of the body as it was sent: another one under the same key is another request. 43 characters. */
  readonly fingerprint: string;
  /** The answer to this request once the row is made: plain data, to be kept where the row is. */
  readonly answerWith: (row: Row) => StoredAnswer;
}

export interface Creation {
  /** From `answerWith`, now or when the request came first. */
  readonly answer: StoredAnswer;
  /** True: this request made nothing, its answer is that of an earlier one. */
  readonly isReplayed: boolean;
}

export interface CreationDefinition<Row extends object, Input> {
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
export function creation<Row extends object, Input>(definition: CreationDefinition<Row, Input>): ResourceRoute {
  const { path, title, view, version, schema, guard, create } = definition;
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
        prepareAnswer(formatter, present(view, row, fields, `${base}/`), {
          title,
          version: version && tagOf(version(row), fields),
          status: 201,
          headers: { Location: `${base}${ctx.path}${encodeURIComponent(String(row[view.key]))}` },
        });
      const made = await create(ctx, { input, key, fingerprint: fingerprintOf(body), answerWith });
      sendAnswer(ctx, made.answer, made.isReplayed);
    };
  return { method: 'POST', path, answer };
}
