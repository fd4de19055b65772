/** POST creates an item, once for an idempotency key; PATCH changes it under `If-Match`. */
import type { Context, Middleware } from 'koa';
import { z } from 'zod';
import {
  createBodySchema,
  fingerprintOf,
  idempotencyKeyOf,
  preconditionFailed,
  preconditionOf,
  problem,
  publicBase,
  type Representations,
  readJsonBody,
  renderResponse,
  represent,
  type StoredResponse,
  searchOf,
  sendStoredResponse,
} from '#http';
import { itemArguments, parseItemQuery, toPublicItem, type View } from '#query';
import {
  type Awaitable,
  bodyProblems,
  commonHeaders,
  type Guard,
  header,
  keySchema,
  type Operation,
  type OperationDocs,
  pathParameters,
  type Route,
  tagOf,
} from './operation.ts';

export interface CreateRequest<Row extends object, Input> {
  readonly input: Input;
  /** What recognises this request when it comes again, so that it is carried out once; undefined if the client sent no key. */
  readonly identity: RequestIdentity | undefined;
  /** The response to this request for the created row: plain data, to be stored with the row. */
  readonly responseFor: (row: Row) => StoredResponse;
}

export interface RequestIdentity {
  /** Unique for a user, method and path; at most 255 characters. */
  readonly key: string;
  /** Of the body as it was sent: another body under the same key is another request. 43 characters. */
  readonly fingerprint: string;
}

export interface CreateResult {
  /** From `responseFor`, now or when the request came first. */
  readonly response: StoredResponse;
  /** True: this request created nothing; an earlier one with the same key did. */
  readonly isReplayed: boolean;
}

interface WriteDefinition<Row extends object, Input> {
  readonly docs: OperationDocs;
  /** Of the item, as is the view: the same that a GET of it has. */
  readonly title: string;
  readonly view: View<Row>;
  /** Of the body. Refuses unknown fields if it is strict. */
  readonly schema: z.ZodType<Input>;
  /** @default every caller may write */
  readonly guard?: Guard;
}

export interface CreateDefinition<Row extends object, Input> extends WriteDefinition<Row, Input> {
  /** The collection's, such as `/bookings/`; the item is below it under its view's key. */
  readonly path: string;
  /** As for the item's GET. */
  readonly version?: (row: Row) => string | number;
  readonly create: (ctx: Context, request: CreateRequest<Row, Input>) => Awaitable<CreateResult>;
}

/** 201 with `Location`, `ETag` and the item as a GET returns it; `Idempotent-Replayed: true` if an earlier request created it. */
export function createItem<Row extends object, Input>(definition: CreateDefinition<Row, Input>): Route {
  const { docs, path, title, view, version, schema, guard, create } = definition;
  const check = createBodySchema(schema);
  const createHandler = (representations: Representations): Middleware =>
    async function answerCreate(ctx: Context) {
      guard?.(ctx);
      const formatter = representations.choose(ctx.req.headers.accept);
      const { fields } = parseItemQuery(view, searchOf(ctx.url));
      const key = idempotencyKeyOf(ctx.req.headers);
      const body = await readJsonBody(ctx);
      const input = check(body);
      const base = publicBase(ctx);
      const responseFor = (row: Row) =>
        renderResponse(formatter, toPublicItem(view, row, fields, `${base}/`), {
          title,
          version: version && tagOf(version(row), fields),
          status: 201,
          headers: { Location: `${base}${ctx.path}${encodeURIComponent(String(row[view.key]))}` },
        });
      const identity = key === undefined ? undefined : { key, fingerprint: fingerprintOf(body) };
      const created = await create(ctx, { input, identity, responseFor });
      sendStoredResponse(ctx, created.response, created.isReplayed);
    };
  const operation = (): Operation => ({
    ...docs,
    problems: { ...bodyProblems, ...keyProblems, ...docs.problems },
    path: pathParameters(path),
    query: itemArguments(view, undefined),
    headers: keyHeaders(),
    body: schema,
    status: 201,
    returns: 'item',
    shape: view,
    responseHeaders: createHeaders(),
  });
  return { method: 'POST', path, createHandler, operation };
}

