/** Explains the stages after routing: authentication, rate limiting, and the request to the service. */
import type { Context } from 'koa';
import { type AuthService, type HeaderRules, type Label, type Mapping, withoutSecrets } from '#config';
import { formatSource } from '#foundation';
import {
  type ConfiguredAuthService,
  describeTarget,
  type GatewayParts,
  type Route,
  resolveLimiter,
  sourceCluster,
} from '#gateway';
import { decodeHeader, encodeHeader, maskAddress } from '#http';
import { createRetryRules } from '#proxy';
import type { Rule } from '#ratelimit';
import { genericKey } from '#ratelimit/limit';
import type { RequestAttributes } from '#routing';
import {
  type AuthPart,
  type Conceal,
  isCredential,
  type LimitPart,
  type Named,
  partsOf,
  type RateLimitPart,
  type TargetPart,
  type UpstreamPart,
} from './explanation.ts';

export interface ClientHeaders {
  /** Alternating names and values, as the client sent them. */
  readonly pairs: readonly string[];
  readonly conceal: Conceal;
}

/** A request with the route that handles it. */
export interface RoutedRequest {
  readonly ctx: Context;
  readonly attributes: RequestAttributes;
  readonly route: Route;
  readonly client: ClientHeaders;
}

/** Call it before `identifyAs`, so that the request to the auth service does not contain the user. */
export function explainAuth({ authServices, resolve }: GatewayParts, routed: RoutedRequest): AuthPart {
  const { ctx, attributes, route, client } = routed;
  if (route.auth === undefined) return { asked: false, reason: whyOpen(route, authServices) };
  const { record, preview } = route.auth;
  const isRemote = authServices.find((one) => one.record === record)?.port === undefined;
  const check = preview(ctx, attributes);
  return {
    asked: true,
    name: record.name,
    service: record.authService,
    target: describeTarget(resolve(record.authService)),
    source: formatSource(record.source),
    method: check.method,
    path: check.path,
    headers: client.conceal(check.headers, record.addAuthHeaders),
    body: bodyText(record),
    timeout_ms: isRemote ? record.timeoutMs : undefined,
    cache_ms: isRemote && record.includeBody === undefined ? record.cacheMs : 0,
    user_header: record.allowedAuthorizationHeaders[0],
    ...consequences(record, route),
  };
}

/**
 * Sets the identity headers like the auth service's response would. That of this process names the user in all of them,
 * and any other one in the first, as the access log reads it.
 */
export function identifyAs(ctx: Context, { authServices }: GatewayParts, { auth }: Route, user: string): void {
  const names = auth?.record.allowedAuthorizationHeaders ?? [];
  const isLocal = authServices.find(({ record }) => record === auth?.record)?.port !== undefined;
  for (const name of isLocal ? names : names.slice(0, 1)) ctx.req.headers[name] = encodeHeader(user);
}

function whyOpen({ mapping, transport, source }: Route, services: readonly ConfiguredAuthService[]): string {
  if (transport.location !== undefined) return 'a redirect needs no authentication';
  if (services.length === 0) return 'there is no AuthService record';
  if (source === undefined) return 'this built-in route is open';
  return mapping.bypassAuth ? 'the mapping has bypass_auth: true' : 'the mapping is open';
}

function bodyText({ includeBody }: AuthService): string {
  if (includeBody === undefined) return 'none';
  const { maxBytes, allowPartial } = includeBody;
  return `the first ${maxBytes} bytes; a longer body is ${allowPartial ? 'truncated' : 'rejected with 413'}`;
}

/** Built-in routes always fail closed. */
function consequences(record: AuthService, { source }: Route) {
  const { allowedAuthorizationHeaders, allowedClientHeadersOnSuccess, allowStatus } = record;
  const { failureModeAllow, statusOnError, removeAuthorization } = record;
  const names = allowedAuthorizationHeaders.join(', ');
  const set = names === '' ? '' : ` with ${names} from the response`;
  const clientNames = allowedClientHeadersOnSuccess.join(', ');
  const toClient = clientNames === '' ? '' : `, and the client gets ${clientNames}`;
  return {
    on_success: `after ${allowStatus}, the request continues${set}${toClient}${removeAuthorization ? ', without Authorization' : ''}`,
    on_refusal: 'any other status below 500 is sent to the client',
    on_error:
      failureModeAllow && source !== undefined
        ? 'the request continues without an identity'
        : `the client gets ${statusOnError}`,
  };
}

