/** Runs one app inside another in isolation: with separate state and parameters, and without falling through. */
import type Koa from 'koa';
import type { Context, Middleware } from 'koa';
import compose from 'koa-compose';
import { requestContext } from './context.ts';
import { problem } from './problem.ts';

/** A Koa app whose state and context have any types. */
export type AnyApp = Pick<Koa<never, never>, 'middleware'>;

/** Returns why Koa cannot run the service, with the remedy, or undefined for a Koa app or a middleware. */
export function serviceFault(service: unknown): string | undefined {
  const { middleware, routes, handle, length } = Object(service) as Readonly<Record<string, unknown>>;
  if (typeof routes === 'function') return 'is a router: pass its middleware, router.routes()';
  // The app of Express or connect is a function of a request, a response and `next`.
  const isMiddleware = typeof service === 'function' && typeof handle !== 'function' && Number(length) <= 2;
  if (isMiddleware || (typeof service === 'object' && Array.isArray(middleware))) return undefined;
  return (
    'is neither a Koa app nor a Koa middleware. An app of another framework, such as Express or Fastify, needs a port of ' +
    'its own: let it listen, and write its URL in the Mapping (service: http://127.0.0.1:3001)'
  );
}

/**
 * koa-mount shares `ctx.state` and falls through to the outer app when the inner one does not respond; either would let
 * one service or version see another. Here, an app that does not respond yields `not-found`. koa-router merges its
 * matches into `ctx.params` and `ctx.matched`, so a host's router would leak into the app: both start empty and are
 * restored. Throws TypeError for anything that Koa cannot run.
 */
export function isolate(app: AnyApp | Middleware): (ctx: Context) => Promise<void> {
  const fault = serviceFault(app);
  if (fault !== undefined) throw new TypeError(`the service ${fault}`);
  const run = typeof app === 'function' ? app : compose(app.middleware);
  return async function isolated(ctx) {
    const { state } = ctx;
    const { params, matched } = ctx as Routed;
    discardPreparedResponse(ctx);
    ctx.state = {};
    (ctx as Routed).params = undefined;
    (ctx as Routed).matched = undefined;
    try {
      await run(ctx as never, fallThrough);
      requestContext(ctx).isAnswered = true;
    } finally {
      if (!ctx.req.complete) discardRest(ctx);
      ctx.state = state;
      (ctx as Routed).params = params;
      (ctx as Routed).matched = matched;
    }
    if (hasNoResponse(ctx)) throw problem('not-found');
    if (ctx.respond !== false && !ctx.headerSent) writeJson(ctx);
  };
}

/**
 * Discards the rest of a body that the app does not read to its end, after the response. On a host's own server, Node
 * does this only for a body that has not been read at all, and the next request on the connection would wait.
 */
function discardRest({ req, res }: Context): void {
  res.once('finish', () => req.resume());
}

/**
 * Serialises the body here because Koa does it only after all middleware. For a value that JSON cannot represent, the
 * client would then get Koa's own 500 without a request id, and the log line would not name the mapping.
 */
function writeJson(ctx: Context): void {
  const body: unknown = ctx.body;
  if (!isDataBody(body)) return;
  const text: string | undefined = JSON.stringify(body);
  if (text === undefined)
    throw new TypeError(`a service responded with a value that JSON cannot represent: ${typeof body}`);
  ctx.body = text;
}

/** True for a body that has to be serialised, such as an object. False for none, text, a buffer or a stream. */
export function isDataBody(body: unknown): boolean {
  return body != null && typeof body !== 'string' && !Buffer.isBuffer(body) && !isStreamed(body);
}

function isStreamed(body: unknown): boolean {
  const { pipe, stream, getReader } = Object(body);
  return [pipe, stream, getReader].some((method) => typeof method === 'function') || body instanceof Response;
}

/**
 * Discards a fallback response that the host application may have prepared. Koa would send it instead of `not-found`,
 * or combine its status, type or length with the body of the app.
 */
export function discardPreparedResponse(ctx: Context): void {
  const response = ctx.response as Context['response'] & { _explicitStatus?: boolean };
  const isPrepared = response._explicitStatus === true || ctx.res.statusCode !== 404 || ctx.body != null;
  if (ctx.respond === false) ctx.respond = true;
  if (!isPrepared || ctx.headerSent) return;
  // Koa would turn the undefined body into `null` if the type were still JSON.
  ctx.remove('Content-Type');
  ctx.body = undefined;
  ctx.res.statusCode = 404;
  response._explicitStatus = false;
}

/** The context as koa-router extends it. */
interface Routed extends Context {
  params?: unknown;
  matched?: unknown;
}

async function fallThrough(): Promise<void> {}

/** Koa starts every response as 404 without a body. A handler that responds changes at least one of the two. */
function hasNoResponse(ctx: Context): boolean {
  return ctx.res.statusCode === 404 && ctx.body == null && ctx.respond !== false && !ctx.headerSent;
}
