/** Creates a gateway from records and the server's own routes; acquires the clusters and counts that it shares, and releases them. */
import type { Context, Middleware } from 'koa';
import {
  finish,
  finishInTurns,
  forEachInParts,
  type Mapping,
  mapInParts,
  mappingDefaults,
  type RateLimitService,
  type Version,
  type Work,
} from '#config';
import { createOutageRegistry, type Logger, type OutageRegistry, silentLogger } from '#http';
import { type Cluster, type ClusterRegistry, type ClusterSpec, createClusters } from '#proxy';
import type { Limiter } from '#ratelimit';
import { createTable, type Table } from '#routing';
import { type AuthCounts, type AuthStage, type ConfiguredAuthService, createAuthStages } from './auth/stage.ts';
import { type CheckReading, createCheckReading } from './check-reading.ts';
import { type CheckReferences, createCheckReferences } from './check-references.ts';
import { createHandle, createPreflightRoute, type PreflightRoute } from './handle.ts';
import { createIdentity, type Identity } from './identity.ts';
import { createLimitStage, type LimitCounts } from './limits/stage.ts';
import { boundAuth, boundLimiter } from './own-parts.ts';
import { createInternalRoute, createRoute, type InternalRoute, type Route } from './route.ts';
import { describeTarget, type Resolve, resolveLimiter, type Target } from './target.ts';
import { createTraffic, type Traffic } from './traffic/traffic.ts';
import { clusterSpec, type Handler, type Transport } from './transport.ts';
import { createVersionLifecycles, type VersionOf } from './version-lifecycle.ts';

export interface GatewayOptions {
  readonly mappings: readonly Mapping[];
  /** Without auth services every mapping is open; without a default one, internal routes that need it are not served. @default [] */
  readonly authServices?: readonly ConfiguredAuthService[];
  readonly rateLimitService?: RateLimitService | undefined;
  /** Required with `rateLimitService`: the limiter in this process or across gRPC. */
  readonly limiter?: Limiter | undefined;
  readonly resolve: Resolve;
  /** The isolated app of each module in this process. */
  readonly services: Readonly<Record<string, Handler>>;
  readonly internalRoutes?: readonly InternalRoute[];
  /** Versions of the API that are deprecated or have an end. @default [] */
  readonly versions?: readonly Version[];
  /** Milliseconds since the epoch. @default Date.now */
  readonly clock?: () => number;
  /** Refuses a path that a service may read as one with other authentication. @default false */
  readonly strictPaths?: boolean;
  /** Users of auth services who may see the internal routes for administrators. @default [] */
  readonly adminUsers?: readonly string[] | undefined;
  /** Lower-case names of headers that no client may send, besides those of the auth services. @default [] */
  readonly identityHeaders?: readonly string[];
  /** Until an upstream's response headers, in milliseconds, for mappings that do not set it. @default 60_000 */
  readonly timeoutMs?: number;
  /** @default 3000 */
  readonly connectTimeoutMs?: number;
  /** The longest pause in a body, in milliseconds; 0: no limit. @default 60_000 */
  readonly idleTimeoutMs?: number;
  /** Of a body to a service across HTTP, where its mapping has no bound. @default no limit */
  readonly bodyBytesMax?: number | undefined;
  /** Shared with earlier and later gateways; the caller closes it. @default one that this gateway closes */
  readonly clusters?: ClusterRegistry | undefined;
  /** Counted up, across the gateways that share it. @default new counts */
  readonly counts?: GatewayCounts | undefined;
  /** Shared with earlier and later gateways. @default a new one */
  readonly traffic?: Traffic | undefined;
  /** Shared with earlier and later gateways. @default a new one */
  readonly outages?: OutageRegistry | undefined;
  readonly logger?: Logger;
}

/** The decisions of auth and rate-limit services since the start. */
export interface GatewayCounts {
  readonly auth: AuthCounts;
  readonly ratelimit: LimitCounts;
  readonly lastUnanswered: LastUnanswered;
}

/** When each service last gave no answer, in milliseconds since the epoch. */
export interface LastUnanswered {
  auth: number | undefined;
  ratelimit: number | undefined;
}

export function createGatewayCounts(): GatewayCounts {
  return {
    auth: { allowed: 0, denied: 0, error: 0 },
    ratelimit: { ok: 0, over: 0, error: 0 },
    lastUnanswered: { auth: undefined, ratelimit: undefined },
  };
}

/** The state of the gateway, for the diagnostics. Reading it changes nothing. */
export interface GatewaySnapshot {
  /** In the order in which they are tried. */
  readonly routes: readonly RouteSnapshot[];
  readonly versions: readonly Version[];
  /** The services that records name, and where each reference leads. */
  readonly services: readonly { readonly role: string; readonly service: string; readonly target: () => string }[];
  readonly auth: Readonly<AuthCounts> | undefined;
  readonly ratelimit: Readonly<LimitCounts> | undefined;
  readonly lastUnanswered: Readonly<LastUnanswered>;
}

