/** A Koa app made of resources: routed, and with an answer for every path and method that is none of theirs. */

import type { Context, Middleware } from 'koa';
import Koa from 'koa';
import Router from 'koa-router';
import {
  createProblemResponses,
  exchangeOf,
  type ProblemResponsesOptions,
  problem,
  type Representations,
  redirectTo,
} from '#http';
import type { ResourceRoute } from './route.ts';

export interface ResourceAppOptions extends ProblemResponsesOptions {
  readonly representations: Representations;
  readonly routes: readonly ResourceRoute[];
}

/** The app renders its own errors, so that it is the same alone, mounted in a host, or behind the gateway. */
export function createResourceApp({ routes, representations, ...responses }: ResourceAppOptions): Koa {
  // Sensitive, since the router's routes would ignore case where its middleware does not; strict, since `/x` and `/x/` differ.
  const router = new Router({ sensitive: true, strict: true });
  for (const route of routes) router.get(route.path, route.answer(representations));
  const app = new Koa();
  app.use(createProblemResponses({ ...responses, representations }));
  app.use(router.routes() as Middleware);
  app.use(createUnmatched(router));
  return app;
}

/** The end of the app: another method of a known path, a collection without its slash, or nothing at all. */
function createUnmatched(router: Router): Middleware {
  return function unmatched(ctx: Context) {
    const allowed = methodsOf(router, ctx.path);
    if (allowed.length > 0) return answerMethod(ctx, allowed);
    if (!ctx.path.endsWith('/') && methodsOf(router, `${ctx.path}/`).length > 0) return redirectToSlash(ctx);
    throw problem('not-found');
  };
}

function methodsOf(router: Router, path: string): readonly string[] {
  const methods = new Set(router.match(path, 'GET').path.flatMap((layer) => layer.methods));
  return methods.size === 0 ? [] : [...methods, 'OPTIONS'].sort();
}

function answerMethod(ctx: Context, allowed: readonly string[]): void {
  const allow = allowed.join(', ');
  if (ctx.method !== 'OPTIONS') {
    throw problem('method-not-allowed', { detail: `This resource takes ${allow}.`, headers: { Allow: allow } });
  }
  ctx.set('Allow', allow);
  ctx.status = 204;
}

export function redirectToSlash(ctx: Context): void {
  redirectTo(ctx, `${exchangeOf(ctx).basePath}${ctx.path}/${ctx.search}`);
}
