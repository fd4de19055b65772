/** The routes that write, once per idempotency key: POST creates an item, and PATCH changes it under `If-Match`. */
import type { Context, Middleware } from 'koa';
import { z } from 'zod';
import {
  createBodySchema,
  preconditionFailed,
  preconditionOf,
  problem,
  publicBase,
  readJsonBody,
  renderResponse,
  type StoredResponse,
  searchOf,
  sendStoredResponse,
} from '#http';
import { itemArguments, parseItemQuery, toPublicItem, type View } from '#query';
import { fingerprintOf, idempotencyKeyOf } from './idempotency-key.ts';
import type { RequestIdentity, WriteResult } from './idempotency-store.ts';
import {
  type AppParts,
  type Awaitable,
  bodyProblems,
  commonHeaders,
  type Guard,
  header,
  type ItemTitle,
  keySchema,
  type Operation,
  type OperationDocs,
  pathParameters,
  type Route,
  titleOf,
} from './operation.ts';

export interface WriteRequest<Row extends object, Input> {
  readonly input: Input;
  /**
   * Identifies repetitions of this request. Undefined if the client sent no key. With `responseFor`, a database can store
   * the response in the transaction that writes the row; otherwise use `once`.
   */
  readonly identity: RequestIdentity | undefined;
  /** Builds the response for the written row, as plain data that can be stored with the row. */
  readonly responseFor: (row: Row) => StoredResponse;
}

export interface CreateRequest<Row extends object, Input> extends WriteRequest<Row, Input> {
  /** Runs `work`, which writes the row and returns it, unless an earlier request with the same key did. */
  readonly once: (work: () => Awaitable<Row>) => Promise<WriteResult>;
}

interface WriteDefinition<Row extends object, Input> {
  readonly docs: OperationDocs;
  /** Title of the item. Must be the same as in the item's GET route. */
  readonly title: ItemTitle<Row>;
  /** View of the item. Must be the same as in the item's GET route. */
  readonly view: View<Row>;
  /** Schema of the request body. A strict one rejects unknown fields. */
  readonly schema: z.ZodType<Input>;
  /** @default every caller may write */
  readonly guard?: Guard;
}

export interface CreateDefinition<Row extends object, Input> extends WriteDefinition<Row, Input> {
  /** The path of the collection, such as `/orders/`. Items are at this path followed by their view's key. */
  readonly path: string;
  /** Must be the same as in the item's GET route. */
  readonly version?: (row: Row) => number;
  readonly create: (ctx: Context, request: CreateRequest<Row, Input>) => Awaitable<WriteResult>;
}

/**
 * Creates a POST route. It responds 201 with `Location`, `ETag` and the item as a GET returns it, and with
 * `Idempotent-Replayed: true` if an earlier request created the item.
 */
