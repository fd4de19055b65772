/**
 * Creates Koa apps from routes, with problem responses, OpenAPI routes, and responses for other paths and methods. Mounts
 * the versions of an API side by side.
 */
import { createRequire } from 'node:module';
import type { Context, Middleware } from 'koa';
import Koa from 'koa';
import compose from 'koa-compose';
import mount from 'koa-mount';
import {
  createProblemResponses,
  createRepresentations,
  handleOtherMethod,
  isolate,
  type PageRoute,
  type ProblemResponsesOptions,
  type ProblemTable,
  pathOf,
  problem,
  redirectTo,
  requestContext,
} from '#http';
import { createRunOnce, type IdempotencyOptions } from './idempotency-store.ts';
import type { ApiInfo } from './openapi/document.ts';
import { documentRoutes, linkDocuments, problemPages } from './openapi/routes.ts';
import type { AppParts, Route } from './operation.ts';

// The ES module of koa-router imports node:http, which node-http.ts of #http avoids.
const { Router } = createRequire(import.meta.url)('koa-router') as typeof import('koa-router');

export interface ResourceAppOptions extends ProblemResponsesOptions {
  /** If several routes match a request, the first one handles it. */
  readonly routes: readonly Route[];
  /** The problems that the app has defined with `defineProblems`, for its documentation. @default none */
  readonly problems?: { readonly kinds: ProblemTable };
  /**
   * Adds `/openapi.json` and `/docs/`, which describe the routes and, at `/docs/problems/` unless `problemPagesPath` says
   * where else, the problems, to which the `info_url` of errors links. @default no such routes
   */
  readonly info?: ApiInfo;
  /** How `once` recognises repeated requests. @default in memory, by caller */
  readonly idempotency?: IdempotencyOptions;
}

/**
 * Creates an app that handles every path: those of its routes, redirects to the slash of a collection, `Allow` for other
 * methods, and 404. It renders its own errors, so it behaves the same alone, mounted in a host, or behind the gateway.
 */
export function createResourceApp({ routes, info, problems, idempotency, ...responses }: ResourceAppOptions): Koa {
  const { representations = createRepresentations(), problemPagesPath = info && ownProblemPages } = responses;
  const kinds = problems?.kinds ?? {};
  const parts = { representations, runOnce: createRunOnce(idempotency) };
  const pageOf = pagesAround(routes, info !== undefined);
  const hasProblemPages = problemPagesPath === ownProblemPages;
  const documented = { routes, kinds, problemPagesPath, hasProblemPages };
  const documents = info === undefined ? [] : documentRoutes({ info, ...documented });
  const all = [...documents, ...routes];
  const entries = all.map((route) => entryOf(route, { ...parts, page: pageOf(route) }, info !== undefined));
  const app = new Koa();
  app.use(createProblemResponses({ ...responses, representations, problemPagesPath }, pageOf(anyRoute)));
  app.use(createDispatch(createRouters(entries), all));
  if (info !== undefined) documentedApps.add(app);
  return app;
}

/** The apps that have documentation, to which the documentation of other versions links. */
const documentedApps = new WeakSet<Koa>();

function ownProblemPages(ctx: Context): string {
  return `${requestContext(ctx).basePath}${problemPages}`;
}

/** A route in the form that koa-router expects. */
interface Entry extends Pick<Route, 'path' | 'method'> {
  readonly handlers: Middleware[];
}

function entryOf({ path, method, createHandler }: Route, parts: AppParts, hasDocs: boolean): Entry {
  const handler = createHandler(parts);
  const isLinked = hasDocs && method === 'GET' && path === '/';
  return { path, method, handlers: isLinked ? [linkDocuments, handler] : [handler] };
}

/** The path of an error, which is below the root like every other. Its own pages are unknown. */
const anyRoute = Object.freeze({ path: '/:any' });

/** Returns a function that finds the pages above and below a route: those whose paths begin alike. */
function pagesAround(routes: readonly Route[], hasDocs: boolean) {
  const pages = routes.flatMap(({ method, path, title }) =>
    method === 'GET' && title !== undefined ? [{ path, title }] : [],
  );
  const parameters = (path: string) => path.split(':').length;
  return function pageOf({ path }: Pick<Route, 'path'>): PageRoute {
    const above = pages.filter((page) => isBelow(path, page.path));
    const below = pages.filter(
      (page) => isBelow(page.path, path) && page.path.endsWith('/') && parameters(page.path) === parameters(path),
    );
    return {
      above: above.toSorted((one, other) => one.path.length - other.path.length),
      below,
      hasDocs,
      collections: {},
    };
  };
}