const keyProblems = Object.freeze({ 'bad-request': {}, 'idempotency-running': {}, 'idempotency-mismatch': {} });

/** What `idempotencyKeyOf` reads: a bare word, or a quoted string. */
const keyPattern = String.raw`^(?:[!#-~]+|"(?:[ !#-\[\]-~]|\\["\\])+")$`;

function keyHeaders(): z.ZodObject {
  const description = 'Chosen by you, up to 255 characters: the same key and body get the same response for 24 hours.';
  const key = z.string().min(1).max(255).optional().meta({ pattern: keyPattern, param: { description } });
  return z.object({ 'Idempotency-Key': key });
}

function createHeaders(): z.ZodObject {
  return commonHeaders().extend({
    Location: header(z.url(), 'Of the created item.'),
    'Idempotent-Replayed': header(z.literal('true').optional(), 'Present if an earlier request created it.'),
  });
}

export interface Update<Row extends object, Input> {
  readonly input: Input;
  /**
   * Throws `precondition-failed` unless the row has the version that the client read. Call it with the row as read inside
   * the transaction that changes it.
   */
  readonly requireCurrent: (row: Row) => void;
}

export interface UpdateDefinition<Row extends object, Input> extends WriteDefinition<Row, Input> {
  /** The item's, such as `/bookings/:id`. */
  readonly path: string;
  /** As for the item's GET; a whole number, so that no version is the beginning of another one's tag. */
  readonly version: (row: Row) => number;
  /** Called before the body and the precondition are read. Undefined: there is no such item, or the caller may not change it. */
  readonly find: (ctx: Context) => Awaitable<Row | undefined>;
  /** The row after the change. Undefined: it was deleted in the meantime. */
  readonly update: (ctx: Context, update: Update<Row, Input>) => Awaitable<Row | undefined>;
}

/** 200 with the changed item and its new `ETag`; 428 without `If-Match`, 412 when it lists no current tag. */
export function updateItem<Row extends object, Input>(definition: UpdateDefinition<Row, Input>): Route {
  const { docs, path, title, view, version, schema, guard, find, update } = definition;
  const check = createBodySchema(schema);
  const createHandler = (representations: Representations): Middleware =>
    async function answerUpdate(ctx: Context) {
      guard?.(ctx);
      const formatter = representations.choose(ctx.req.headers.accept);
      const { fields } = parseItemQuery(view, searchOf(ctx.url));
      if ((await find(ctx)) === undefined) throw problem('not-found');
      const precondition = preconditionOf(ctx);
      const input = check(await readJsonBody(ctx));
      const requireCurrent = (row: Row) => {
        if (precondition !== '*' && !precondition.some((tag) => isTagOf(tag, version(row))))
          throw preconditionFailed(ctx);
      };
      const row = await update(ctx, { input, requireCurrent });
      if (row === undefined) throw problem('not-found');
      const shown = toPublicItem(view, row, fields, `${publicBase(ctx)}/`);
      represent(ctx, formatter, shown, { title, version: tagOf(version(row), fields) });
    };
  const operation = (): Operation => ({
    ...docs,
    problems: { ...bodyProblems, ...updateProblems, ...docs.problems },
    path: pathParameters(path, keySchema(view)),
    query: itemArguments(view, undefined),
    headers: updateHeaders(),
    body: schema,
    status: 200,
    returns: 'item',
    shape: view,
    responseHeaders: commonHeaders(),
  });
  return { method: 'PATCH', path, createHandler, operation };
}

const updateProblems = Object.freeze({ 'not-found': {}, 'precondition-failed': {}, 'precondition-required': {} });

function updateHeaders(): z.ZodObject {
  const param = { description: 'The `ETag` that a GET returned, or `*`.' };
  return z.object({ 'If-Match': z.string().meta({ param, examples: ['*'] }) });
}

/**
 * Each representation and each selection of fields has its own tag, and all of them begin with the version. A client that
 * has read any of them knows the row that it changes.
 */
function isTagOf(opaque: string, version: number): boolean {
  return opaque.startsWith(`${version}-`);
}