/** Lists the limits that would count the request. */
export function explainLimit(
  { rateLimitService: record, limiter, resolve }: GatewayParts,
  { attributes, route }: RoutedRequest,
): RateLimitPart {
  if (record === undefined) return { asked: false, reason: 'there is no RateLimitService record' };
  const { domain } = record;
  const { beforeAuth, afterAuth } = route.descriptors;
  if (beforeAuth === undefined && afterAuth === undefined)
    return { asked: false, reason: `the mapping has no labels for the domain ${domain}` };
  const first = beforeAuth?.(attributes) ?? [];
  const second = afterAuth?.(attributes) ?? [];
  const descriptors = [...first, ...second];
  if (descriptors.length === 0) return { asked: false, reason: 'no label applies to this request' };
  const shown = shownValues(attributes, route);
  const explain = limiter?.explain;
  // Explains two requests, as the gateway sends two, because a limit replaces only others in the same request.
  const limits = explain && [first, second].flatMap((some) => explain({ domain, descriptors: some }));
  return {
    asked: true,
    name: record.name,
    service: record.service,
    source: formatSource(record.source),
    domain,
    decided_by: limits === undefined ? describeTarget(resolveLimiter(resolve, record.service)) : 'this process',
    descriptors: descriptors.map(({ entries }, index) => ({
      entries: entries.map(({ key, value }) => ({ key, value: shown.has(value) ? value : '…' })),
      before_auth: index < first.length,
      limits: limits?.[index]?.map(limitPart),
    })),
    on_over_limit: 'the client gets 429',
    on_error: record.failureModeDeny ? 'the client gets 503' : 'the request continues',
  };
}

/** Returns the values that may be shown: parts of the request except credentials, and harmless parts of the mapping. */
function shownValues({ method, path, host, client, headers }: RequestAttributes, { labels, mapping }: Route) {
  const sent = Object.entries(headers).flatMap(([name, value]) =>
    isCredential(name) ? [] : [decodeHeader(String(value))],
  );
  const words = labels.flatMap((group) => group.labels.flatMap((label) => wordOf(label, client)));
  return new Set([method, path, path.toLowerCase(), host, client, sourceCluster, mapping.service, ...sent, ...words]);
}

/** The value of Envoy's `generic_key` is a category of requests. With any other key, the value may be a secret. */
function wordOf(label: Label, client: string): readonly string[] {
  if (label.kind === 'masked_remote_address') return [maskAddress(client, label)];
  return label.kind === 'generic_key' && label.name === genericKey ? [label.value] : [];
}

function limitPart({ currentLimit, unlimited, algorithm, burst, shadow, shownDescriptor, source }: Rule): LimitPart {
  const { requestsPerUnit, unit, unitMultiplier = 1, name } = currentLimit;
  return {
    descriptor: shownDescriptor,
    name,
    unlimited,
    requests_per_unit: requestsPerUnit,
    unit,
    unit_multiplier: unitMultiplier,
    algorithm,
    burst,
    shadow_mode: shadow,
    source: source && formatSource(source),
  };
}

/** Throws a Problem for a request that cannot be forwarded. */
export function explainTarget(
  { bodyBytesMax, checkReferences }: GatewayParts,
  { ctx, attributes, route, client }: RoutedRequest,
): TargetPart {
  const { mapping, transport } = route;
  const { method } = attributes;
  const { timeouts, origins } = transport;
  checkReferences(ctx, attributes, route);
  const { path, headers } = transport.preview(ctx);
  return {
    kind: origins === undefined ? 'local' : 'remote',
    service: mapping.service,
    addresses: origins?.() ?? [],
    method,
    path,
    ...headerParts(headers, client, mapping.requestHeaders.add),
    response_headers: responseHeaders(mapping.responseHeaders, client.conceal),
    across: timeouts && upstreamPart(mapping, timeouts, method, bodyBytesMax),
  };
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
    timeout_ms: effective(timeouts.timeoutMs, mapping.timeoutMs),
    connect_timeout_ms: effective(timeouts.connectTimeoutMs, mapping.connectTimeoutMs),
    idle_timeout_ms: effective(timeouts.idleTimeoutMs, mapping.idleTimeoutMs),
    body_bytes_max: mapping.maxRequestBytes ?? bodyBytesMax,
    load_balancer: loadBalancer,
    retries: {
      on: retryPolicy?.retryOn ?? [],
      most: retriesMax,
      per_try_timeout_ms: perTryTimeoutMs,
      applies: retriesMax > 0 && isRetriableMethod(method),
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
function healthText({ path, intervalMs, timeoutMs }: NonNullable<Mapping['healthCheck']>): string {
  return `${withoutSecrets(path.replace(/\?.*/, ''))} every ${intervalMs} ms, within ${timeoutMs} ms`;
}