export type RouteSnapshot = Pick<Route, RouteField> & {
  readonly auth: Pick<AuthStage, 'record' | 'authenticate'> | undefined;
  readonly transport: Pick<Transport, 'describe' | 'timeouts'> & {
    readonly cluster: Pick<Cluster, 'snapshot'> | undefined;
  };
};
type RouteField =
  | 'name'
  | 'prefix'
  | 'precedence'
  | 'internal'
  | 'isBlock'
  | 'mapping'
  | 'source'
  | 'conditions'
  | 'labels';

/** The parts that requests run through. Read-only, for explanations. */
export interface GatewayParts {
  readonly table: Table<Route>;
  readonly preflightRoute: PreflightRoute;
  readonly identity: Identity;
  /** Lower-case names of headers that no client may send. */
  readonly identityHeaders: readonly string[];
  /** Undefined without Version records. */
  readonly versionOf: VersionOf | undefined;
  /** Undefined unless paths are strict. */
  readonly checkReading: CheckReading | undefined;
  readonly checkReferences: CheckReferences;
  readonly authServices: readonly ConfiguredAuthService[];
  readonly rateLimitService: RateLimitService | undefined;
  readonly limiter: Limiter | undefined;
  readonly resolve: Resolve;
  readonly bodyBytesMax: number | undefined;
}

export interface Gateway {
  /** Answers every request: one without a route gets `not-found`. Requires `createSafePath` in front. */
  readonly middleware: Middleware;
  /** True for a preflight that a mapping's CORS rule answers; no middleware in front may answer it. */
  readonly answersPreflight: (ctx: Context) => boolean;
  readonly parts: GatewayParts;
  readonly snapshot: () => GatewaySnapshot;
  /** Releases what it shares with other gateways. Call it when no request is left on this one. */
  readonly close: () => Promise<void>;
}

/**
 * Throws TypeError when a part is missing without which requests would pass unchecked. The auth services and the limiter
 * that it gets have the `timeout_ms` of their records.
 */
export function createGateway(options: GatewayOptions): Gateway {
  const { authServices = [], rateLimitService, limiter } = options;
  const bound = {
    authServices: authServices.map(({ record, port }) => ({ record, port: port && boundAuth(port, record) })),
    limiter: limiter && rateLimitService && boundLimiter(limiter, rateLimitService),
  };
  return finish(createGatewayInParts({ ...options, ...bound }));
}

/** The same for a reload, which lets requests run in between, and with parts of frontdesk alone, which need no bounds. */
export function* createGatewayInParts(options: GatewayOptions): Work<Gateway> {
  const { authServices = [], rateLimitService, limiter, resolve, versions = [], clock = Date.now } = options;
  const { logger = silentLogger, counts = createGatewayCounts(), traffic = createTraffic() } = options;
  const { outages = createOutageRegistry({ logger }) } = options;
  const { clusters = createClusters({ logger }), bodyBytesMax, strictPaths = false } = options;
  const releases: (() => void)[] = [];
  const releaseAll = () => forEachInParts(releases.splice(0), (release) => release());
  // Releases on an error what was acquired before; `move` leaves it to `close`.
  using acquired = new DisposableStack();
  acquired.defer(() => finish(releaseAll()));
  const identityHeaders = [...new Set(strippedNames(options))];
  const identity = createIdentity([], identityHeaders);
  const shared = { ...options, clusters, counts, traffic, outages };
  const askLimiter = rateLimitService && createLimitStage(limitStageOptions(rateLimitService, shared, releases));
  const routes = yield* createRoutes(shared, identity, releases);
  const table = yield* createTable(routes);
  const preflightRoute = createPreflightRoute(table);
  const versionOf = versions.length === 0 ? undefined : createVersionLifecycles(versions, clock);
  const checkReading = strictPaths ? yield* createCheckReading(routes) : undefined;
  const checkReferences = createCheckReferences(table, checkReading);
  const checks = { versionOf, checkReading, checkReferences };
  acquired.move();
  let services: GatewaySnapshot['services'] | undefined;
  return Object.freeze({
    middleware: createHandle({ table, preflightRoute, identity, askLimiter, traffic, ...checks }),
    answersPreflight: (ctx: Context) => preflightRoute(ctx) !== undefined,
    parts: {
      ...{ table, preflightRoute, identity, identityHeaders, ...checks },
      ...{ authServices, rateLimitService, limiter, resolve, bodyBytesMax },
    },
    snapshot() {
      services ??= servicesOf(routes, options);
      const auth = authServices.length === 0 ? undefined : counts.auth;
      const ratelimit = rateLimitService && counts.ratelimit;
      return { routes: table.routes, versions, services, auth, ratelimit, lastUnanswered: counts.lastUnanswered };
    },
    async close() {
      await finishInTurns(releaseAll());
      if (options.clusters === undefined) await clusters.close();
    },
  });
}