function isBelow(path: string, above: string): boolean {
  return path !== above && path.startsWith(above.endsWith('/') ? above : `${above}/`);
}

type RouterOf = (path: string) => Middleware;

/** Creates one router per first path segment, because koa-router tries all of its routes one by one. */
function createRouters(entries: readonly Entry[]): RouterOf {
  const segments = new Set(entries.map(({ path }) => firstSegment(path)));
  const routers = new Map([...segments].map((segment) => [segment, createRouter(entries, segment)]));
  const others = createRouter(entries, undefined);
  return (path) => routers.get(firstSegment(path)) ?? others;
}

/**
 * Creates a router for the routes that can match paths with this first segment. Undefined means any segment that does
 * not occur in a route.
 */
function createRouter(entries: readonly Entry[], segment: string | undefined): Middleware {
  // Paths are case-sensitive, and `strict` distinguishes `/x` from `/x/`.
  const router = new Router({ sensitive: true, strict: true });
  for (const { path, method, handlers } of entries) {
    const first = firstSegment(path);
    if (first === segment || first.startsWith(':')) router.register(path, [method], handlers);
  }
  return router.routes() as unknown as Middleware;
}

/** Returns the first segment of a path: `orders` in `/orders/1`. */
function firstSegment(path: string): string {
  const end = path.indexOf('/', 1);
  return path.slice(1, end === -1 ? undefined : end);
}

/**
 * Creates the middleware that redirects or routes a request. Collections without their slash are redirected first,
 * because `/orders` would match `/:id`.
 */
function createDispatch(routerOf: RouterOf, routes: readonly Route[]): Middleware {
  const collections = routes.filter(({ path }) => path.endsWith('/'));
  const withoutSlash = new Set(collections.map(({ path }) => path.slice(0, -1)));
  const handleUnmatched = createFallback(routes);
  return function dispatch(ctx: Context) {
    const path = pathOf(ctx.req.url ?? '/');
    return withoutSlash.has(path) ? redirectToSlash(ctx) : routerOf(path)(ctx, async () => handleUnmatched(ctx, path));
  };
}

/** Handles requests that match no route: other methods of a known path, collections without a slash, unknown paths. */
function createFallback(routes: readonly Route[]): (ctx: Context, path: string) => void {
  const methodsAt = (path: string) => methodsOf(routes.filter((route) => matches(route.path, path)));
  return function handleUnmatched(ctx, path) {
    const allowed = methodsAt(path);
    if (allowed.length > 0) handleOtherMethod(ctx, allowed);
    else if (methodsAt(`${path}/`).length > 0) redirectToSlash(ctx);
    else throw problem('not-found');
  };
}

/** Matches a path such as `/orders/1` against the path of a route, such as `/orders/:id`. */
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

function redirectToSlash(ctx: Context): void {
  redirectTo(ctx, `${requestContext(ctx).basePath}${ctx.path}/${ctx.search}`);
}

/**
 * Mounts apps such as `{ v1, v2 }` at `/v1` and `/v2`, which the apps do not see. Any other path is `not-found`. Renders
 * this and the errors that an app does not render.
 */
export function createVersions(apps: Readonly<Record<string, Koa>>, options: ProblemResponsesOptions = {}): Middleware {
  const documented = Object.entries(apps).flatMap(([name, app]) => (documentedApps.has(app) ? [name] : []));
  const versions = Object.entries(apps).map(([name, app]) => mountVersion(`/${name}`, app, documented));
  // Creates the request context, which detects the host's mount path. That works only before a version is mounted.
  return compose([createProblemResponses(options), ...versions, unknownVersion]) as Middleware;
}

/** `documented` are the names of the versions that have documentation. */
function mountVersion(prefix: string, app: Koa, documented: readonly string[]): Middleware {
  const run = isolate(app);
  const mounted = mount(prefix, async (ctx: Context) => {
    const context = requestContext(ctx);
    const { basePath, versions } = context;
    context.basePath = basePath + prefix;
    context.versions = documented;
    try {
      await run(ctx);
    } finally {
      context.basePath = basePath;
      context.versions = versions;
    }
  });
  return (ctx, next) => (ctx.path === prefix ? redirectToSlash(ctx) : mounted(ctx, next));
}

function unknownVersion(): never {
  throw problem('not-found');
}
