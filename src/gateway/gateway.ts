/** The edge: match, authenticate, limit, forward, once for each request and in this order. */
import type { Context, Middleware } from 'koa';
import type { AuthPort } from '#auth';
import type { AuthService, Mapping, RateLimitService } from '#config';
import { exchangeOf, type Logger, pathOf, problem, silentLogger } from '#http';
import type { Limiter } from '#ratelimit';
import { createAuthOverHttp } from './auth-over-http.ts';
import { type AskAuth, type AuthCounts, askInProcess, createAuthentication } from './authenticate.ts';
import type { Forward } from './forward-local.ts';
import { createIdentity, type Identity } from './identity.ts';
import { createLimitation, type LimitCounts } from './limit.ts';
import { type InternalRoute, type Route, routeOfInternal, routeOfMapping } from './route.ts';
import { createTable } from './table.ts';
import { describeTarget, type Target } from './target.ts';
import { createUpstreams, type Upstreams } from './upstreams.ts';

export interface GatewayOptions {
  readonly mappings: readonly Mapping[];
  /** Without one every mapping is open, and internal routes that need one are not served. */
  readonly authService?: AuthService | undefined;
  /** The auth service in this process; undefined: `authService` is asked across HTTP. */
  readonly authPort?: AuthPort | undefined;
  readonly rateLimitService?: RateLimitService | undefined;
  /** Required beside `rateLimitService`: the limiter in this process or across gRPC. */
  readonly limiter?: Limiter | undefined;
  /** Where a service reference leads. */
  readonly resolve: (service: string) => Target;
  /** The isolated app of each module in this process. */
  readonly services: Readonly<Record<string, Forward>>;
  readonly internalRoutes?: readonly InternalRoute[];
  /** Lower-case names that no client may send, beside those of the auth service. @default [] */
  readonly identityHeaders?: readonly string[];
  /** Until an upstream's response headers, in milliseconds, where the mapping does not say. @default 3000 */
  readonly timeoutMs?: number;
  /** @default 3000 */
  readonly connectTimeoutMs?: number;
  /** @default 1 MiB */
  readonly bodyBytesMax?: number;
  readonly logger?: Logger;
}

/** What the gateway believes, for the diagnostics page. Nothing in it changes when it is read. */
export interface GatewaySnapshot {
  /** In the order in which they are tried. */
  readonly routes: readonly Route[];
  /** Whom the records name, and where that leads. */
  readonly services: readonly { readonly role: string; readonly service: string; readonly target: () => string }[];
  readonly auth: Readonly<AuthCounts> | undefined;
  readonly ratelimit: Readonly<LimitCounts> | undefined;
}

export interface Gateway {
  /** Answers every request: what no route matches is `not-found`. It must stand behind `createSafePath`. */
  readonly middleware: Middleware;
  readonly snapshot: () => GatewaySnapshot;
  readonly close: () => Promise<void>;
}

export function createGateway(options: GatewayOptions): Gateway {
  const { authService, rateLimitService, limiter, logger = silentLogger } = options;
  const upstreams = createUpstreams();
  const identity = createIdentity(authService?.allowedAuthorizationHeaders ?? [], options.identityHeaders);
  const auth =
    authService &&
    createAuthentication({
      record: authService,
      ask: askerOf(authService, options, upstreams),
      identity,
      logger,
    });
  if (rateLimitService !== undefined && limiter === undefined)
    throw new TypeError(`the rate-limit service "${rateLimitService.service}" is named but no limiter was handed in`);
  const limitation = rateLimitService && limiter && createLimitation({ record: rateLimitService, limiter, logger });
  const table = createTable(routesOf(options, identity, upstreams));
  const services = servicesOf(options);

  function enter(ctx: Context): Route {
    refuseMethod(ctx.method);
    identity.strip(ctx.req.headers);
    const route = table.match(pathOf(ctx.url));
    if (route === undefined) throw problem('not-found');
    exchangeOf(ctx).mapping = route.name;
    return route;
  }

  const authenticated = (ctx: Context, route: Route) =>
    auth !== undefined && route.authenticated ? auth.authenticate(ctx) : true;

  const limited = (ctx: Context, route: Route) =>
    route.describe === undefined ? undefined : limitation?.limit(ctx, route.describe);

  /** Waits only for answers that are not there yet: those of this process are. */
  async function gateway(ctx: Context): Promise<void> {
    const route = enter(ctx);
    const allowed = authenticated(ctx, route);
    if (!(typeof allowed === 'boolean' ? allowed : await allowed)) return;
    const counted = limited(ctx, route);
    if (counted !== undefined) await counted;
    await route.forward(ctx);
  }

  return Object.freeze({
    middleware: gateway,
    snapshot: () => ({
      routes: table.routes,
      services,
      auth: auth?.counts,
      ratelimit: limitation?.counts,
    }),
    close: upstreams.close,
  });
}

/** A mapping goes before a route of the server's own with the same prefix: the operator has the last word. */
function routesOf(options: GatewayOptions, identity: Identity, { dispatcher }: Upstreams): Route[] {
  const { timeoutMs = 3000, connectTimeoutMs = 3000, bodyBytesMax = 1024 * 1024 } = options;
  const domain = options.rateLimitService?.domain;
  const local = (name: string) => {
    const service = options.services[name];
    if (service === undefined) throw new TypeError(`no service "${name}" in this process`);
    return service;
  };
  const parts = {
    resolve: options.resolve,
    local,
    dispatcher,
    identity,
    domain,
    authenticates: options.authService !== undefined,
    timeoutMs,
    connectTimeoutMs,
    bodyBytesMax,
  };
  const internal = (options.internalRoutes ?? []).filter(
    ({ authenticated }) => !authenticated || options.authService !== undefined,
  );
  return [...options.mappings.map((mapping) => routeOfMapping(mapping, parts)), ...internal.map(routeOfInternal)];
}

function servicesOf({ mappings, authService, rateLimitService, resolve }: GatewayOptions): GatewaySnapshot['services'] {
  const named = [
    ...mappings.map(({ name, service }) => ({ role: `Mapping ${name}`, service })),
    ...(authService ? [{ role: `AuthService ${authService.name}`, service: authService.authService }] : []),
    ...(rateLimitService
      ? [{ role: `RateLimitService ${rateLimitService.name}`, service: rateLimitService.service }]
      : []),
  ];
  return named.map(({ role, service }) => ({ role, service, target: () => describeTarget(resolve(service)) }));
}

function askerOf(record: AuthService, { authPort, resolve }: GatewayOptions, { dispatcher }: Upstreams): AskAuth {
  if (authPort !== undefined) return askInProcess(authPort);
  const target = resolve(record.authService);
  if (target.kind === 'local')
    throw new TypeError(`the auth service "${target.name}" is in this process but was not handed in`);
  return createAuthOverHttp({
    origin: target.origin,
    path: target.path,
    dispatcher: dispatcher(record.timeoutMs),
    timeoutMs: record.timeoutMs,
    allowedHeaders: record.allowedAuthorizationHeaders,
  });
}

/** TRACE would echo credentials back (RFC 9110 section 9.3.8), and CONNECT is for another kind of proxy. */
function refuseMethod(method: string): void {
  if (method === 'TRACE' || method === 'CONNECT') throw problem('method-not-implemented');
}
