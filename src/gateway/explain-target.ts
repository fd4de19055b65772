/** Where a request goes and what arrives there, as `explain` tells it. */
import type { Context } from 'koa';
import type { HeaderRules, Mapping } from '#config';
import { announcesBody, problem } from '#http';
import { createHeaderRules, createRequestHead, createRetryRules, type Identity, isIdempotent } from '#proxy';
import type { Conceal } from './conceal.ts';
import type { AcrossPart, TargetPart } from './explanation-target.ts';
import type { Facts } from './facts.ts';
import { headerPairs } from './header-pairs.ts';
import type { RemoteTarget } from './holdings.ts';
import type { Route } from './route.ts';
import type { Target } from './target.ts';

export interface ExplainTargetParts {
  readonly resolve: (service: string) => Target;
  readonly identity: Identity;
  readonly bodyBytesMax: number;
}

/** `client`: what the client sent, before anything was taken away. Throws the Problem of a request that cannot be forwarded. */
export type ExplainTarget = (ctx: Context, facts: Facts, route: Route, client: ClientHeaders) => TargetPart;

export interface ClientHeaders {
  /** Names and values in turn. */
  readonly pairs: readonly string[];
  readonly conceal: Conceal;
}

export function createExplainTarget({ resolve, identity, bodyBytesMax }: ExplainTargetParts): ExplainTarget {
  return function explainTarget(ctx, facts, route, client) {
    const { mapping, source } = route;
    const target = source === undefined ? undefined : resolve(mapping.service);
    const isAcross = target?.kind === 'remote';
    const sent = isAcross ? sentAcross(ctx, mapping, target, identity) : sentHere(ctx, facts, route);
    if (isAcross) announcesBody(ctx.req.headers, bodyBytesMax);
    return {
      kind: isAcross ? 'remote' : 'local',
      service: mapping.service,
      addresses: isAcross ? target.origins() : [],
      method: facts.method,
      path: sent.path,
      ...headerParts(sent.headers, client),
      response_headers: responseHeaders(mapping.responseHeaders, client.conceal),
      across: isAcross ? acrossPart(route, facts, bodyBytesMax) : undefined,
    };
  };
}

interface Sent {
  readonly path: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
}

function sentAcross(ctx: Context, mapping: Route['mapping'], target: RemoteTarget, identity: Identity): Sent {
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
