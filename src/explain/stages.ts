/** What the auth service, the limiter and the service would be asked, and what follows from their answers. */
import type { Context } from 'koa';
import type { AuthService, HeaderRules, Mapping } from '#config';
import {
  type AuthBody,
  type ConfiguredAuthService,
  createIdentity,
  createPortQuestion,
  describeTarget,
  type Facts,
  type GatewayParts,
  headerPairs,
  type Route,
  type Target,
  upstreamRequest,
} from '#gateway';
import { hasBody, problem } from '#http';
import {
  createHeaderRules,
  createRequestHead,
  createRetryRules,
  forwardedHeaders,
  isIdempotent,
  publicAddress,
} from '#proxy';
import type { Descriptor, Rule } from '#ratelimit';
import type { Conceal } from './conceal.ts';
import type { AcrossPart, AuthPart, LimitPart, RateLimitPart, TargetPart } from './explanation.ts';

export interface ClientHeaders {
  /** Names and values in turn, as the client sent them. */
  readonly pairs: readonly string[];
  readonly conceal: Conceal;
}

export function placeOf({ file, line }: NonNullable<Route['source']>): string {
  return `${file}:${line}`;
}

/** Before the user is known. */
export function explainAuth(
  { authServices, resolve }: GatewayParts,
  ctx: Context,
  facts: Facts,
  route: Route,
  conceal: Conceal,
): AuthPart {
  const service = authServices.find(({ record }) => record.name === route.auth?.name);
  if (service === undefined || route.auth === undefined) return { asked: false, reason: whyOpen(route, authServices) };
  const { record } = service;
  const target = resolve(record.authService);
  const asked =
    service.port === undefined
      ? askedAcross(ctx, route.auth.question(facts, forwardedFor(ctx)), record, target)
      : askedHere(ctx, record);
  return {
    asked: true,
    name: record.name,
    service: record.authService,
    target: describeTarget(target),
    source: placeOf(record.source),
    method: asked.method,
    path: asked.path,
    headers: conceal.headers(asked.headers),
    body: bodyText(record),
    timeout_ms: service.port === undefined ? record.timeoutMs : undefined,
    cache_ms: service.port === undefined && record.includeBody === undefined ? record.cacheMs : 0,
    user_header: record.allowedAuthorizationHeaders[0],
    ...consequences(record),
  };
}

/** Sets the identity header as the auth service's answer would. */
export function identifyAs({ authServices }: GatewayParts, ctx: Context, { auth }: Route, user: string): void {
  const service = authServices.find(({ record }) => record.name === auth?.name);
  const names = service?.record.allowedAuthorizationHeaders ?? [];
  const [userHeader] = names;
  if (userHeader !== undefined) createIdentity(names).set(ctx.req.headers, { [userHeader]: user });
}

function whyOpen({ mapping, redirection, source }: Route, services: readonly ConfiguredAuthService[]): string {
  if (redirection !== undefined) return 'a redirect needs no authentication';
  if (services.length === 0) return 'there is no AuthService record';
  if (source === undefined) return 'this route of the server is open';
  return mapping.bypassAuth ? 'the mapping says bypass_auth: true' : 'the mapping is open';
}

interface Asked {
  readonly method: string;
  readonly path: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
}

function forwardedFor(ctx: Context): string[] {
  const address = publicAddress(ctx);
  return forwardedHeaders(ctx, address, address.path);
}

function askedAcross(
  ctx: Context,
  question: Parameters<typeof upstreamRequest>[0],
  { includeBody }: AuthService,
  target: Target,
): Asked {
  const path = target.kind === 'remote' ? target.path : '';
  return upstreamRequest(question, path, includeBody && foreseenBody(ctx, includeBody.maxBytes));
}

function askedHere(ctx: Context, record: AuthService): Asked {
  const { method, url, headers } = createPortQuestion(record)(ctx, ctx.req.headers);
  return { method, path: url, headers: headerPairs(headers) };
}

/** Only the length of a body is known before it is sent. */
function foreseenBody({ req }: Context, maxBytes: number): AuthBody {
  return { bytes: Buffer.alloc(0), isWhole: Number(req.headers['content-length'] ?? 0) <= maxBytes };
}

function bodyText({ includeBody }: AuthService): string {
  if (includeBody === undefined) return 'none';
  const { maxBytes, allowPartial } = includeBody;
  return `its first ${maxBytes} bytes; a larger one is ${allowPartial ? 'cut off' : 'refused with 413'}`;
}

function consequences(record: AuthService) {
  const { allowedAuthorizationHeaders, failureModeAllow, statusOnError } = record;
  const names = allowedAuthorizationHeaders.join(', ');
  return {
    on_200: names === '' ? 'the request goes on' : `the request goes on with ${names} as the answer says`,
    on_refusal: 'any other status below 500 is the answer to the client',
    on_error: failureModeAllow ? 'the request goes on without an identity' : `the client gets ${statusOnError}`,
  };
}

/** The limits that would count the request. */
export function explainLimit(
  { rateLimitService: record, limiter, resolve }: GatewayParts,
  facts: Facts,
  route: Route,
  conceal: Conceal,
): RateLimitPart {
  if (record === undefined) return { asked: false, reason: 'there is no RateLimitService record' };
  const { domain } = record;
  if (route.describe === undefined)
    return { asked: false, reason: `the mapping has no labels of the domain ${domain}` };
  const descriptors = route.describe(facts);
  if (descriptors.length === 0) return { asked: false, reason: 'none of the labels is on this request' };
  const limits = limiter?.explain?.({ domain, descriptors });
  return {
    asked: true,
    name: record.name,
    service: record.service,
    source: placeOf(record.source),
    domain,
    decided_by: limits === undefined ? describeTarget(resolve(record.service)) : 'this process',
    descriptors: descriptors.map(({ entries }, index) => ({
      entries: entryParts(entries, conceal),
      limits: limits?.[index]?.map(limitPart),
    })),
    on_over_limit: 'the client gets 429',
    on_error: record.failureModeDeny ? 'the client gets 503' : 'the request goes on',
  };
}

