/** Runs one app inside another as if it were alone: with its own state and parameters, and nothing falls through. */
import type Koa from 'koa';
import type { Context, Middleware } from 'koa';
import compose from 'koa-compose';
import { problem } from './problem.ts';

/**
 * koa-mount passes `ctx.state` on and falls through to the outer app when the inner one does not answer; both would let
 * one service or version see another. Here an app that does not answer is `not-found`. koa-router merges what it finds
 * into `ctx.params` and `ctx.matched`, so a host's router would leak into the app; both start empty, and are put back.
 */
export function isolate(app: Koa | Middleware): (ctx: Context) => Promise<void> {
  const run = typeof app === 'function' ? app : compose(app.middleware);
  return async function isolated(ctx) {
    const { state } = ctx;
    const { params, matched } = ctx as Routed;
    withdrawResponse(ctx);
    ctx.state = {};
    (ctx as Routed).params = undefined;
    (ctx as Routed).matched = undefined;
    try {
      await run(ctx as Parameters<typeof run>[0], fallThrough);
    } finally {
      ctx.state = state;
      (ctx as Routed).params = params;
      (ctx as Routed).matched = matched;
    }
    if (isUnanswered(ctx)) throw problem('not-found');
    if (ctx.respond !== false && !ctx.headerSent) writeJson(ctx);
  };
}

/**
 * Koa would write JSON after all middleware: what JSON cannot hold would get Koa's own 500, without a request id and with
 * a line in the log that names no mapping.
 */
function writeJson(ctx: Context): void {
  const body: unknown = ctx.body;
  if (body == null || typeof body === 'string' || Buffer.isBuffer(body) || isStreamed(body)) return;
  const text: string | undefined = JSON.stringify(body);
  if (text === undefined) throw new TypeError(`a service answered with what JSON cannot hold: ${typeof body}`);
  ctx.body = text;
}

function isStreamed(body: unknown): boolean {
  const { pipe, stream, getReader } = Object(body);
  return [pipe, stream, getReader].some((method) => typeof method === 'function') || body instanceof Response;
}

/**
 * A host may have prepared a response for the case that nothing answers. Koa would send it in place of `not-found`, and
 * its status with the body of the app.
 */
function withdrawResponse(ctx: Context): void {
  const response = ctx.response as Context['response'] & { _explicitStatus?: boolean };
  const isPrepared = response._explicitStatus === true || ctx.res.statusCode !== 404 || ctx.body != null;
  if (ctx.respond === false) ctx.respond = true;
  if (!isPrepared || ctx.headerSent) return;
  // With a type of JSON the body would become `null`.
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

/** Koa starts every response at 404 without a body, and a handler that answers changes at least one of the two. */
function isUnanswered(ctx: Context): boolean {
  return ctx.res.statusCode === 404 && ctx.body == null && ctx.respond !== false && !ctx.headerSent;
}
