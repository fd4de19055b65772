/** Says where a request would go: to its service, in which form, and a copy to the shadow, or a redirect. */
import type { Context } from 'koa';
import { callsService, type HeaderRules, type Mapping, withoutSecrets } from '#config';
import { createRetryRules } from '#proxy';
import type { Route } from '../route.ts';
import type { ExplainedRequest } from '../routed-request.ts';
import { usesHttp2 } from '../transport.ts';
import { type ClientHeaders, type Conceal, type HeaderPart, type Named, partsOf } from './conceal.ts';

/** One of the two. */
export interface ForwardParts {
  readonly target?: TargetPart;
  readonly redirect?: RedirectPart;
}

export interface RedirectPart {
  readonly status: number;
  readonly location: string;
}

export interface ShadowPart {
  /** The URL of the copy, or why there is no address for it: `no address: no ready endpoint`. */
  readonly url: string;
}

export interface TargetPart {
  readonly kind: 'local' | 'remote';
  readonly service: string;
  /** The origins of the service. Empty for a service in this process. */
  readonly addresses: readonly string[];
  /** Why the client gets 503: `no address: no ready endpoint`. Undefined if the service has an address, or needs none. */
  readonly no_address: string | undefined;
  readonly method: string;
  /** Undefined if the mapping is not for gRPC, or the service does not get the path of a call. */
  readonly grpc: { readonly service: string; readonly method: string } | undefined;
  /** The path and query that the service receives. */
  readonly path: string;
  /** All headers that the gateway sends, in order. */
  readonly headers: readonly (HeaderPart & {
    /** `client`: forwarded unchanged. `gateway`: added or replaced. */
    readonly by: 'client' | 'gateway';
  })[];
  /** The names of the client's headers that do not reach the service. */
  readonly headers_removed: readonly string[];
  readonly response_headers: { readonly add: readonly HeaderPart[]; readonly remove: readonly string[] };
  /** Whether the response is compressed, if the client and the response allow it. */
  readonly compressed: boolean;
  /** Undefined for a service in this process. */
  readonly across: UpstreamPart | undefined;
}

/** Settings for a service over HTTP. */
export interface UpstreamPart {
  readonly protocol: 'HTTP/1.1' | 'HTTP/2';
  readonly timeout_ms: EffectivePart;
  /** Whether this bounds the whole call, and not only the time until the response headers. */
  readonly bounds_whole_call: boolean;
  readonly connect_timeout_ms: EffectivePart;
  readonly idle_timeout_ms: EffectivePart;
  /** Undefined when there is no limit. */
  readonly body_bytes_max: number | undefined;
  readonly load_balancer: string;
  readonly retries: {
    readonly on: readonly string[];
    readonly most: number;
    readonly per_try_timeout_ms: number | undefined;
    /** False when a request with this method is not retried once the service may have received it. */
    readonly applies: boolean;
  };
  readonly circuit_breakers: {
    readonly max_connections: number;
    readonly max_pending_requests: number;
    readonly max_requests: number;
    readonly max_retries: number;
    readonly max_upgrades: number;
  };
  readonly health_check: string | undefined;
  readonly upgrades_allowed: readonly string[];
}

/** A time in milliseconds, and its source. 0 means no limit. */
export interface EffectivePart {
  readonly value: number;
  readonly from: 'mapping' | 'setting';
}

/** The returned function throws a Problem for a request that cannot be forwarded. */
export function createExplainForward({ bodyBytesMax }: { readonly bodyBytesMax: number | undefined }) {
  return function explainForward(asked: ExplainedRequest): ForwardParts {
    const { request, route } = asked;
    const { location } = route.transport;
    if (location === undefined) return { target: targetPart(asked, bodyBytesMax) };
    return { redirect: { status: route.mapping.redirect?.status ?? 301, location: location(request.ctx) } };
  };
}

/** No copy is sent when the path cannot be rewritten, nor of a request that calls no service. */
export function explainShadow({ request, route, shadow }: ExplainedRequest) {
  return { shadow: shadow && callsService(route.mapping) ? copyPart(request.ctx, shadow) : undefined };
}

function copyPart(ctx: Context, { transport }: Route): ShadowPart | undefined {
  try {
    const [origin] = transport.origins?.() ?? [];
    return { url: origin === undefined ? transport.describe() : origin + transport.preview(ctx).path };
  } catch {
    return undefined;
  }
}

