/** Creates a gateway from records and built-in routes, and manages the resources that it shares with other gateways. */
import type { Context, Middleware } from 'koa';
import type { AuthCheck, AuthRehearsal, TokenCheck } from '#auth';
import { callsService, gatewaySettings, type Mapping, mapInTurns, nextTurn, type Version } from '#config';
import { createOutageLog, equalPart, type Logger, type OutageLog, silentLogger } from '#foundation';
import { type Compression, compressedStreamsMaxDefault, createCompression, serviceFault } from '#http';
import {
  type ClusterRegistry,
  type ClusterSpec,
  createClusters,
  createIdentity,
  createLeases,
  type Leases,
} from '#proxy';
import type { Limiter } from '#ratelimit';
import { createTable, createTableInTurns, type Table } from '#routing';
import { type AuthCounts, type ConfiguredAuthService, createAuthStages } from './auth/stage.ts';
import { createPathChecks, createPathChecksInTurns, type PathChecks } from './check-paths.ts';
import { createDisguises } from './disguises.ts';
import { credentialPlaces } from './explain/conceal.ts';
import { type GatewayRecords, guardPorts, requireTokenCheck } from './guard-ports.ts';
import {
  attributesOf,
  createFaultOfClient,
  createHandle,
  createPreflightRoute,
  createStripHeaders,
  type FaultOfClient,
  type PreflightRoute,
  type StripHeaders,
} from './handle.ts';
import { namesRead, strippedNames } from './header-names.ts';
import { createLimitStage, type LimitCounts } from './limits/stage.ts';
import { createProtectionOf } from './protection.ts';
import { describeAuthTarget, describeTarget, type Resolve, resolveLimiter, type Target } from './resolve-service.ts';
import {
  createInternalRoute,
  createRoute,
  type InternalRoute,
  type Route,
  type RouteParts,
  type RouteSnapshot,
} from './route.ts';
import { createStages, type Stage } from './stages.ts';
import { createTraffic, type Traffic } from './traffic/traffic.ts';
import { authClusterSpec, createTlsOf, type Handler, type TransportParts } from './transport.ts';
import { createVersionLifecycles, type VersionOf } from './version-lifecycle.ts';

export interface GatewayOptions {
  /**
   * The `configuration` that `configurationFrom` or `loadConfiguration` returns. Without an AuthService, every mapping is
   * open. Without a default AuthService, internal routes for administrators are not served.
   */
  readonly configuration: GatewayRecords;
  /**
   * The check of each auth service that runs in this process, by the name of its AuthService record. The others are
   * called over HTTP. @default {}
   */
  readonly authChecks?: Readonly<Record<string, AuthCheck>>;
  /** What these auth services would decide about requests that are explained, by the same names. @default {} */
  readonly authRehearsals?: Readonly<Record<string, AuthRehearsal>>;
  /** What checks tokens, by the name of each AuthService record with `providers`, wherever it runs. @default {} */
  readonly tokenChecks?: Readonly<Record<string, TokenCheck>>;
  /** The limiter, in this process or over gRPC. Required with a RateLimitService record, and rejected without one. */
  readonly limiter?: Limiter | undefined;
  readonly resolve: Resolve;
  /** The isolated apps of the services in this process, by name. */
  readonly services: Readonly<Record<string, Handler>>;
  readonly internalRoutes?: readonly InternalRoute[];
  /** Milliseconds since the epoch. @default Date.now */
  readonly clock?: () => number;
  /** Rejects a path that a service could interpret as one with different protection. @default true */
  readonly strictPaths?: boolean;
  /** Clients that may come and clients that may not, by address or network, as in the settings. @default all may come */
  readonly allowAddresses?: readonly string[];
  readonly denyAddresses?: readonly string[];
  /** Names of users who may access the internal routes for administrators. @default [] */
  readonly adminUsers?: readonly string[] | undefined;
  /** Lower-case names of headers that clients must not send, in addition to those of the auth services. @default [] */
  readonly identityHeaders?: readonly string[];
  /** Whether trusted proxies are gateways, which may send these headers. @default false */
  readonly believesProxies?: boolean;
  /** Time-out for an upstream's response headers, in milliseconds, for mappings that do not set it. @default 60_000 */
  readonly timeoutMs?: number;
  /** Time-out for connecting to an upstream, in milliseconds, for mappings that do not set it. @default 3000 */
  readonly connectTimeoutMs?: number;
  /** The longest pause in a body, in milliseconds; 0 means no limit. @default 60_000 */
  readonly idleTimeoutMs?: number;
  /** The largest request body for a service over HTTP, for mappings that do not set it. @default no limit */
  readonly bodyBytesMax?: number | undefined;
  /**
   * The largest status line and headers of a response from a service over HTTP, in bytes. Has no effect with `state`.
   * @default Node's limit, usually 16 KiB
   */
  readonly responseHeaderBytesMax?: number | undefined;
  /** Shared with earlier and later gateways. @default new state, whose clusters this gateway closes */
  readonly state?: GatewayState | undefined;
  /** Whether the responses of a service of this process are compressed if its mapping does not say. @default none */
  readonly compressesService?: (name: string) => boolean;
  readonly logger?: Logger;
}

