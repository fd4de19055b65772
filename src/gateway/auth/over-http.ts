/** An auth service over HTTP, called like Envoy's ext_authz filter does. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Context } from 'koa';
import type { AuthDecision } from '#auth';
import type { AuthService } from '#config';
import { messageOf } from '#foundation';
import { grpcStatus, httpStatusOfGrpc, parseGrpcStatus, requestContext } from '#http';
import {
  addForwardedHeaders,
  type CallOptions,
  type Cluster,
  callUpstream,
  isProvoked,
  publicAddress,
  type UpstreamResponse,
  viaOf,
  wholeBody,
} from '#proxy';
import type { RequestAttributes } from '#routing';
import type { AuthBody } from './body.ts';
import { createAuthCache, mayBeCached } from './cache.ts';
import { type AuthClient, type CheckRequest, createCheckRequest } from './check-request.ts';
import { uncheckedSlug, withoutBody } from './own-service.ts';

export interface AuthOverHttpOptions {
  readonly record: AuthService;
  readonly cluster: Cluster;
  /** The base path of the service: `''`, or `/base`. */
  readonly path: string;
}

/** Headers of a denial that are sent to the client in addition to those that the record lists. */
const denialHeaders = ['Location', 'Proxy-Authenticate', 'Retry-After', 'Set-Cookie', 'WWW-Authenticate'];

export function createAuthOverHttp({ record, cluster, path }: AuthOverHttpOptions): AuthClient {
  const { timeoutMs, cacheMs, includeBody, allowedAuthorizationHeaders } = record;
  const checkRequestOf = createCheckRequest(record);
  const callOptions: CallOptions = { timeoutMs, repeat: 'failover' };
  const sentToClient = [...denialHeaders, ...allowedAuthorizationHeaders];
  // A decision that may depend on the body is not cached, because the gateway may know only the beginning of the body.
  const cache = cacheMs > 0 && includeBody === undefined ? createAuthCache({ ttlMs: cacheMs }) : undefined;

  function checkRequestFor(ctx: Context, attributes: RequestAttributes): CheckRequest {
    const address = publicAddress(ctx);
    const added: string[] = [];
    addForwardedHeaders(added, ctx, address, address.path);
    added.push(...originalRequest(ctx, attributes, address.path), ...withoutBody, 'via', viaOf(ctx.req));
    return checkRequestOf(attributes, added);
  }

  async function call(ctx: Context, check: CheckRequest, body: AuthBody | undefined): Promise<AuthDecision> {
    const askedAtMs = performance.now();
    const sent = body === undefined || body.bytes.length === 0 ? undefined : wholeBody(body.bytes);
    try {
      const request = { ...completed(check, path, body), body: sent, client: ctx.res };
      const response = await callUpstream(cluster, request, callOptions);
      const whole = await bodyOf(response, askedAtMs + timeoutMs);
      const decision = decisionOf(response.head, whole, record, sentToClient);
      if (decision.outcome === 'allow' && mayBeCached(response.head.headers))
        cache?.remember(check, decision, askedAtMs);
      return decision;
    } catch (cause) {
      const reason = messageOf(cause);
      return { outcome: 'error', reason, isProvoked: isProvoked(cause) };
    }
  }

  return Object.freeze({
    ask(ctx: Context, attributes: RequestAttributes, body: AuthBody | undefined) {
      const check = checkRequestFor(ctx, attributes);
      return cache?.recall(check) ?? call(ctx, check, body);
    },
    preview: (ctx: Context, attributes: RequestAttributes) =>
      completed(checkRequestFor(ctx, attributes), path, includeBody && announcedBody(ctx, includeBody.maxBytes)),
  });
}

/**
 * Headers that describe the original request, so that an auth service can send a browser back after login: `Host` as
 * Envoy sends it, and the headers of forward auth in Traefik and Caddy. `root`: the path where the gateway is mounted.
 */
function originalRequest(ctx: Context, { method, path, search }: RequestAttributes, root: string): string[] {
  const original = ['x-forwarded-method', method, 'x-forwarded-uri', root + path + search];
  const host = requestContext(ctx).addresses.authority(ctx.req);
  return host === undefined ? original : [...original, 'host', host];
}

/** Completes a check request for the wire. `path`: the base path of the service. */
function completed(check: CheckRequest, path: string, body: Pick<AuthBody, 'isWhole'> | undefined): CheckRequest {
  const { method, headers } = check;
  return {
    method,
    path: path + check.path,
    headers: body === undefined ? headers : [...headers, 'x-envoy-auth-partial-body', String(!body.isWhole)],
  };
}

/** Predicts from `Content-Length` whether the body will be sent whole. */
function announcedBody({ req }: Context, maxBytes: number): Pick<AuthBody, 'isWhole'> {
  return { isWhole: Number(req.headers['content-length'] ?? 0) <= maxBytes };
}

const bodyBytesMax = 64 * 1024;

/** Returns undefined for a body that is too large, incomplete or late. Then the status alone decides. */
async function bodyOf({ body }: UpstreamResponse, deadlineMs: number): Promise<Buffer | undefined> {
  try {
    return await body.read({ bytesMax: bodyBytesMax, timeoutMs: Math.max(1, deadlineMs - performance.now()) });
  } catch {
    return undefined;
  }
}

/**
 * A proxy or gateway in front of the service may refuse the check as it refuses gRPC calls, with 200 and a status of gRPC,
 * because it knows the content type that the client has chosen.
 */
function statusOf({ status, headers }: UpstreamResponse['head']): number {
  const code = headers['grpc-status'];
  if (code === undefined || status >= 300) return status;
  return httpStatusOfGrpc(parseGrpcStatus(String(code)) ?? grpcStatus.UNKNOWN);
}

function decisionOf(
  head: UpstreamResponse['head'],
  body: Buffer | undefined,
  { allowStatus, allowedAuthorizationHeaders, allowedClientHeadersOnSuccess }: AuthService,
  sentToClient: readonly string[],
): AuthDecision {
  const { headers } = head;
  const status = statusOf(head);
  if (status === 200 || (allowStatus === '2xx' && status < 300)) {
    const clientHeaders = pick(headers, allowedClientHeadersOnSuccess);
    return { outcome: 'allow', headers: joined(headers, allowedAuthorizationHeaders), clientHeaders };
  }
  const slug = uncheckedSlug(status, headers);
  if (status >= 500 && slug === undefined)
    return {
      outcome: 'error',
      reason: `the auth service responded with ${status}`,
      isProvoked: headers['grpc-status'] !== undefined,
    };
  const denial = {
    outcome: 'deny',
    status,
    headers: pick(headers, sentToClient),
    ...(slug && { slug }),
  } as const;
  if (body === undefined || (body.length === 0 && status >= 400)) return denial;
  return { ...denial, headers: pick(headers, [...sentToClient, 'Content-Encoding', 'Content-Type']), body };
}

function pick(headers: IncomingHttpHeaders, names: readonly string[]): Record<string, string | string[]> {
  const picked: Record<string, string | string[]> = {};
  for (const name of names) {
    const value = headers[name.toLowerCase()];
    if (value !== undefined) picked[name] = value;
  }
  return picked;
}

/** Picks headers and joins repeated ones with commas (RFC 9110 section 5.3). */
function joined(headers: IncomingHttpHeaders, names: readonly string[]): Record<string, string> {
  const entries = Object.entries(pick(headers, names));
  return Object.fromEntries(entries.map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]));
}
