/** Content negotiation for handlers that set `ctx.body`: renders it, and errors, as the client accepts them. */
import type { Context, Middleware } from 'koa';
import compose from 'koa-compose';
import {
  createProblemResponses,
  createRepresentations,
  type Formatter,
  isDataBody,
  type ProblemResponsesOptions,
  represent,
} from '#http';

export interface NegotiateOptions extends ProblemResponsesOptions {
  /** The heading of the pages for browsers. @default 'API' */
  readonly title?: string;
}

/**
 * Renders an object or array in `ctx.body` in the representation that `Accept` selects, and a thrown error as the error
 * body. A response to GET with status 200 gets an `ETag`, and 304 or 412 as `If-None-Match` and `If-Match` say. Text,
 * buffers and streams are sent as they are, and so is a body with another type than JSON. A path that nothing handles, and
 * a status from 400 to 499 without a body, get the error body. If the client accepts none of the representations, the
 * response is 406: for GET after the handler, so that what does not exist is 404, for other methods before it has changed
 * anything.
 */
export function negotiate({ title = 'API', ...responses }: NegotiateOptions = {}): Middleware {
  const { representations = createRepresentations() } = responses;
  async function negotiateBody(ctx: Context, next: () => Promise<void>): Promise<void> {
    const choose = () => representations.choose(ctx.req.headers.accept);
    const chosen = isRead(ctx) ? undefined : choose();
    await next();
    if (isRefusal(ctx)) ctx.throw(ctx.status);
    if (hasData(ctx)) send(ctx, chosen ?? choose(), title);
  }
  return compose([createProblemResponses({ ...responses, representations }), negotiateBody]) as Middleware;
}

function isRead({ method }: Context): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** True for a refusal without a body, which Koa would send as text. */
function isRefusal(ctx: Context): boolean {
  return isOpen(ctx) && ctx.body == null && ctx.status >= 400 && ctx.status < 500;
}

function hasData(ctx: Context): boolean {
  return isOpen(ctx) && isDataBody(ctx.body) && ctx.type === 'application/json';
}

/** False if the handler writes to the socket itself. */
function isOpen({ respond, headerSent }: Context): boolean {
  return respond !== false && !headerSent;
}

function send(ctx: Context, formatter: Formatter, title: string): void {
  if (isRead(ctx) && ctx.status === 200) {
    represent(ctx, formatter, ctx.body, { title });
    return;
  }
  const body = formatter.format(ctx.body, title);
  ctx.vary('Accept');
  ctx.set({ 'Content-Type': formatter.contentType, ...formatter.headers });
  ctx.body = body;
}
