/** A Koa app made of resources: routed, and with an answer for every path and method that is none of theirs. */

import type { Context, Middleware, Next } from 'koa';
import Koa from 'koa';
import Router, { type Layer } from 'koa-router';
import {
  answerOtherMethod,
  createProblemResponses,
  type ProblemResponsesOptions,
  pathOf,
  problem,
  type Representations,
  redirectTo,
  requestContext,
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

/** The router's own middleware puts a chain together at each request; here a route is one function: of several the first. */
function createDispatch(router: Router, slashless: ReadonlySet<string>): Middleware {
  const layers = layersByMethod(router);
  return function dispatch(ctx: Context, next: Next) {
    const { url = '/', method = 'GET' } = ctx.req;
    const path = pathOf(url);
    if (slashless.has(path)) return redirectToSlash(ctx);
    for (const layer of layers.get(method) ?? []) {
      const captures = capturesOf(layer, path);
      const [answer] = layer.stack;
      if (captures === undefined || answer === undefined) continue;
      ctx['params'] = paramsOf(layer, path, captures);
      return (answer as Middleware)(ctx, next);
    }
    return answerUnmatched(ctx, router, path);
  };
}

/** The router itself would try all of them at each request, those of other methods too. */
function layersByMethod({ stack }: Router): ReadonlyMap<string, readonly Layer[]> {
  const methods = new Set(stack.flatMap((layer) => layer.methods));
  return new Map(Array.from(methods, (method) => [method, stack.filter((layer) => layer.methods.includes(method))]));
}

/** What `match` and `captures` of the layer say, with one look at the path. Undefined: it is another one's. */
function capturesOf({ regexp }: Layer, path: string): string[] | undefined {
  return regexp.exec(path)?.slice(1);
}

/** What `params` of the layer says, which decodes even where nothing is encoded. */
function paramsOf(layer: Layer, path: string, captures: string[]): Record<string, string> {
  if (path.includes('%')) return layer.params(path, captures);
  const params: Record<string, string> = {};
  for (const [index, { name }] of layer.paramNames.entries()) {
    const value = captures[index];
    if (value) params[name] = value;
  }
  return params;
}

/** Another method of a known path, a collection without its slash, or nothing at all. */
function answerUnmatched(ctx: Context, router: Router, path: string): void {
  const allowed = methodsOf(router, path);
  const isCollection = !path.endsWith('/') && methodsOf(router, `${path}/`).length > 0;
  if (allowed.length > 0) answerOtherMethod(ctx, allowed);
  else if (isCollection) redirectToSlash(ctx);
  else throw problem('not-found');
}

function methodsOf(router: Router, path: string): readonly string[] {
  const methods = new Set(router.match(path, 'GET').path.flatMap((layer) => layer.methods));
  return methods.size === 0 ? [] : [...methods, 'OPTIONS'].sort();
}

export function redirectToSlash(ctx: Context): void {
  redirectTo(ctx, `${requestContext(ctx).basePath}${ctx.path}/${ctx.search}`);
}
