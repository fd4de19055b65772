/** Handles a request: finds its mapping, runs the stages in order, and applies the mapping's response headers. */
import type { IncomingMessage } from 'node:http';
import type { Context, Middleware } from 'koa';
import {
  type Addresses,
  type AddressLists,
  beforeHead,
  clientSubjectHeader,
  clientSubjectOf,
  connectionScheme,
  createAddressFault,
  discardPreparedResponse,
  pathOf,
  problem,
  rejectAddress,
  requestContext,
  sanitisePath,
  searchOf,
} from '#http';
import type { Identity } from '#proxy';
import type { Match, RequestAttributes, Table } from '#routing';
import type { Disguises } from './disguises.ts';
import type { Route } from './route.ts';
import type { RoutedRequest } from './routed-request.ts';
import { runInOrder } from './stage-result.ts';
import { rejectEndedVersion, type Stage } from './stages.ts';
import type { Traffic } from './traffic/traffic.ts';
import type { VersionLifecycle, VersionOf } from './version-lifecycle.ts';

export interface HandleParts {
  readonly table: Table<Route>;
  /** Undefined when the settings let every address come. */
  readonly faultOfClient: FaultOfClient | undefined;
  readonly preflightRoute: PreflightRoute;
  readonly stripHeaders: StripHeaders;
  readonly stages: readonly Stage[];
  readonly traffic: Traffic;
  /** Undefined without Version records. */
  readonly versionOf: VersionOf | undefined;
}

/** Returns why the settings refuse the client of a request. Undefined if it may come. */
export type FaultOfClient = (ctx: Context) => string | undefined;

/** `records`: the lists of Ambassador's Modules. */
export function createFaultOfClient(
  settings: AddressLists,
  records: readonly AddressLists[],
): FaultOfClient | undefined {
  const all = [
    createAddressFault(settings, { allow: 'ALLOW_ADDRESSES', deny: 'DENY_ADDRESSES' }),
    ...records.map((lists) =>
      createAddressFault(lists, { allow: 'ip_allow of a Module', deny: 'ip_deny of a Module' }),
    ),
  ].filter((one) => one !== undefined);
  if (all.length === 0) return undefined;
  return function faultOfClient(ctx) {
    const client = requestContext(ctx).addresses.knownClient(ctx.req);
    for (const faultOf of all) {
      const fault = faultOf(client);
      if (fault !== undefined) return fault;
    }
    return undefined;
  };
}

export function createHandle(parts: HandleParts): Middleware {
  const { table, faultOfClient, preflightRoute, stripHeaders, stages, traffic, versionOf } = parts;

  const runStages = (routed: RoutedRequest) => runInOrder(stages, routed);

  /** Applies the mapping's response headers, also to errors, and then compresses the response. */
  async function withChangedResponse(routed: RoutedRequest): Promise<void> {
    const { request, route } = routed;
    const { ctx } = request;
    route.compression?.prepare(ctx);
    try {
      await runStages(routed);
    } finally {
      if (!ctx.headerSent) route.editResponse?.(ctx);
    }
    const compressing = route.compression?.compress(ctx);
    // As for stages, each await would delay the response.
    if (compressing !== undefined) await compressing;
  }

  function respond(ctx: Context, attributes: RequestAttributes, match: Match<Route>, version?: VersionLifecycle) {
    const { route, shadow } = match;
    const context = requestContext(ctx);
    context.mapping = route.name;
    context.route = route.prefix;
    context.service = route.service;
    if (match.newClient !== undefined) setClient(ctx, route, match.newClient);
    const routed = { request: traffic.begin(ctx, route.traffic), attributes, route, shadow, version };
    const run = route.changesResponse ? withChangedResponse : runStages;
    return route.cors === undefined ? run(routed) : route.cors.around(ctx, () => run(routed));
  }

  /** Rejects clients that no mapping may serve. */
  function rejectClient(ctx: Context): void {
    const fault = faultOfClient?.(ctx);
    if (fault === undefined) return;
    traffic.begin(ctx, traffic.unmatched).stage = 'address';
    rejectAddress(fault);
  }

  function rejectUnmatched(ctx: Context, path: string, version: VersionLifecycle | undefined): never {
    traffic.begin(ctx, traffic.unmatched);
    rejectEndedVersion({ version });
    traffic.addUnmatched(ctx, path);
    throw problem('not-found');
  }

  return function gateway(ctx) {
    discardPreparedResponse(ctx);
    rejectClient(ctx);
    stripHeaders(ctx);
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

/** Sets the cookie that keeps the client on its route, on whatever response it gets. */
function setClient(ctx: Context, { mapping: { sticky } }: Route, client: string): void {
  if (sticky?.kind !== 'cookie') return;
  const { name, ttlMs } = sticky;
  const age = ttlMs === undefined ? '' : `; Max-Age=${Math.ceil(ttlMs / 1000)}`;
  const secure = requestContext(ctx).addresses.scheme(ctx.req) === 'https' ? '; Secure' : '';
  const cookie = `${name}=${client}; Path=/${age}; HttpOnly; SameSite=Lax${secure}`;
  beforeHead(ctx.res, (res) => res.appendHeader('Set-Cookie', cookie));
}

/**
 * Removes headers that only auth services and proxies may send, so that conditions do not see them, and sets the one that
 * names the subject of a verified client certificate. Throws a Problem for a request that marks one of them as specific to
 * its connection.
 */
export type StripHeaders = (ctx: Context) => void;

export function createStripHeaders(identity: Identity, disguises: Disguises): StripHeaders {
  return function stripHeaders(ctx) {
    const { nominated, addresses } = requestContext(ctx);
    identity.rejectNomination(nominated);
    const isFromTrustedProxy = addresses.trusts(ctx.req);
    identity.strip(ctx.req, isFromTrustedProxy);
    disguises.remove(ctx.req, isFromTrustedProxy);
    const subject = clientSubjectOf(ctx.req.socket);
    if (subject !== undefined) ctx.req.headers[clientSubjectHeader] = subject;
  };
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

/** Refuses an address here too: who may come does not depend on CORS. */
function answerPreflight(ctx: Context, { name, cors, addressFault }: Route): void {
  const context = requestContext(ctx);
  context.mapping = name;
  rejectAddress(addressFault?.(context.addresses.knownClient(ctx.req)));
  cors?.answerPreflight(ctx);
}

/** Overrides for a CORS preflight: the method and path of the request that it announces. */
interface PreflightOverrides {
  readonly method?: string | undefined;
  readonly path?: string | undefined;
}

/**
 * Collects the request attributes that routing and labels use. Some are lazy, because most mappings need none of them.
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

/** The prototype of the attributes, which has the getters for all of them. */
const lazyAttributes: Pick<RequestAttributes, 'host' | 'client' | 'listener'> & ThisType<Source> = Object.freeze({
  get host() {
    return this.addresses.host(this.req);
  },
  get client() {
    return this.addresses.client(this.req);
  },
  get listener() {
    return connectionScheme(this.req);
  },
});
