/** The edge: match, authenticate, limit, forward, once for each request and in this order. */
import type { Context, Middleware } from 'koa';
import type { Mapping, RateLimitService, Version } from '#config';
import { type Logger, silentLogger } from '#http';
import { type ClusterRegistry, createClusters } from '#proxy';
import type { Limiter } from '#ratelimit';
import { createTable, type Table } from '#routing';
import type { ConfiguredAuthService } from './auth-services.ts';
import type { AuthCounts } from './authenticate.ts';
import type { Forward } from './forward-local.ts';
import { createHoldings, type Holdings } from './holdings.ts';
import { createIdentity, type Identity } from './identity.ts';
import { createJourney } from './journey.ts';
import { createLimitation, type LimitCounts } from './limit.ts';
import { createPreflights, type Preflights } from './preflights.ts';
import type { InternalRoute, ReadyRoute, Route } from './route.ts';
import { createRoutes, usualBodyBytesMax } from './routes.ts';
import { describeTarget, type Target } from './target.ts';
import { createTraffic, type Traffic } from './traffic.ts';
import { createVersionLife, type VersionOf } from './version-life.ts';

export interface GatewayOptions {
  readonly mappings: readonly Mapping[];
  /** Without one every mapping is open. Without a default one internal routes that need it are not served. @default [] */
  readonly authServices?: readonly ConfiguredAuthService[];
  readonly rateLimitService?: RateLimitService | undefined;
  /** Required beside `rateLimitService`: the limiter in this process or across gRPC. */
  readonly limiter?: Limiter | undefined;
  /** Where a service reference leads. */
  readonly resolve: (service: string) => Target;
  /** The isolated app of each module in this process. */
  readonly services: Readonly<Record<string, Forward>>;
  readonly internalRoutes?: readonly InternalRoute[];
  /** Parts of the API that are on their way out. @default [] */
  readonly versions?: readonly Version[];
  /** Milliseconds since the epoch. @default Date.now */
  readonly clock?: () => number;
  /** Lower-case names that no client may send, beside those of the auth services. @default [] */
  readonly identityHeaders?: readonly string[];
  /** Until an upstream's response headers, in milliseconds, where the mapping does not say. @default 3000 */
  readonly timeoutMs?: number;
  /** @default 3000 */
  readonly connectTimeoutMs?: number;
  /** How long a body may rest, either way, in milliseconds; 0: without end. @default 300_000 */
  readonly idleTimeoutMs?: number;
  /** @default 1 MiB */
  readonly bodyBytesMax?: number;
  /** Shared with gateways before and after this one, and closed by whoever made it. @default its own */
  readonly clusters?: ClusterRegistry | undefined;
  /** Counted up, across the gateways that share it. @default its own */
  readonly counts?: GatewayCounts | undefined;
  /** Shared with gateways before and after this one. @default its own */
  readonly traffic?: Traffic | undefined;
  readonly logger?: Logger;
}

/** What auth and rate-limit services answered since the start. */
export interface GatewayCounts {
  readonly auth: AuthCounts;
  readonly ratelimit: LimitCounts;
  readonly silences: Silences;
}

/** When each last gave no answer, in milliseconds since the epoch. */
export interface Silences {
  auth: number | undefined;
  ratelimit: number | undefined;
}

export function createGatewayCounts(): GatewayCounts {
  const silences = { auth: undefined, ratelimit: undefined };
  return { auth: { allowed: 0, denied: 0, error: 0 }, ratelimit: { ok: 0, over: 0, error: 0 }, silences };
}

/** What the gateway believes, for the diagnostics page. Nothing in it changes when it is read. */
export interface GatewaySnapshot {
  /** In the order in which they are tried. */
  readonly routes: readonly Route[];
  /** Whom the records name, and where that leads. */
  readonly versions: readonly Version[];
  readonly services: readonly { readonly role: string; readonly service: string; readonly target: () => string }[];
  readonly auth: Readonly<AuthCounts> | undefined;
  readonly ratelimit: Readonly<LimitCounts> | undefined;
  readonly silences: Readonly<Silences>;
}

/** What requests run through. Read-only: explanations ask the same functions. */
export interface GatewayParts {
  readonly table: Table<ReadyRoute>;
  readonly preflights: Preflights;
  readonly identity: Identity;
  /** Lower-case names that no client may send. */
  readonly identityHeaders: readonly string[];
  /** Undefined without Version records. */
  readonly versionOf: VersionOf | undefined;
  readonly authServices: readonly ConfiguredAuthService[];
  readonly rateLimitService: RateLimitService | undefined;
  readonly limiter: Limiter | undefined;
  readonly resolve: (service: string) => Target;
  readonly bodyBytesMax: number;
}

