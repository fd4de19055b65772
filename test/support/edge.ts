/** A gateway on a free port with a test's own records, assembled as the server assembles it. */
import type { RequestListener } from 'node:http';
import Koa, { type Middleware } from 'koa';
import type { AuthCheck } from '#auth';
import {
  type AuthService,
  type Configuration,
  type GatewayRoute,
  type LabelGroup,
  type Mapping,
  mappingDefaults,
  type RateLimitService,
  type Redirect,
} from '#config';
import { createExplain, type Explain } from '#explain';
import { createOutageLogs, type Logger } from '#foundation';
import {
  createGateway,
  createGatewayState,
  type ExplainedRequest,
  type Gateway,
  type GatewayOptions,
  type Route,
  type Target,
  type Traffic,
} from '#gateway';
import {
  type AddressOptions,
  createAddresses,
  createHostCheck,
  createProblemResponses,
  createRequestContext,
  createSafePath,
} from '#http';
import { type ClusterRegistry, createClusters } from '#proxy';
import type { RequestAttributes } from '#routing';
import type { Served, TestServers } from './serve.ts';
import { startUpstream } from './upstream.ts';

/** Explains like a server that trusts no proxy and has no CORS_ORIGINS. */
export function explainOf(gateway: Gateway): Explain {
  return createExplain(gateway, {
    addresses: createAddresses(),
    allowedOrigin: () => '',
    checks: [createHostCheck(), createSafePath()],
  });
}

/** Throws the Problem with which the gateway rejects an ambiguous path of a request that matched this route. */
export function rejectAmbiguousPath({ parts }: Gateway, attributes: RequestAttributes, route: Route): void {
  const stage = parts.stages.find(({ name }) => name === 'rejectAmbiguousPath');
  stage?.explain({ attributes, route } as ExplainedRequest);
}

const source = { file: 'test.yaml', line: 1 };

export function mappingOf(fields: Partial<Mapping> = {}): Mapping {
  return {
    ...mappingDefaults,
    kind: 'Mapping',
    name: 'hotel',
    prefix: '/v1/hotels',
    service: 'hotel',
    source,
    ...fields,
  };
}

/** A redirect that keeps the URL of the request, except for the fields. */
export function redirectOf(fields: Partial<Redirect> = {}): Redirect {
  return { scheme: undefined, host: undefined, port: undefined, path: undefined, status: 301, ...fields };
}

/** What a Mapping has that comes from a route of the Gateway API. */
export function gatewayRouteOf(fields: Partial<GatewayRoute> = {}): GatewayRoute {
  const place = 'shop/orders 0001 0001';
  return {
    createdAtS: 1000,
    place,
    scheme: undefined,
    otherHosts: [],
    fullPath: undefined,
    policies: [],
    fault: undefined,
    ...fields,
  };
}

export function authRecordOf(fields: Partial<AuthService> = {}): AuthService {
  return {
    kind: 'AuthService',
    name: 'auth',
    authService: 'auth',
    tls: undefined,
    proto: 'http',
    protocolVersion: 'v3',
    http2: false,
    isDefault: true,
    providers: [],
    apiKeyHeader: undefined,
    pathPrefix: '',
    allowedRequestHeaders: [],
    allowedClientHeadersOnSuccess: [],
    allowStatus: '2xx',
    removeAuthorization: false,
    addAuthHeaders: [],
    includeBody: undefined,
    realm: undefined,
    cacheMs: 0,
    allowedAuthorizationHeaders: ['x-travel-user'],
    timeoutMs: 5000,
    statusOnError: 503,
    failureModeAllow: false,
    source,
    ...fields,
  };
}

export function limitRecordOf(fields: Partial<RateLimitService> = {}): RateLimitService {
  return {
    kind: 'RateLimitService',
    name: 'ratelimit',
    service: 'ratelimit',
    domain: 'gateway',
    timeoutMs: 5000,
    failureModeDeny: false,
    headers: 'ietf',
    allowedResponseHeaders: ['ratelimit-limit'],
    source,
    ...fields,
  };
}

/** The options of a gateway, with the records that a test is about one by one. */
export interface GatewayFields extends Partial<Omit<GatewayOptions, 'configuration' | 'authChecks'>> {
  /** @default `mappingOf()` alone */
  readonly mappings?: Configuration['mappings'];
  readonly versions?: Configuration['versions'];
  /** With `port`, the auth service runs in this process. */
  readonly authServices?: readonly { readonly record: AuthService; readonly port?: AuthCheck | undefined }[];
  readonly rateLimitService?: RateLimitService | undefined;
}

