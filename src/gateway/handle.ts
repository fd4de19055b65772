/** Handles a request: finds its mapping, runs the stages in order, and applies the mapping's response headers. */
import type { IncomingMessage } from 'node:http';
import type { Context, Middleware } from 'koa';
import {
  type Addresses,
  discardPreparedResponse,
  pathOf,
  problem,
  requestContext,
  sanitisePath,
  searchOf,
} from '#http';
import { clientIsGone, type Identity, rejectLoop } from '#proxy';
import type { Match, RequestAttributes, Table } from '#routing';
import type { PathChecks } from './check-paths.ts';
import type { Disguises } from './disguises.ts';
import type { DescriptorsOf } from './limits/descriptors.ts';
import type { AskLimiter } from './limits/stage.ts';
import type { Route } from './route.ts';
import type { InFlightRequest, Traffic } from './traffic/traffic.ts';
import type { VersionLifecycle, VersionOf } from './version-lifecycle.ts';

export interface HandleParts extends PathChecks {
  readonly table: Table<Route>;
  readonly preflightRoute: PreflightRoute;
  /** Strips the headers that only an auth service may set. */
  readonly identity: Identity;
  readonly disguises: Disguises;
  /** Undefined when there is no rate-limit service. */
  readonly askLimiter: AskLimiter | undefined;
  readonly traffic: Traffic;
  /** Undefined without Version records. */
  readonly versionOf: VersionOf | undefined;
}

/** A request with its route and the optional shadow that receives a copy: the input of the stages. */
interface RoutedRequest extends Match<Route> {
  readonly request: InFlightRequest;
  readonly attributes: RequestAttributes;
  readonly version: VersionLifecycle | undefined;
}

/**
 * Returns `false` to skip the remaining stages, when the response was already set or the client disconnected. Returns a
 * promise only when it has to wait, for example for another process. If the client disconnects meanwhile, the remaining
 * stages are skipped too: no event would release what they acquire.
 */
type Stage = (routed: RoutedRequest) => unknown;

export function createHandle(parts: HandleParts): Middleware {
  const { table, preflightRoute, askLimiter, traffic, versionOf, checkAmbiguity, checkReferences } = parts;
  const { identity, disguises } = parts;

  const stages: readonly Stage[] = [
    rejectEndedVersion,
    rejectLoopingRequest,
    rejectAmbiguousPath,
    limitBeforeAuth,
    authenticate,
    limitAfterAuth,
    rejectForeignReferences,
    removeAuthorization,
    copyToShadow,
    forward,
  ];

  function rejectAmbiguousPath({ attributes, route }: RoutedRequest): void {
    checkAmbiguity?.(attributes, route);
  }

  function limitBeforeAuth(routed: RoutedRequest) {
    return limitBy(routed.route.descriptors.beforeAuth, routed);
  }

  function limitAfterAuth(routed: RoutedRequest) {
    return limitBy(routed.route.descriptors.afterAuth, routed);
  }

  function limitBy(descriptorsOf: DescriptorsOf | undefined, { request, attributes }: RoutedRequest) {
    if (descriptorsOf === undefined) return undefined;
    request.stage = 'limit';
    return askLimiter?.(request, descriptorsOf(attributes));
  }

  function rejectForeignReferences({ request, attributes, route }: RoutedRequest): void {
    request.stage = 'service';
    checkReferences(request.ctx, attributes, route);
  }

  async function runStages(routed: RoutedRequest): Promise<void> {
    for (const stage of stages) {
      const result = stage(routed);
      if (result === false) return;
      // Awaits only promises, because each await would delay the request by a microtask.
      if (result instanceof Promise && ((await result) === false || clientIsGone(routed.request.ctx))) return;
    }
  }

  /** Applies the mapping's response headers, also to errors. */
  async function withResponseHeaders(routed: RoutedRequest): Promise<void> {
    const { ctx } = routed.request;
    try {
      await runStages(routed);
    } finally {
      if (!ctx.headerSent) routed.route.editResponse?.(ctx);
    }
  }

  function respond(ctx: Context, attributes: RequestAttributes, match: Match<Route>, version?: VersionLifecycle) {
    const { route, shadow } = match;
    const context = requestContext(ctx);
    disguises.removeUnkept?.(ctx.req, context.addresses.trusts(ctx.req), route.mapping);
    context.mapping = route.name;
    context.route = route.prefix;
    context.service = route.service;
    const routed = { request: traffic.begin(ctx, route.traffic), attributes, route, shadow, version };
    const run = route.editResponse === undefined ? runStages : withResponseHeaders;
    return route.cors === undefined ? run(routed) : route.cors.around(ctx, () => run(routed));
  }

  function rejectUnmatched(ctx: Context, path: string, version: VersionLifecycle | undefined): never {
    traffic.begin(ctx, traffic.unmatched);
    rejectEndedVersion({ version });
    traffic.addUnmatched(ctx, path);
    throw problem('not-found');
  }

  return function gateway(ctx) {
    discardPreparedResponse(ctx);
    const { nominated, addresses } = requestContext(ctx);
    identity.rejectNomination(nominated);
    const isFromTrustedProxy = addresses.trusts(ctx.req);
    identity.strip(ctx.req, isFromTrustedProxy);
    disguises.remove(ctx.req, isFromTrustedProxy);
    const attributes = attributesOf(ctx);
    const preflight = preflightRoute(ctx);
    const match = preflight === undefined ? table.match(attributes) : undefined;
    const version = versionOf?.(attributes.path, preflight ?? match?.route);
    version?.announce(ctx);
    rejectMethod(ctx.method);
    if (preflight !== undefined) return answerPreflight(ctx, preflight);
    if (match !== undefined) return respond(ctx, attributes, match, version);
    return rejectUnmatched(ctx, attributes.path, version);
  };
}