function targetPart(
  { request, attributes, route, client }: ExplainedRequest,
  bodyBytesMax: number | undefined,
): TargetPart {
  const { mapping, transport } = route;
  const { method } = attributes;
  const { timeouts, origins } = transport;
  const { path, headers } = transport.preview(request.ctx);
  const addresses = origins?.() ?? [];
  return {
    kind: origins === undefined ? 'local' : 'remote',
    service: mapping.service,
    addresses,
    no_address: origins !== undefined && addresses.length === 0 ? transport.describe() : undefined,
    method,
    grpc: mapping.grpc ? grpcPart(path) : undefined,
    path,
    ...headerParts(headers, client, mapping.requestHeaders.add),
    response_headers: responseHeaders(mapping.responseHeaders, client.conceal),
    compressed: route.compression !== undefined,
    across: timeouts && upstreamPart(mapping, timeouts, method, bodyBytesMax),
  };
}

/** Splits the path of a call: `/package.Service/Method`. */
function grpcPart(path: string): TargetPart['grpc'] {
  const [, service, method] = /^\/([^/?]+)\/([^/?]+)$/.exec(path) ?? [];
  return service === undefined || method === undefined ? undefined : { service, method };
}

function headerParts(sent: readonly string[], { pairs, conceal }: ClientHeaders, set: readonly Named[]) {
  const fromClient = new Set(linesOf(pairs));
  const lines = linesOf(sent);
  const forwardedNames = new Set(namesOf(sent));
  return {
    headers: conceal(sent, set).map((header, index) => ({
      ...header,
      by: fromClient.has(lines[index] ?? '') ? ('client' as const) : ('gateway' as const),
    })),
    headers_removed: [...new Set(namesOf(pairs))].filter((name) => !forwardedNames.has(name)),
  };
}

function linesOf(pairs: readonly string[]): readonly string[] {
  return partsOf(pairs).map(({ name, value }) => `${name}: ${value}`);
}

function namesOf(pairs: readonly string[]): readonly string[] {
  return partsOf(pairs).map(({ name }) => name);
}

function responseHeaders({ add, remove }: HeaderRules, conceal: Conceal): TargetPart['response_headers'] {
  const pairs = add.flatMap(({ name, value }) => [name, value]);
  return { add: conceal(pairs, add), remove };
}

function upstreamPart(
  mapping: Route['mapping'],
  timeouts: NonNullable<Route['transport']['timeouts']>,
  method: string,
  bodyBytesMax: number | undefined,
): UpstreamPart {
  const { retryPolicy, circuitBreakers: breakers, healthCheck, loadBalancer, allowUpgrade } = mapping;
  const { retriesMax, perTryTimeoutMs, isRetriableMethod } = createRetryRules(retryPolicy);
  return {
    protocol: usesHttp2(mapping) ? 'HTTP/2' : 'HTTP/1.1',
    timeout_ms: effective(timeouts.timeoutMs, mapping.timeoutMs),
    bounds_whole_call: mapping.grpc && mapping.timeoutMs !== undefined,
    connect_timeout_ms: effective(timeouts.connectTimeoutMs, mapping.connectTimeoutMs),
    // A gRPC call may pause unless the mapping says otherwise.
    idle_timeout_ms: effective(
      mapping.grpc ? (mapping.idleTimeoutMs ?? 0) : timeouts.idleTimeoutMs,
      mapping.idleTimeoutMs,
    ),
    body_bytes_max: mapping.maxRequestBytes ?? bodyBytesMax,
    load_balancer: loadBalancer,
    retries: {
      on: retryPolicy?.retryOn ?? [],
      most: retriesMax,
      per_try_timeout_ms: perTryTimeoutMs,
      applies: retriesMax > 0 && (mapping.grpc || isRetriableMethod(method)),
    },
    circuit_breakers: {
      max_connections: breakers.maxConnections,
      max_pending_requests: breakers.maxPendingRequests,
      max_requests: breakers.maxRequests,
      max_retries: breakers.maxRetries,
      max_upgrades: breakers.maxUpgrades,
    },
    health_check: healthCheck && healthText(healthCheck),
    upgrades_allowed: allowUpgrade,
  };
}

function effective(value: number, own: number | undefined) {
  return { value, from: own === undefined ? ('setting' as const) : ('mapping' as const) };
}

/** Omits the query of the path, which may contain a token. */
function healthText({ grpc, path, intervalMs, timeoutMs }: NonNullable<Mapping['healthCheck']>): string {
  const asked = grpc === undefined ? path.replace(/\?.*/, '') : `grpc.health.v1 for ${grpc.service}`;
  return `${withoutSecrets(asked)} every ${intervalMs} ms, within ${timeoutMs} ms`;
}
