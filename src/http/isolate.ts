/** One app inside another as if it were alone: its own state, its own end, nothing falls through. */
import type Koa from 'koa';
import type { Context, Middleware } from 'koa';
import compose from 'koa-compose';
import { problem } from './problem.ts';

/**
 * koa-mount hands on `ctx.state` and falls through to the outer app when the inner one does not answer; both would let
 * one service or version see another. What an isolated app leaves unanswered is `not-found`.
 */
export function isolate(app: Koa | Middleware): (ctx: Context) => Promise<void> {
  const run = typeof app === 'function' ? app : compose(app.middleware);
  return async function isolated(ctx) {
    const outerState = ctx.state;
    ctx.state = {};
    try {
      await run(ctx as Parameters<typeof run>[0], fellThrough);
    } finally {
      ctx.state = outerState;
    }
    if (isUnanswered(ctx)) throw problem('not-found');
  };
}

async function fellThrough(): Promise<void> {}

/** Koa starts every response at 404 without a body, and a handler that answers changes at least one of the two. */
function isUnanswered(ctx: Context): boolean {
  return ctx.res.statusCode === 404 && ctx.body == null && ctx.respond !== false && !ctx.headerSent;
}