function rejectEndedVersion({ version }: Pick<RoutedRequest, 'version'>): void {
  const ended = version?.ended();
  if (ended !== undefined) throw ended;
}

/** Runs before the auth service is asked, because it may be the gateway itself by mistake. */
function rejectLoopingRequest({ request }: RoutedRequest): void {
  rejectLoop(request.ctx.req);
}

function authenticate({ request, attributes, route }: RoutedRequest) {
  if (route.auth === undefined) return true;
  request.stage = 'auth';
  return route.auth.authenticate(request.ctx, attributes);
}

/** Runs after the limits, which may count requests by this header. */
function removeAuthorization({ request, route }: RoutedRequest): void {
  if (route.auth?.record.removeAuthorization === true) delete request.ctx.req.headers.authorization;
}

function copyToShadow({ request, shadow }: RoutedRequest): void {
  shadow?.transport.shadow?.(request.ctx);
}

function forward({ request, route }: RoutedRequest): Promise<void> {
  return route.transport.forward(request.ctx);
}

const allowed = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';

/** TRACE would echo credentials back (RFC 9110 section 9.3.8), and CONNECT is for forward proxies. */
export function rejectMethod(method: string): void {
  if (method === 'TRACE' || method === 'CONNECT') throw problem('method-not-allowed', { headers: { Allow: allowed } });
}

/**
 * Returns the route whose CORS rule handles this preflight, or undefined for any other request. Safe to call before the
 * path is sanitised.
 */
export type PreflightRoute = (ctx: Context) => Route | undefined;

/**
 * Finds the route of the request that the preflight announces. A preflight does not carry that request's headers, so it
 * never matches a mapping with header conditions.
 */
export function createPreflightRoute({ match, routes }: Table<Route>): PreflightRoute {
  const hasCors = routes.some(({ cors }) => cors !== undefined);
  return function preflightRoute(ctx) {
    if (!hasCors || ctx.method !== 'OPTIONS') return undefined;
    const { origin, 'access-control-request-method': method } = ctx.req.headers;
    const path = sanitisePath(pathOf(ctx.url));
    if (origin === undefined || method === undefined || path === undefined) return undefined;
    const route = match(attributesOf(ctx, { path, method }))?.route;
    return route?.cors && route;
  };
}

function answerPreflight(ctx: Context, { name, cors }: Route): void {
  requestContext(ctx).mapping = name;
  cors?.answerPreflight(ctx);
}

/** Overrides for a CORS preflight: the method and path of the request that it announces. */
interface PreflightOverrides {
  readonly method?: string | undefined;
  readonly path?: string | undefined;
}

/**
 * Collects the request attributes that routing and labels use. Host and client are lazy: most mappings need neither.
 */
export function attributesOf(ctx: Context, { method, path }: PreflightOverrides = {}): RequestAttributes {
  const { req } = ctx;
  const url = req.url ?? '/';
  const attributes = Object.create(lazyAttributes) as Writable<RequestAttributes & Source>;
  attributes.method = method ?? req.method ?? 'GET';
  attributes.path = path ?? pathOf(url);
  attributes.search = searchOf(url);
  attributes.headers = req.headers;
  attributes.req = req;
  attributes.addresses = requestContext(ctx).addresses;
  return attributes;
}

type Writable<T> = { -readonly [Name in keyof T]: T[Name] };

interface Source {
  readonly req: IncomingMessage;
  readonly addresses: Addresses;
}

/** The prototype of the attributes: defining getters on each object would take nearly a microsecond per request. */
const lazyAttributes: Pick<RequestAttributes, 'host' | 'client'> & ThisType<Source> = Object.freeze({
  get host() {
    return this.addresses.host(this.req);
  },
  get client() {
    return this.addresses.client(this.req);
  },
});