export function createItem<Row extends object, Input>(definition: CreateDefinition<Row, Input>): Route {
  const { docs, path, title, view, version, schema, guard, create } = definition;
  const check = createBodySchema(schema);
  const createHandler = ({ representations, runOnce }: AppParts): Middleware =>
    async function handleCreate(ctx: Context) {
      guard?.(ctx);
      const { fields } = parseItemQuery(view, searchOf(ctx.url));
      const key = idempotencyKeyOf(ctx.req.headers);
      const body = await readJsonBody(ctx);
      const input = check(body);
      const formatter = representations.choose(ctx.req.headers.accept);
      const base = publicBase(ctx);
      const responseFor = (row: Row) =>
        renderResponse(formatter, toPublicItem(view, row, fields, `${base}/`), {
          title: titleOf(title, row, formatter),
          version: version?.(row),
          status: 201,
          headers: { Location: `${base}${ctx.path}${encodeURIComponent(String(row[view.key]))}` },
        });
      const identity = identityOf(key, body);
      const once = (work: () => Awaitable<Row>) => runOnce(ctx, identity, async () => responseFor(await work()));
      const created = await create(ctx, { input, identity, responseFor, once });
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

function identityOf(key: string | undefined, body: unknown): RequestIdentity | undefined {
  return key === undefined ? undefined : { key, fingerprint: fingerprintOf(body) };
}

const keyProblems = Object.freeze({ 'bad-request': {}, 'idempotency-running': {}, 'idempotency-mismatch': {} });

/** Matches the keys that `idempotencyKeyOf` accepts: a bare word or a quoted string. */
const keyPattern = String.raw`^(?:[!#-~]+|"(?:[ !#-\[\]-~]|\\["\\])+")$`;

function keyHeaders(): z.ZodObject {
  const description =
    'A key of your choice, up to 255 characters. For 24 hours, the same key and body get the same response.';
  const key = z.string().min(1).max(255).optional().meta({ pattern: keyPattern, param: { description } });
  return z.object({ 'Idempotency-Key': key });
}

function createHeaders(): z.ZodObject {
  return writeHeaders().extend({ Location: header(z.url(), 'The URL of the created item.') });
}

function writeHeaders(): z.ZodObject {
  const description = 'Present if this is the response to an earlier request with the same key.';
  return commonHeaders().extend({ 'Idempotent-Replayed': header(z.literal('true').optional(), description) });
}

export interface UpdateRequest<Row extends object, Input> extends WriteRequest<Row, Input> {
  /**
   * Throws `precondition-failed` unless the row has the version that the client read. Call it inside the transaction
   * that changes the row, with the row as read there.
   */
  readonly requireCurrent: (row: Row) => void;
  /**
   * Runs `work`, which changes the row and returns it, unless an earlier request with the same key did. `work` returns
   * undefined if the row was deleted in the meantime.
   */
  readonly once: (work: () => Awaitable<Row | undefined>) => Promise<WriteResult | undefined>;
}

export interface UpdateDefinition<Row extends object, Input> extends WriteDefinition<Row, Input> {
  /** The path of the item, such as `/orders/:id`. */
  readonly path: string;
  /** Must be the same as in the item's GET route. The entity tag begins with it, up to the first dash. */
  readonly version: (row: Row) => number;
  /**
   * Finds the item before the body and the precondition are read. Returns undefined if there is no such item or the
   * caller may not change it.
   */
  readonly find: (ctx: Context) => Awaitable<Row | undefined>;
  /** Changes the row. Returns undefined if it was deleted in the meantime. */
  readonly update: (ctx: Context, request: UpdateRequest<Row, Input>) => Awaitable<WriteResult | undefined>;
}

/**
 * Creates a PATCH route. It responds 200 with the changed item and its new `ETag`, 428 without `If-Match`, and 412 if
 * `If-Match` does not contain a current tag. A repetition with the same key gets the same response, even if the item has
 * changed since: its `If-Match` is out of date because the first request succeeded.
 */
export function updateItem<Row extends object, Input>(definition: UpdateDefinition<Row, Input>): Route {
  const { docs, path, title, view, version, schema, guard, find, update } = definition;
  const check = createBodySchema(schema);
  const createHandler = ({ representations, runOnce }: AppParts): Middleware =>
    async function handleUpdate(ctx: Context) {
      guard?.(ctx);
      const { fields } = parseItemQuery(view, searchOf(ctx.url));
      if ((await find(ctx)) === undefined) throw problem('not-found');
      const precondition = preconditionOf(ctx);
      const key = idempotencyKeyOf(ctx.req.headers);
      const body = await readJsonBody(ctx);
      const input = check(body);
      const formatter = representations.choose(ctx.req.headers.accept);
      const requireCurrent = (row: Row) => {
        if (precondition !== '*' && !precondition.some((tag) => isTagOf(tag, version(row))))
          throw preconditionFailed(ctx);
      };
      const base = publicBase(ctx);
      const responseFor = (row: Row) =>
        renderResponse(formatter, toPublicItem(view, row, fields, `${base}/`), {
          title: titleOf(title, row, formatter),
          version: version(row),
          status: 200,
          headers: {},
        });
      const identity = identityOf(key, body);
      const once = async (work: () => Awaitable<Row | undefined>) => {
        const { response, isReplayed } = await runOnce(ctx, identity, async () => {
          const row = await work();
          return row && responseFor(row);
        });
        return response && { response, isReplayed };
      };
      const updated = await update(ctx, { input, identity, responseFor, requireCurrent, once });
      if (updated === undefined) throw problem('not-found');
      sendStoredResponse(ctx, updated.response, updated.isReplayed);
    };
  const operation = (): Operation => ({
    ...docs,
    problems: { ...bodyProblems, ...keyProblems, ...updateProblems, ...docs.problems },
    path: pathParameters(path, keySchema(view)),
    query: itemArguments(view, undefined),
    headers: keyHeaders().extend(updateHeaders().shape),
    body: schema,
    status: 200,
    returns: 'item',
    shape: view,
    responseHeaders: writeHeaders(),
  });
  return { method: 'PATCH', path, createHandler, operation };
}

const updateProblems = Object.freeze({ 'not-found': {}, 'precondition-failed': {}, 'precondition-required': {} });

function updateHeaders(): z.ZodObject {
  const param = { description: 'The `ETag` that a GET returned, or `*` for any version.' };
  return z.object({ 'If-Match': z.string().meta({ param, examples: ['*'] }) });
}

/**
 * Compares only the version at the start of the tag. The rest is a digest of one representation, but a client that has
 * read any of them has seen that version of the row.
 */
function isTagOf(opaque: string, version: number): boolean {
  return opaque.startsWith(`${version}-`);
}