export function gatewayOf(fields: GatewayFields): Gateway {
  const { mappings = [mappingOf()], versions = [], authServices = [], rateLimitService, ...rest } = fields;
  return createGateway({
    configuration: {
      mappings,
      versions,
      authServices: authServices.map(({ record }) => record),
      rateLimitServices: rateLimitService ? [rateLimitService] : [],
      addresses: [],
    },
    authChecks: Object.fromEntries(authServices.flatMap(({ record, port }) => (port ? [[record.name, port]] : []))),
    services: {},
    resolve: (name) => ({ kind: 'local', name }),
    ...rest,
  });
}

/** One group with one label, which requests without the header do not get. */
export function labelled(header: string, name = header): readonly LabelGroup[] {
  return [{ name: 'group', labels: [{ kind: 'header', name, header, omitIfNotPresent: true, default: '' }] }];
}

export function remote({ origin }: Served, path = ''): Target {
  return { kind: 'remote', origins: () => [origin], path };
}

export interface LogLine {
  readonly level: 'info' | 'warn' | 'error';
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string | undefined;
}

export function recordingLogger(lines: LogLine[]): Logger {
  const at = (level: LogLine['level']) => (fields: object, message?: string) =>
    void lines.push({ level, fields: { ...fields }, message });
  return { info: at('info'), warn: at('warn'), error: at('error') };
}

export interface Edge extends Served {
  readonly gateway: Gateway;
  /** For servers that the test creates itself. */
  readonly listener: RequestListener;
  readonly log: readonly LogLine[];
  /** The errors that Koa reports for responses that are cut off. */
  readonly errors: readonly unknown[];
}

export interface EdgeOptions extends Omit<GatewayFields, 'resolve'> {
  readonly clusters?: ClusterRegistry;
  readonly traffic?: Traffic;
  /** The only auth service. With `authPort` it runs in this process. */
  readonly authService?: AuthService;
  readonly authPort?: AuthCheck;
  /** The only mapping, as fields that override `mappingOf()`. */
  readonly mapping?: Partial<Mapping>;
  /** The target of the service `hotel`, unless `targets` is given. */
  readonly upstream?: Served;
  /** Targets by service reference. */
  readonly targets?: Readonly<Record<string, Target>>;
  readonly addresses?: AddressOptions;
  /** The clock of the outage logs, in milliseconds. */
  readonly outageClock?: () => number;
  /** Middleware of a host app, before all of ours. */
  readonly host?: readonly Middleware[];
  /** Middleware between the rendering of problems and the gateway. */
  readonly inside?: readonly Middleware[];
}

export async function startEdge(servers: TestServers, options: EdgeOptions): Promise<Edge> {
  const {
    mapping,
    upstream,
    addresses,
    host = [],
    inside = [],
    authService,
    authPort,
    outageClock,
    ...others
  } = options;
  const log: LogLine[] = [];
  const errors: unknown[] = [];
  const logger = recordingLogger(log);
  const { targets = upstream ? { hotel: remote(upstream) } : {}, ...more } = others;
  const { clusters = createClusters({ logger }), traffic, ...rest } = more;
  servers.later(clusters.close);
  const gateway = gatewayOf({
    mappings: [mappingOf(mapping)],
    resolve: (service) => targets[service] ?? { kind: 'local', name: service },
    logger,
    authServices: authService ? [{ record: authService, port: authPort }] : [],
    state: { ...createGatewayState(clusters), ...(traffic && { traffic }) },
    ...rest,
  });
  servers.later(gateway.close);
  const app = new Koa().on('error', (error) => void errors.push(error));
  const ours = [
    createRequestContext(createAddresses(addresses)),
    createProblemResponses({
      logger,
      outages: createOutageLogs({ logger, ...(outageClock && { clock: outageClock }) }),
    }),
    createHostCheck(),
    createSafePath(),
  ];
  for (const one of [...host, ...ours, ...inside, gateway.middleware]) app.use(one);
  const listener = app.callback();
  return { ...(await servers.http(listener)), gateway, listener, log, errors };
}

/** Like `startEdge`, with a service, its shadow and an auth service over HTTP that record the requests they receive. */
export async function startRecordingEdge(servers: TestServers, options: EdgeOptions) {
  const { mapping, mappings = [mappingOf(mapping)], targets } = options;
  const upstream = await startUpstream(servers);
  const shadow = await startUpstream(servers);
  const auth = await startUpstream(servers);
  const edge = await startEdge(servers, {
    authService: authRecordOf(),
    ...options,
    mappings: [...mappings, mappingOf({ name: 'shadow', service: 'shadow', shadow: true })],
    targets: { hotel: remote(upstream), shadow: remote(shadow), auth: remote(auth), ...targets },
  });
  return { edge, upstream, shadow, auth };
}