/** What successive gateways share, so that it survives a reload. Its creator closes the clusters. */
export interface GatewayState {
  readonly clusters: ClusterRegistry;
  readonly counts: GatewayCounts;
  readonly traffic: Traffic;
  /** By upstream, so that an outage continues across a reload. */
  readonly outages: Leases<OutageLog>;
  readonly compression: Compression;
  /** The number of threads with such a state. Each has an equal part of the memory for bodies. */
  readonly threads: number;
}

/** `clock` returns milliseconds since the epoch. */
export function createGatewayState(clusters: ClusterRegistry, clock?: () => number, threads = 1): GatewayState {
  return {
    clusters,
    counts: createGatewayCounts(),
    traffic: createTraffic({ clock }),
    outages: createLeases(),
    compression: createCompression({ streamsMax: equalPart(compressedStreamsMaxDefault, threads) }),
    threads,
  };
}

/** Counts the decisions of the auth services and the rate-limit service since the start. */
export interface GatewayCounts {
  readonly auth: AuthCounts;
  readonly ratelimit: LimitCounts;
  /** When a service last failed to return a decision, in milliseconds since the epoch. */
  readonly lastUnanswered: { auth: number | undefined; ratelimit: number | undefined };
}

export function createGatewayCounts(): GatewayCounts {
  return {
    auth: { allowed: 0, denied: 0, error: 0 },
    ratelimit: { ok: 0, over: 0, error: 0 },
    lastUnanswered: { auth: undefined, ratelimit: undefined },
  };
}

/** The state of the gateway, for the diagnostics. */
export interface GatewaySnapshot {
  /** In the order in which they are tried. */
  readonly routes: readonly RouteSnapshot[];
  readonly versions: readonly Version[];
  /** The services that records refer to, with their resolved targets. */
  readonly services: readonly { readonly role: string; readonly service: string; readonly target: () => string }[];
  readonly auth: Readonly<AuthCounts> | undefined;
  readonly ratelimit: Readonly<LimitCounts> | undefined;
  /** The domain of the rate-limit service. */
  readonly domain: string | undefined;
  readonly lastUnanswered: Readonly<GatewayCounts['lastUnanswered']>;
}

/** The parts that process requests. Used by #explain to predict what the gateway would do. */
export interface GatewayParts {
  readonly table: Table<Route>;
  readonly faultOfClient: FaultOfClient | undefined;
  readonly preflightRoute: PreflightRoute;
  readonly stripHeaders: StripHeaders;
  /** Lower-case names of headers that clients must not send. */
  readonly identityHeaders: readonly string[];
  /** The headers and query parameters in which clients may send tokens and API keys. */
  readonly tokenHeaders: readonly string[];
  readonly tokenParams: readonly string[];
  /** Undefined without Version records. */
  readonly versionOf: VersionOf | undefined;
  readonly stages: readonly Stage[];
}

export interface Gateway {
  /** Handles every request: without a matching route it throws `not-found`. Requires `createSafePath` before it. */
  readonly middleware: Middleware;
  /**
   * True for a preflight that a mapping's CORS rule handles, or whose client the gateway refuses. Middleware before the
   * gateway must leave it alone.
   */
  readonly answersPreflight: (ctx: Context) => boolean;
  readonly parts: GatewayParts;
  readonly snapshot: () => GatewaySnapshot;
  /** Releases the shared resources. Call it when this gateway has no requests in flight. */
  readonly close: () => Promise<void>;
}

/**
 * Throws TypeError when a part is missing that the records require, or that no record uses, because requests would pass
 * unchecked. Applies the `timeout_ms` of their records to the auth services and the limiter.
 */
export function createGateway(options: GatewayOptions): Gateway {
  using draft = createDraft({ ...options, ...guardPorts(options) });
  const routes = [...draft.mappings.map(draft.routeOf), ...draft.internalRoutes()];
  const table = createTable(routes);
  return draft.complete(routes, table, createPathChecks(draft.checked(table)));
}

/**
 * Like `createGateway`, but requests can run in between: the routes of many mappings take long. Trusts the auth services
 * and the limiter: only frontdesk's own implementations may be passed.
 */
export async function createGatewayInTurns(options: GatewayOptions): Promise<Gateway> {
  using draft = createDraft(options);
  const routes = [...(await mapInTurns(draft.mappings, draft.routeOf)), ...draft.internalRoutes()];
  const table = await createTableInTurns(routes);
  await nextTurn();
  const checks = await createPathChecksInTurns(draft.checked(table));
  await nextTurn();
  return draft.complete(routes, table, checks);
}

