/** Builds the check request for an auth service, in this process, over HTTP or over gRPC. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Context } from 'koa';
import type { AuthDecision, AuthRequest } from '#auth';
import type { HeaderEdit } from '#auth/ext-authz';
import type { AuthService, Mapping } from '#config';
import { connectionHeaders, encodeHeader, requestContext } from '#http';
import { withoutNames } from '#proxy';
import type { RequestAttributes } from '#routing';
import type { AuthBody } from './body.ts';

/**
 * Asks the auth service for a decision. Returns it synchronously when no I/O is needed, and never throws. `body` is set
 * only for a record with `include_body`.
 */
export type Ask = (ctx: Context, attributes: RequestAttributes, body: AuthBody | undefined) => Answer | Promise<Answer>;

/** A decision, and the changes that a service over gRPC makes to a request that may pass. */
export type Answer = AuthDecision & { readonly edits?: RequestEdits };

export interface RequestEdits {
  /** The names of headers to remove, in lower case. */
  readonly remove: ReadonlySet<string>;
  readonly set: readonly HeaderEdit[];
}

/** An auth service, in this process, over HTTP or over gRPC. */
export interface AuthClient {
  readonly ask: Ask;
  /** Returns the request that `ask` would send. Pure. */
  readonly preview: (ctx: Context, attributes: RequestAttributes) => CheckRequest;
  /** Returns a client that also sends the context of a mapping. Undefined except over gRPC. */
  readonly withContext?: (context: Mapping['authContextExtensions']) => AuthClient;
}

/** A request to an auth service, or over gRPC the one that the call describes. */
export interface CheckRequest {
  readonly method: string;
  /** Starts with `path_prefix`, verbatim, and includes the query. */
  readonly path: string;
  /** Alternating names and values. */
  readonly headers: readonly string[];
}

/** `forwarded`: alternating names and values of the headers that the gateway adds, such as `x-forwarded-for`. */
export type CreateCheckRequest = (attributes: RequestAttributes, forwarded: readonly string[]) => CheckRequest;

/** Sent to every auth service. `accept` is included because its denial response is sent to the client unchanged. */
const alwaysSent = ['accept', 'authorization', 'cookie', 'from', 'proxy-authorization', 'user-agent'];

/** Sent together with the body that they describe. */
const bodyHeaders = ['content-encoding', 'content-type'];

/** Connection-specific headers, and headers that the gateway itself sets. */
const neverSent = new Set([
  ...connectionHeaders,
  'content-length',
  'expect',
  'host',
  'trailer',
  'traceparent',
  'tracestate',
  'x-envoy-auth-partial-body',
  'x-request-id',
  'via',
]);

/**
 * Joins repeated headers with commas (RFC 9110 section 5.3). Never sends connection-specific headers, even if listed.
 * Over gRPC, sends all others, as Envoy does, except for other spellings of identity headers.
 */
export function createCheckRequest(
  record: Pick<AuthService, 'proto' | 'pathPrefix' | 'allowedRequestHeaders' | 'addAuthHeaders' | 'includeBody'>,
  isIdentity: (name: string) => boolean = () => false,
): CreateCheckRequest {
  const { proto, pathPrefix, addAuthHeaders, includeBody } = record;
  const added = addAuthHeaders.flatMap(({ name, value }) => [name.toLowerCase(), encodeHeader(value)]);
  const overridden = new Set(addAuthHeaders.map(({ name }) => name.toLowerCase()));
  const listed = [...alwaysSent, ...(includeBody ? bodyHeaders : []), ...record.allowedRequestHeaders];
  const isSent = (name: string) => maySend(name) && !overridden.has(name);
  const sent = [...new Set(listed)].filter(isSent);
  const namesIn = (headers: IncomingHttpHeaders) =>
    proto === 'grpc' ? Object.keys(headers).filter((name) => isSent(name) && !isIdentity(name)) : sent;
  const unlessOverridden = (forwarded: readonly string[]) =>
    overridden.size === 0 ? forwarded : withoutNames(forwarded, overridden);
  return ({ method, path, search, headers }, forwarded) => ({
    method,
    path: pathPrefix + path + search,
    headers: [...pickPairs(headers, namesIn(headers)), ...unlessOverridden(forwarded), ...added],
  });
}

/** Builds the check request for a service in this process, which reads the original headers. Pure. */
export function createPortRequest({ pathPrefix, addAuthHeaders }: Pick<AuthService, 'pathPrefix' | 'addAuthHeaders'>) {
  const added = Object.fromEntries(addAuthHeaders.map(({ name, value }) => [name.toLowerCase(), encodeHeader(value)]));
  const withAdded = (headers: IncomingHttpHeaders) =>
    addAuthHeaders.length === 0 ? headers : { ...headers, ...added };
  return (ctx: Context): AuthRequest => {
    const { url = '/', method = 'GET', headers } = ctx.req;
    return {
      method,
      url: pathPrefix + url,
      headers: withAdded(headers),
      sender: () => requestContext(ctx).addresses.sender(ctx.req),
    };
  };
}

/** Flattens headers into alternating names and values. */
export function headerPairs(headers: IncomingHttpHeaders): string[] {
  return Object.entries(headers).flatMap(([name, value]) => [value ?? []].flat().flatMap((one) => [name, one]));
}

function maySend(name: string): boolean {
  return !neverSent.has(name) && !name.startsWith('x-forwarded-');
}

function pickPairs(headers: IncomingHttpHeaders, names: readonly string[]): string[] {
  const pairs: string[] = [];
  for (const name of names) {
    const value = headers[name];
    if (value !== undefined) pairs.push(name, typeof value === 'string' ? value : value.join(', '));
  }
  return pairs;
}
