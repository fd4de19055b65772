/** Changing an item: PATCH under `If-Match`. */
import type { Context, Middleware } from 'koa';
import { z } from 'zod';
import {
  createBodySchema,
  preconditionFailed,
  preconditionOf,
  problem,
  publicBase,
  type Representations,
  readJsonBody,
  represent,
  searchOf,
} from '#http';
import { itemArguments, parseItemQuery, toPublicItem, type View } from '#query';
import { bodyProblems, commonAnswers, keySchema, type Operation, pathParameters, type Told } from './operation.ts';
import { type DocumentedRoute, type Eventually, type Guard, tagOf } from './route.ts';

export interface Change<Row extends object, Input> {
  readonly input: Input;
  /**
   * Throws `precondition-failed` unless the row is of the version that the client read. To be called with the row as it
   * stands inside the transaction that changes it.
   */
  readonly requireCurrent: (row: Row) => void;
}

export interface ChangeDefinition<Row extends object, Input> {
  readonly told: Told;
  /** The item's, such as `/bookings/:id`. */
  readonly path: string;
  readonly title: string;
  readonly view: View<Row>;
  /** As for the item's GET; a whole number, so that a version cannot be taken for a part of another one's tag. */
  readonly version: (row: Row) => number;
  /** Of the body. Unknown fields are refused if it is strict. */
  readonly schema: z.ZodType<Input>;
  /** @default everybody may ask */
  readonly guard?: Guard;
  /** Before the body is read and the precondition looked at. Undefined: there is no such thing, or it is not the caller's to change. */
  readonly find: (ctx: Context) => Eventually<Row | undefined>;
  /** The row after the change. Undefined: it has gone meanwhile. */
  readonly change: (ctx: Context, change: Change<Row, Input>) => Eventually<Row | undefined>;
}

/** 200 with the changed item and its new `ETag`; 428 without `If-Match`, 412 when it names none of the current tags. */
export function change<Row extends object, Input>(definition: ChangeDefinition<Row, Input>): DocumentedRoute {
  const { told, path, title, view, version, schema, guard, find } = definition;
  const check = createBodySchema(schema);
  const answer = (representations: Representations): Middleware =>
    async function answerChange(ctx: Context) {
      guard?.(ctx);
      const formatter = representations.choose(ctx.req.headers.accept);
      const { fields } = parseItemQuery(view, searchOf(ctx.url));
      if ((await find(ctx)) === undefined) throw problem('not-found');
      const precondition = preconditionOf(ctx);
      const input = check(await readJsonBody(ctx));
      const requireCurrent = (row: Row) => {
        if (precondition !== '*' && !precondition.some((tag) => isTagOf(tag, version(row)))) throw preconditionFailed();
      };
      const row = await definition.change(ctx, { input, requireCurrent });
      if (row === undefined) throw problem('not-found');
      const shown = toPublicItem(view, row, fields, `${publicBase(ctx)}/`);
      represent(ctx, formatter, shown, { title, version: tagOf(version(row), fields) });
    };
  const operation = (): Operation => ({
    ...told,
    problems: { ...bodyProblems, ...changeProblems, ...told.problems },
    path: pathParameters(path, keySchema(view)),
    query: itemArguments(view, undefined),
    headers: changeHeaders(),
    body: schema,
    status: 200,
    gives: 'item',
    face: view,
    answers: commonAnswers(),
  });
  return { method: 'PATCH', path, answer, operation };
}

const changeProblems = Object.freeze({ 'not-found': {}, 'precondition-failed': {}, 'precondition-required': {} });

function changeHeaders(): z.ZodObject {
  const param = { description: 'The `ETag` that a GET gave you, or `*`.' };
  return z.object({ 'If-Match': z.string().meta({ param, examples: ['*'] }) });
}

/**
 * Each representation and each selection of fields has a tag of its own, and all of them say which version they are of.
 * A client that has read any of them knows the row that it wants to change, in whatever form it wants the answer.
 */
function isTagOf(opaque: string, version: number): boolean {
  return opaque.startsWith(`${version}-`);
}