function entryParts(entries: Descriptor['entries'], conceal: Conceal) {
  return entries.map(({ key, value }) => ({ key, value: conceal.text(value) }));
}

function limitPart({ currentLimit, unlimited, algorithm, burst, shadow, descriptor, source }: Rule): LimitPart {
  const { requestsPerUnit, unit, unitMultiplier = 1, name } = currentLimit;
  return {
    descriptor,
    name,
    unlimited,
    requests_per_unit: requestsPerUnit,
    unit,
    unit_multiplier: unitMultiplier,
    algorithm,
    burst,
    shadow_mode: shadow,
    source: source && placeOf(source),
  };
}

/** Throws the Problem of a request that cannot be forwarded. */
export function explainTarget(
  parts: GatewayParts,
  ctx: Context,
  facts: Facts,
  route: Route,
  client: ClientHeaders,
): TargetPart {
  const { mapping, source } = route;
  const target = source === undefined ? undefined : parts.resolve(mapping.service);
  const isAcross = target?.kind === 'remote';
  const sent = isAcross ? sentAcross(ctx, mapping, target, parts) : sentHere(ctx, facts, route);
  if (isAcross) hasBody(ctx.req.headers, parts.bodyBytesMax);
  return {
    kind: isAcross ? 'remote' : 'local',
    service: mapping.service,
    addresses: isAcross ? target.origins() : [],
    method: facts.method,
    path: sent.path,
    ...headerParts(sent.headers, client),
    response_headers: responseHeaders(mapping.responseHeaders, client.conceal),
    across: isAcross ? acrossPart(route, facts, parts.bodyBytesMax) : undefined,
  };
}

type Sent = Pick<Asked, 'path' | 'headers'>;

function sentAcross(
  ctx: Context,
  mapping: Route['mapping'],
  target: Extract<Target, { kind: 'remote' }>,
  { identity }: GatewayParts,
): Sent {
  const { path, headers } = createRequestHead({ mapping, path: target.path, identity })(ctx);
  if (headers.some((name, index) => index % 2 === 0 && name === 'host')) return { path, headers };
  const [origin = ''] = target.origins();
  return { path, headers: ['host', origin.slice(origin.indexOf('//') + 2), ...headers] };
}

function sentHere(ctx: Context, { path, search }: Facts, { mapping, rewritten }: Route): Sent {
  const inner = rewritten(path);
  if (inner === undefined) throw problem('bad-path');
  createHeaderRules(mapping.requestHeaders).editRequest(ctx);
  return { path: inner + search, headers: headerPairs(ctx.req.headers) };
}

function headerParts(sent: readonly string[], { pairs, conceal }: ClientHeaders) {
  const asSent = new Set(linesOf(pairs));
  const lines = linesOf(sent);
  const arriving = new Set(sent.filter((_, index) => index % 2 === 0));
  const names = [...new Set(pairs.filter((_, index) => index % 2 === 0))];
  return {
    headers: conceal.headers(sent).map((header, index) => ({
      ...header,
      by: asSent.has(lines[index] ?? '') ? ('client' as const) : ('gateway' as const),
    })),
    headers_removed: names.filter((name) => !arriving.has(name)),
  };
}

function linesOf(pairs: readonly string[]): readonly string[] {
  return pairs.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${pairs[index + 1]}`] : []));
}

function responseHeaders({ add, remove }: HeaderRules, conceal: Conceal): TargetPart['response_headers'] {
  return { add: conceal.headers(add.flatMap(({ name, value }) => [name, value])), remove };
}

function acrossPart({ mapping, ...route }: Route, { method }: Facts, bodyBytesMax: number): AcrossPart {
  const { retryPolicy, circuitBreakers: breakers, healthCheck, loadBalancer, allowUpgrade } = mapping;
  const { retriesMax, perTryTimeoutMs } = createRetryRules(retryPolicy);
  return {
    timeout_ms: effective(route.timeoutMs, mapping.timeoutMs),
    connect_timeout_ms: effective(route.connectTimeoutMs, mapping.connectTimeoutMs),
    idle_timeout_ms: effective(route.idleTimeoutMs, mapping.idleTimeoutMs),
    body_bytes_max: bodyBytesMax,
    load_balancer: loadBalancer,
    retries: {
      on: retryPolicy?.retryOn ?? [],
      most: retriesMax,
      per_try_timeout_ms: perTryTimeoutMs,
      applies: retriesMax > 0 && isIdempotent(method),
    },
    circuit_breakers: {
      max_connections: breakers.maxConnections,
      max_pending_requests: breakers.maxPendingRequests,
      max_requests: breakers.maxRequests,
      max_retries: breakers.maxRetries,
    },
    health_check: healthCheck && healthText(healthCheck),
    upgrades_allowed: allowUpgrade,
  };
}

function effective(value = 0, own: number | undefined) {
  return { value, from: own === undefined ? ('setting' as const) : ('mapping' as const) };
}

function healthText({ path, intervalMs, timeoutMs }: NonNullable<Mapping['healthCheck']>): string {
  return `${path} every ${intervalMs} ms, within ${timeoutMs} ms`;
}
