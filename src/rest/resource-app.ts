/** A Koa app made of resources: routed, and with an answer for every path and method that is none of theirs. */

import type { Context, Middleware, Next } from 'koa';
import Koa from 'koa';
import Router from 'koa-router';
import {
  answerMethod,
  createProblemResponses,
  exchangeOf,
  type ProblemResponsesOptions,
  pathOf,
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
  for (const { path, method, answer } of routes) router.register(path, [method], answer(representations));
  const app = new Koa();
  app.use(createProblemResponses({ ...responses, representations }));
  app.use(createDispatch(router, withoutSlash(routes)));
  return app;
}

/** Collections that have no parameter in their path, and so could be taken for an item: `/bookings` for `/:id`. */
function withoutSlash(routes: readonly ResourceRoute[]): ReadonlySet<string> {
  const collections = routes.filter(({ path }) => path.endsWith('/') && !path.includes(':'));
  return new Set(collections.map(({ path }) => path.slice(0, -1)));
}

/** The router's own middleware puts a chain together at each request; here a route is one function, and no two overlap. */
function createDispatch(router: Router, slashless: ReadonlySet<string>): Middleware {
  return function dispatch(ctx: Context, next: Next) {
    const path = pathOf(ctx.url);
    if (slashless.has(path)) return redirectToSlash(ctx);
    const [layer] = router.match(path, ctx.method).pathAndMethod;
    const [answer] = layer?.stack ?? [];
    if (layer === undefined || answer === undefined) return answerUnmatched(ctx, router, path);
    ctx['params'] = layer.params(path, layer.captures(path));
    return (answer as Middleware)(ctx, next);
  };
}

/** Another method of a known path, a collection without its slash, or nothing at all. */
function answerUnmatched(ctx: Context, router: Router, path: string): void {
  const allowed = methodsOf(router, path);
  const isCollection = !path.endsWith('/') && methodsOf(router, `${path}/`).length > 0;
  if (allowed.length > 0) answerMethod(ctx, allowed);
  else if (isCollection) redirectToSlash(ctx);
  else throw problem('not-found');
}

function methodsOf(router: Router, path: string): readonly string[] {
  const methods = new Set(router.match(path, 'GET').path.flatMap((layer) => layer.methods));
  return methods.size === 0 ? [] : [...methods, 'OPTIONS'].sort();
}

export function redirectToSlash(ctx: Context): void {
  redirectTo(ctx, `${exchangeOf(ctx).basePath}${ctx.path}/${ctx.search}`);
}
