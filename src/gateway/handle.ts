/** Takes a request through the gateway: its mapping, then the stages in order, then the mapping's response headers. */
import type { IncomingMessage } from 'node:http';
import type { Context, Middleware } from 'koa';
import { type Addresses, pathOf, problem, requestContext, sanitisePath, searchOf } from '#http';
import type { Match, RequestAttributes, Table } from '#routing';
import type { CheckReading } from './check-reading.ts';
import type { CheckReferences } from './check-references.ts';
import type { Identity } from './identity.ts';
import type { AskLimiter } from './limits/stage.ts';
import type { Route } from './route.ts';
import type { InFlightRequest, Traffic } from './traffic/traffic.ts';
import type { VersionLifecycle, VersionOf } from './version-lifecycle.ts';

export interface HandleParts {
  readonly table: Table<Route>;
  readonly preflightRoute: PreflightRoute;
  /** Of every header that only an auth service may set. */
  readonly identity: Identity;
  /** Undefined: nothing is limited. */
  readonly askLimiter: AskLimiter | undefined;
  readonly traffic: Traffic;
  /** Undefined without Version records. */
  readonly versionOf: VersionOf | undefined;
  /** Undefined unless paths are strict. */
  readonly checkReading: CheckReading | undefined;
  readonly checkReferences: CheckReferences;
}

/** A request, its route, and the route that gets a copy: what the stages read. */
interface Handled extends Match<Route> {
  readonly request: InFlightRequest;
  readonly attributes: RequestAttributes;
  readonly version: VersionLifecycle | undefined;
}

/** Ends the request with `false`: the client has its answer, or is gone. Returns a promise only where another process decides. */
type Stage = (handled: Handled) => unknown;

export function createHandle(parts: HandleParts): Middleware {
  const { table, preflightRoute, identity, askLimiter, traffic, versionOf, checkReading, checkReferences } = parts;

  const stages: readonly Stage[] = [
    refuseEndedVersion,
    refuseOtherReading,
    limitByAddress,
    authenticate,
    limitOthers,
    refuseOtherReferences,
    removeAuthorization,
    copyToShadow,
    forward,
  ];

  function refuseOtherReading({ attributes, route }: Handled): void {
    checkReading?.(attributes, route);
  }

  function limitByAddress({ request, attributes, route }: Handled) {
    const { beforeAuth } = route.descriptors;
    if (beforeAuth === undefined) return undefined;
    request.stage = 'limit';
    return askLimiter?.(request, beforeAuth(attributes));
  }

  function limitOthers({ request, attributes, route }: Handled) {
    const { afterAuth } = route.descriptors;
    if (afterAuth === undefined) return undefined;
    request.stage = 'limit';
    return askLimiter?.(request, afterAuth(attributes));
  }

  function refuseOtherReferences({ request, attributes, route }: Handled): void {
    checkReferences(request.ctx, attributes, route);
  }

  async function runStages(handled: Handled): Promise<void> {
    for (const stage of stages) {
      const result = stage(handled);
      if ((result instanceof Promise ? await result : result) === false) return;
    }
  }

  /** Refusals and errors get the mapping's response headers too. */
  async function withResponseHeaders(handled: Handled): Promise<void> {
    const { ctx } = handled.request;
    try {
      await runStages(handled);
    } finally {
      if (!ctx.headerSent) handled.route.editResponse?.(ctx);
    }
  }

  function respond(ctx: Context, attributes: RequestAttributes, match: Match<Route>, version?: VersionLifecycle) {
    const { route, shadow } = match;
    const context = requestContext(ctx);
    context.mapping = route.name;
    context.route = route.prefix;
    context.service = route.service;
    const handled = { request: traffic.begin(ctx, route.traffic), attributes, route, shadow, version };
    const run = route.editResponse === undefined ? runStages : withResponseHeaders;
    return route.cors === undefined ? run(handled) : route.cors.around(ctx, () => run(handled));
  }

  function refuseUnmatched({ method, path }: RequestAttributes, version: VersionLifecycle | undefined): never {
    refuseEndedVersion({ version });
    traffic.addUnmatched(method, path);
    throw problem('not-found');
  }

  return function gateway(ctx) {
    identity.strip(ctx.req);
    const attributes = attributesOf(ctx);
    const preflight = preflightRoute(ctx);
    const match = preflight === undefined ? table.match(attributes) : undefined;
    const version = versionOf?.(attributes.path, preflight ?? match?.route);
    version?.announce(ctx);
    refuseMethod(ctx.method);
    if (preflight !== undefined) return answerPreflight(ctx, preflight);
    if (match !== undefined) return respond(ctx, attributes, match, version);
    traffic.begin(ctx, traffic.unmatched);
    return refuseUnmatched(attributes, version);
  };
}

function refuseEndedVersion({ version }: Pick<Handled, 'version'>): void {
  const ended = version?.ended();
  if (ended !== undefined) throw ended;
}

function authenticate({ request, attributes, route }: Handled) {
  if (route.auth === undefined) return true;
  request.stage = 'auth';
  return route.auth.authenticate(request.ctx, attributes);
}

/** After the limits, which may count by it. */
function removeAuthorization({ request, route }: Handled): void {
  if (route.auth?.record.removeAuthorization === true) delete request.ctx.req.headers.authorization;
}

function copyToShadow({ request, shadow }: Handled): void {
  request.stage = 'service';
  shadow?.transport.shadow?.(request.ctx);
}

function forward({ request, route }: Handled): Promise<void> {
  return route.transport.forward(request.ctx);
}

const allowed = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';

/** TRACE would echo credentials back (RFC 9110 section 9.3.8), and CONNECT is for forward proxies. */
export function refuseMethod(method: string): void {
  if (method === 'TRACE' || method === 'CONNECT') throw problem('method-not-allowed', { headers: { Allow: allowed } });
}

/** The route whose CORS rule answers this preflight; undefined for any other request. May be asked before the path is checked. */
export type PreflightRoute = (ctx: Context) => Route | undefined;

/**
 * Finds the route of the request that the preflight announces. A preflight has none of that request's headers, so it
 * never matches a mapping with conditions on headers.
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

/** In place of the request's own: method and path of the request that a preflight announces. */
interface Announced {
  readonly method?: string | undefined;
  readonly path?: string | undefined;
}

/** What routing and labels read of a request. Host and client are computed when they are read: most mappings need neither. */
export function attributesOf(ctx: Context, { method, path }: Announced = {}): RequestAttributes {
  const { req } = ctx;
  const url = req.url ?? '/';
  const attributes = Object.create(lateAttributes) as Writable<RequestAttributes & Source>;
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

/** A prototype: getters in each object would cost most of a microsecond per request, read or not. */
const lateAttributes: Pick<RequestAttributes, 'host' | 'client'> & ThisType<Source> = Object.freeze({
  get host() {
    return this.addresses.host(this.req);
  },
  get client() {
    return this.addresses.client(this.req);
  },
});