/** A gateway whose routes are still missing. Releases everything that it has acquired, unless it is completed. */
function createDraft(options: GatewayOptions) {
  const settings = withDefaults(options);
  const { mappings, authServices, rateLimitService, versions, clock, state } = settings;
  const { counts, traffic } = state;
  const releases: (() => void)[] = [];
  const releaseAll = () => {
    for (const release of releases.splice(0)) release();
  };
  const acquire = acquireFrom(settings, releases);
  const identityHeaders = [...new Set(strippedNames(settings))];
  const identity = createIdentity(identityHeaders, namesRead(settings), options.believesProxies);
  const disguises = createDisguises(mappings);
  const askLimiter = createAskLimiter(settings, acquire);
  const faultOfClient = createFaultOfClient(settings, options.configuration.addresses);
  let completed: Table<Route> | undefined;
  const mappingOf = (ctx: Context, method: string) => completed?.match(attributesOf(ctx, { method }))?.route.mapping;
  const { routeOf, internalRoutes } = createRoutes(settings, acquire, { identity, mappingOf });
  const versionOf = versions.length === 0 ? undefined : createVersionLifecycles(versions, clock);

  function complete(routes: readonly Route[], table: Table<Route>, checks: PathChecks): Gateway {
    const preflightRoute = createPreflightRoute(table);
    const stages = createStages({ ...settings, ...checks, disguises, askLimiter });
    const stripHeaders = createStripHeaders(identity, disguises);
    const shared = { table, faultOfClient, preflightRoute, stripHeaders, versionOf, stages };
    let services: GatewaySnapshot['services'] | undefined;
    completed = table;
    return Object.freeze({
      middleware: createHandle({ ...shared, traffic }),
      answersPreflight: (ctx: Context) =>
        preflightRoute(ctx) !== undefined || (ctx.method === 'OPTIONS' && faultOfClient?.(ctx) !== undefined),
      parts: {
        ...shared,
        identityHeaders,
        ...credentialPlaces(authServices),
      },
      snapshot() {
        services ??= servicesOf(routes, settings);
        const auth = authServices.length === 0 ? undefined : counts.auth;
        const ratelimit = rateLimitService && counts.ratelimit;
        return {
          routes: shared.table.routes,
          versions,
          services,
          auth,
          ratelimit,
          domain: rateLimitService?.domain,
          lastUnanswered: counts.lastUnanswered,
        };
      },
      async close() {
        releaseAll();
        if (options.state === undefined) await state.clusters.close();
      },
    });
  }

  return {
    mappings,
    routeOf,
    internalRoutes,
    checked: (table: Table<Route>) => ({ table, versions, versionOf, strictPaths: settings.strictPaths }),
    complete,
    [Symbol.dispose]() {
      if (completed === undefined) releaseAll();
    },
  };
}

type Settings = ReturnType<typeof withDefaults>;

function withDefaults(options: GatewayOptions) {
  const {
    configuration,
    authChecks = {},
    authRehearsals = {},
    tokenChecks = {},
    identityHeaders = [],
    adminUsers = [],
    internalRoutes = [],
  } = options;
  const { mappings, versions, rateLimitServices, upstreamFiles = [] } = configuration;
  const [rateLimitService] = rateLimitServices;
  const authServices: readonly ConfiguredAuthService[] = configuration.authServices.map((record) => ({
    record,
    port: Object.hasOwn(authChecks, record.name) ? authChecks[record.name] : undefined,
    rehearse: Object.hasOwn(authRehearsals, record.name) ? authRehearsals[record.name] : undefined,
    tokens: record.providers.length === 0 ? undefined : requireTokenCheck(record, tokenChecks),
  }));
  const { upstreamTimeoutMs, upstreamConnectTimeoutMs, upstreamIdleTimeoutMs } = gatewaySettings;
  const { timeoutMs = upstreamTimeoutMs.default, connectTimeoutMs = upstreamConnectTimeoutMs.default } = options;
  const { idleTimeoutMs = upstreamIdleTimeoutMs.default, bodyBytesMax } = options;
  const { strictPaths = gatewaySettings.strictPaths.default, clock = Date.now, logger = silentLogger } = options;
  const { responseHeaderBytesMax: headerBytesMax, allowAddresses = [], denyAddresses = [] } = options;
  const { state = createGatewayState(createClusters({ logger, headerBytesMax })) } = options;
  return {
    ...options,
    mappings,
    versions,
    authServices,
    rateLimitService,
    tlsOf: createTlsOf(upstreamFiles),
    internalRoutes,
    identityHeaders,
    allowAddresses,
    denyAddresses,
    adminUsers,
    timeoutMs,
    connectTimeoutMs,
    idleTimeoutMs,
    bodyBytesMax,
    strictPaths,
    clock,
    logger,
    state,
  };
}