export interface Gateway {
  /** Answers every request: what no route matches is `not-found`. It must stand behind `createSafePath`. */
  readonly middleware: Middleware;
  /** True for a preflight of a request whose mapping has a CORS rule: then nobody else may answer it. */
  readonly answersPreflight: (ctx: Context) => boolean;
  /** For explanations. */
  readonly parts: GatewayParts;
  readonly snapshot: () => GatewaySnapshot;
  /** Gives back the clusters. To be called when no request is left on it. */
  readonly close: () => Promise<void>;
}

/** Throws TypeError when a part is missing without which requests would pass that must not. */
export function createGateway(options: GatewayOptions): Gateway {
  const { authServices = [], rateLimitService, logger = silentLogger, counts = createGatewayCounts() } = options;
  const { resolve, bodyBytesMax = usualBodyBytesMax, versions = [], clock = Date.now } = options;
  const identityHeaders = [...new Set(strippedNames(options))];
  const identity = createIdentity([], identityHeaders);
  const limitation = rateLimitService && createLimitation(limitationOf(rateLimitService, options, counts));
  const { clusters = createClusters({ logger }), traffic = createTraffic() } = options;
  const holdings = createHoldings(clusters, traffic);
  const parts = { identity, holdings, counts, logger };
  const { made, table } = holding(holdings, () => {
    const made = createRoutes(options, parts);
    return { made, table: createTable(made) };
  });
  const preflights = createPreflights(table);
  const versionOf = versions.length === 0 ? undefined : createVersionLife(versions, clock);
  let named: GatewaySnapshot['services'] | undefined;
  return Object.freeze({
    middleware: createJourney({ table, preflights, identity, limitation, traffic, versionOf }),
    answersPreflight: (ctx: Context) => preflights.routeOf(ctx) !== undefined,
    parts: {
      ...{ table, preflights, identity, identityHeaders, versionOf },
      ...{ authServices, rateLimitService, limiter: options.limiter, resolve, bodyBytesMax },
    },
    snapshot() {
      named ??= servicesOf(made, options);
      const auth = authServices.length === 0 ? undefined : counts.auth;
      const ratelimit = limitation && counts.ratelimit;
      return { routes: table.routes, versions, services: named, auth, ratelimit, silences: counts.silences };
    },
    async close() {
      holdings.release();
      if (options.clusters === undefined) await clusters.close();
    },
  });
}

/** What one auth service may set is taken from clients on the routes of all of them, and on open ones. */
function strippedNames({ authServices = [], identityHeaders = [] }: GatewayOptions): string[] {
  return [...authServices.flatMap(({ record }) => record.allowedAuthorizationHeaders), ...identityHeaders];
}

function limitationOf(
  record: RateLimitService,
  { limiter, logger = silentLogger, clock = Date.now }: GatewayOptions,
  { ratelimit: counts, silences }: GatewayCounts,
) {
  if (limiter === undefined)
    throw new TypeError(`the rate-limit service "${record.service}" is named but no limiter was handed in`);
  const onSilence = () => {
    silences.ratelimit = clock();
  };
  return { record, limiter, counts, onSilence, logger };
}

/** What cannot be made whole gives back what it took. */
function holding<T>(holdings: Holdings, make: () => T): T {
  try {
    return make();
  } catch (error) {
    holdings.release();
    throw error;
  }
}

/** In the order of the records. A mapping's service leads where its route does; each other is resolved once. */
function servicesOf(
  routes: readonly Route[],
  { authServices = [], rateLimitService, resolve }: GatewayOptions,
): GatewaySnapshot['services'] {
  const row = (role: string, service: string) => {
    const target = resolve(service);
    return { role, service, target: () => describeTarget(target) };
  };
  return [
    ...routes
      .filter(({ internal, mapping }) => internal !== true && mapping.redirect === undefined)
      .map(({ name, mapping: { service }, target }) => ({ role: `Mapping ${name}`, service, target })),
    ...authServices.map(({ record }) => row(`AuthService ${record.name}`, record.authService)),
    ...(rateLimitService ? [row(`RateLimitService ${rateLimitService.name}`, rateLimitService.service)] : []),
  ];
}
