/** A Koa app made of routes: problems, koa-router, and an answer for every other path and method. */
import { createRequire } from 'node:module';
import type { Context, Middleware } from 'koa';
import Koa from 'koa';
import {
  answerOtherMethod,
  createProblemResponses,
  type ProblemResponsesOptions,
  pathOf,
  problem,
  type Representations,
  redirectTo,
  requestContext,
  withDocsLink,
} from '#http';
import type { ApiInfo } from './openapi/document.ts';
import { documentRoutes, linkDocuments } from './openapi/routes.ts';
import type { Route } from './operation.ts';

// Its ES module imports node:http, which costs what node-http.ts of #http says.
const { Router } = createRequire(import.meta.url)('koa-router') as typeof import('koa-router');

export interface ResourceAppOptions extends ProblemResponsesOptions {
  readonly representations: Representations;
  /** Of several routes that match, the first answers. */
  readonly routes: readonly Route[];
  /** What the app says about itself at `/openapi.json` and `/docs/`. @default there are no such routes */
  readonly info?: ApiInfo;
}

/** The app renders its own errors, so that it is the same alone, mounted in a host, or behind the gateway. */
export function createResourceApp({ routes, representations, info, ...responses }: ResourceAppOptions): Koa {
  const documents = info === undefined ? [] : documentRoutes(info, routes);
  const all = [...documents, ...routes];
  const entries = all.map((route) => entryOf(route, representations, info !== undefined));
  const app = new Koa();
  app.use(createProblemResponses({ ...responses, representations }));
  app.use(createDispatch(createRouters(entries), all));
  return app;
}

/** A route as koa-router takes it. */
interface Entry extends Pick<Route, 'path' | 'method'> {
  readonly handlers: Middleware[];
}

function entryOf({ path, method, createHandler }: Route, representations: Representations, hasDocs: boolean): Entry {
  const isLinked = hasDocs && method === 'GET' && path === '/';
  const handler = createHandler(isLinked ? withDocsLink(representations) : representations);
  return { path, method, handlers: isLinked ? [linkDocuments, handler] : [handler] };
}

type RouterOf = (path: string) => Middleware;

/** A router for each first segment of a path: koa-router tries its routes one after the other, and most lead elsewhere. */
function createRouters(entries: readonly Entry[]): RouterOf {
  const segments = new Set(entries.map(({ path }) => firstSegment(path)));
  const routers = new Map([...segments].map((segment) => [segment, createRouter(entries, segment)]));
  const others = createRouter(entries, undefined);
  return (path) => routers.get(firstSegment(path)) ?? others;
}

/** Of the routes that match paths with this first segment; undefined: with any that no route names. */
function createRouter(entries: readonly Entry[], segment: string | undefined): Middleware {
  // Sensitive, since paths differ by case; strict, since `/x` and `/x/` differ.
  const router = new Router({ sensitive: true, strict: true });
  for (const { path, method, handlers } of entries) {
    const first = firstSegment(path);
    if (first === segment || first.startsWith(':')) router.register(path, [method], handlers);
  }
  return router.routes() as unknown as Middleware;
}

/** `bookings` of `/bookings/1`. */
function firstSegment(path: string): string {
  const end = path.indexOf('/', 1);
  return path.slice(1, end === -1 ? undefined : end);
}

/** `/bookings` is redirected before the router sees it, since it also matches `/:id`. One middleware, since every request passes here. */
function createDispatch(routerOf: RouterOf, routes: readonly Route[]): Middleware {
  const collections = routes.filter(({ path }) => path.endsWith('/') && !path.includes(':'));
  const withoutSlash = new Set(collections.map(({ path }) => path.slice(0, -1)));
  const answerUnmatched = createFallback(routes);
  return function dispatch(ctx: Context) {
    const path = pathOf(ctx.req.url ?? '/');
    return withoutSlash.has(path) ? redirectToSlash(ctx) : routerOf(path)(ctx, async () => answerUnmatched(ctx, path));
  };
}

/** Answers another method of a known path, a collection without its slash, and what is not there. */
function createFallback(routes: readonly Route[]): (ctx: Context, path: string) => void {
  const methodsAt = (path: string) => methodsOf(routes.filter((route) => matches(route.path, path)));
  return function answerUnmatched(ctx, path) {
    const allowed = methodsAt(path);
    const isCollection = !path.endsWith('/') && methodsAt(`${path}/`).length > 0;
    if (allowed.length > 0) answerOtherMethod(ctx, allowed);
    else if (isCollection) redirectToSlash(ctx);
    else throw problem('not-found');
  };
}

/** `/bookings/:id` matches `/bookings/1`. */
function matches(pattern: string, path: string): boolean {
  const parts = pattern.split('/');
  const segments = path.split('/');
  const fits = (part: string, segment: string | undefined) =>
    part.startsWith(':') ? Boolean(segment) : part === segment;
  return parts.length === segments.length && parts.every((part, index) => fits(part, segments[index]));
}

function methodsOf(routes: readonly Route[]): readonly string[] {
  if (routes.length === 0) return [];
  const methods = routes.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return [...new Set([...methods, 'OPTIONS'])].sort();
}

export function redirectToSlash(ctx: Context): void {
  redirectTo(ctx, `${requestContext(ctx).basePath}${ctx.path}/${ctx.search}`);
}