/** Acquires what gateways share by name. This one releases it when it closes. */
type Acquire = ReturnType<typeof acquireFrom>;

function acquireFrom({ state: { clusters, traffic, outages }, logger }: Settings, releases: (() => void)[]) {
  function keep<Kept extends { readonly release: () => void }>(lease: Kept): Kept {
    releases.push(lease.release);
    return lease;
  }
  return {
    cluster: (spec: ClusterSpec) => keep(clusters.acquire(spec)).cluster,
    traffic: (name: string) => keep(traffic.acquire(name)).value,
    outageLog(kind: 'auth' | 'rate-limit', service: string) {
      const name = `the ${kind} service ${service}`;
      const create = () => createOutageLog({ logger, ended: `${name} is responding again` });
      return keep(outages.acquire(name, create)).value;
    },
  };
}

/** Undefined when there is no rate-limit service. */
function createAskLimiter({ rateLimitService: record, limiter, clock, state: { counts } }: Settings, acquire: Acquire) {
  if (record === undefined) return undefined;
  if (limiter === undefined)
    throw new TypeError(
      `the rate-limit service "${record.service}" has a record, but no \`limiter\` was passed: use createLimiter or connectRateLimit`,
    );
  return createLimitStage({
    record,
    limiter,
    counts: counts.ratelimit,
    outage: acquire.outageLog('rate-limit', record.service),
    onError() {
      counts.lastUnanswered.ratelimit = clock();
    },
  });
}

function createAuth(settings: Settings, acquire: Acquire) {
  const { authServices, resolve, adminUsers, clock } = settings;
  const { counts } = settings.state;
  return createAuthStages(authServices, {
    resolve,
    acquireCluster: (record, target) => acquire.cluster(authClusterSpec(record, target, settings)),
    acquireOutageLog: ({ authService }) => acquire.outageLog('auth', authService),
    counts: counts.auth,
    identityHeaders: strippedNames(settings),
    adminUsers,
    threads: settings.state.threads,
    onError() {
      counts.lastUnanswered.auth = clock();
    },
  });
}

/** `routeOf` throws TypeError for a service that does not exist. */
function createRoutes(
  settings: Settings,
  acquire: Acquire,
  { identity, mappingOf }: Pick<TransportParts, 'identity' | 'mappingOf'>,
) {
  const { services = {}, internalRoutes, resolve, rateLimitService, logger } = settings;
  const { timeoutMs, connectTimeoutMs, idleTimeoutMs, bodyBytesMax } = settings;
  const auth = createAuth(settings, acquire);
  const parts: RouteParts = {
    resolve,
    auth,
    identity,
    mappingOf,
    logger,
    timeoutMs,
    connectTimeoutMs,
    idleTimeoutMs,
    bodyBytesMax,
    acquireCluster: acquire.cluster,
    tlsOf: settings.tlsOf,
    acquireTraffic: acquire.traffic,
    protectionOf: createProtectionOf(),
    compression: settings.state.compression,
    compressesService: settings.compressesService ?? (() => false),
    domain: rateLimitService?.domain,
    appOf(name) {
      const app = services[name];
      if (app === undefined) throw new TypeError(`there is no service "${name}" in this process`);
      if (typeof app !== 'function' || serviceFault(app) !== undefined)
        throw new TypeError(`the service "${name}" is not a function that accepts a Koa context`);
      return app;
    },
  };
  const served = internalRoutes.filter(({ forAdmins }) => !forAdmins || auth.hasDefault);
  return {
    routeOf: (mapping: Mapping) => createRoute(mapping, parts),
    internalRoutes: () => served.map((internal) => createInternalRoute(internal, parts)),
  };
}

/** Lists the services in the order of the records. */
function servicesOf(
  routes: readonly Route[],
  { authServices, rateLimitService, resolve }: Settings,
): GatewaySnapshot['services'] {
  const mapped = routes.filter(({ internal, mapping }) => internal !== true && callsService(mapping));
  const row = (role: string, service: string, target: () => string) => ({ role, service, target });
  const describe = (target: Target) => () => describeTarget(target);
  return [
    ...mapped.map(({ name, mapping, transport }) => row(`Mapping ${name}`, mapping.service, transport.describe)),
    ...authServices.map(({ record }) => {
      const target = resolve(record.authService);
      return row(`AuthService ${record.name}`, record.authService, () => describeAuthTarget(target, record));
    }),
    ...(rateLimitService === undefined ? [] : [rateLimitService]).map(({ name, service }) =>
      row(`RateLimitService ${name}`, service, describe(resolveLimiter(resolve, service))),
    ),
  ];
}