/** The identity headers of all auth services are stripped on every route, open ones too. */
function strippedNames({ authServices = [], identityHeaders = [] }: GatewayOptions): string[] {
  return [...authServices.flatMap(({ record }) => record.allowedAuthorizationHeaders), ...identityHeaders];
}

/** What gateways share, with the defaults filled in. */
type Shared = Required<Pick<GatewayOptions, 'clusters' | 'counts' | 'traffic' | 'outages'>>;
type SharingOptions = GatewayOptions & { readonly [Name in keyof Shared]: NonNullable<Shared[Name]> };

/** Acquires the outage log, and adds how it is released. */
function limitStageOptions(
  record: RateLimitService,
  { limiter, clock = Date.now, counts: { ratelimit: counts, lastUnanswered }, outages }: SharingOptions,
  releases: (() => void)[],
) {
  if (limiter === undefined)
    throw new TypeError(`the rate-limit service "${record.service}" is named but no limiter was handed in`);
  const onUnanswered = () => {
    lastUnanswered.ratelimit = clock();
  };
  const { log: outage, release } = outages.acquire(
    `ratelimit ${record.service}`,
    'the rate-limit service answers again',
  );
  releases.push(release);
  return { record, limiter, counts, onUnanswered, outage };
}

/** Acquires clusters, outage logs and traffic counts, and adds how each is released. Throws TypeError for a service that is not there. */
function* createRoutes(options: SharingOptions, identity: Identity, releases: (() => void)[]): Work<Route[]> {
  const { mappings, services, authServices = [], internalRoutes = [], resolve, clusters, counts, traffic } = options;
  const { timeoutMs = 60_000, connectTimeoutMs = 3000, idleTimeoutMs = 60_000, bodyBytesMax } = options;
  const { logger = silentLogger, clock = Date.now } = options;

  function holdCluster(spec: ClusterSpec): Cluster {
    const { cluster, release } = clusters.acquire(spec);
    releases.push(release);
    return cluster;
  }

  const auth = createAuthStages(authServices, {
    resolve,
    holdCluster: (record, target) =>
      holdCluster(clusterSpec(record.authService, target, record.timeoutMs, mappingDefaults)),
    holdOutageLog({ authService }) {
      const { log, release } = options.outages.acquire(`auth ${authService}`, 'the auth service answers again');
      releases.push(release);
      return log;
    },
    counts: counts.auth,
    adminUsers: options.adminUsers ?? [],
    onUnanswered() {
      counts.lastUnanswered.auth = clock();
    },
  });
  const parts = {
    ...{ resolve, holdCluster, auth, identity, logger, timeoutMs, connectTimeoutMs, idleTimeoutMs, bodyBytesMax },
    appOf(name: string) {
      const app = services[name];
      if (app === undefined) throw new TypeError(`no service "${name}" in this process`);
      if (typeof app !== 'function') throw new TypeError(`the service "${name}" is no function that takes a context`);
      return app;
    },
    holdTraffic(name: string) {
      releases.push(() => traffic.release(name));
      return traffic.hold(name);
    },
    domain: options.rateLimitService?.domain,
  };
  const served = internalRoutes.filter(({ forAdmins }) => !forAdmins || auth.hasDefault);
  return [
    ...(yield* mapInParts(mappings, (mapping) => createRoute(mapping, parts))),
    ...(yield* mapInParts(served, (internal) => createInternalRoute(internal, parts))),
  ];
}

/** In the order of the records. */
function servicesOf(
  routes: readonly Route[],
  { authServices = [], rateLimitService, resolve }: GatewayOptions,
): GatewaySnapshot['services'] {
  const row = (role: string, service: string, target: Target) => ({
    role,
    service,
    target: () => describeTarget(target),
  });
  return [
    ...routes
      .filter(({ internal, mapping }) => internal !== true && mapping.redirect === undefined)
      .map(({ name, mapping: { service }, transport }) => ({
        role: `Mapping ${name}`,
        service,
        target: transport.describe,
      })),
    ...authServices.map(({ record: { name, authService } }) =>
      row(`AuthService ${name}`, authService, resolve(authService)),
    ),
    ...(rateLimitService === undefined ? [] : [rateLimitService]).map(({ name, service }) =>
      row(`RateLimitService ${name}`, service, resolveLimiter(resolve, service)),
    ),
  ];
}
