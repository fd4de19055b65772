/** What an auth service is asked about a request: worked out from plain facts, so that it can be shown as well as sent. */
import type { IncomingHttpHeaders } from 'node:http';
import type { AuthService } from '#config';
import type { RequestAttributes } from '#routing';

export interface AuthQuestion {
  readonly method: string;
  /** With `path_prefix` before it, verbatim, and the query behind it. */
  readonly path: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
}

/** `forwarded`: what the gateway itself says of the request (`x-forwarded-…`, `x-request-id`, `traceparent`), names and values in turn. */
export type PutQuestion = (facts: RequestAttributes, forwarded: readonly string[]) => AuthQuestion;

/** What each auth service is told; `accept`, since a refusal goes to the client as it is. */
const alwaysTold = ['accept', 'authorization', 'cookie', 'from', 'proxy-authorization', 'user-agent'];

/** These describe the body and go with it. */
const bodyHeaders = ['content-encoding', 'content-type'];

/** Of the connection to us, or ours to say. */
const neverTold = new Set([
  ...['connection', 'content-length', 'expect', 'host', 'keep-alive', 'proxy-connection', 'te', 'trailer'],
  ...['traceparent', 'tracestate', 'transfer-encoding', 'upgrade', 'x-envoy-auth-partial-body', 'x-request-id'],
]);

/** A repeated header is told once, with commas (RFC 9110 section 5.3). Framing headers are never told, listed or not. */
export function createPutQuestion(
  record: Pick<AuthService, 'pathPrefix' | 'allowedRequestHeaders' | 'addAuthHeaders' | 'includeBody'>,
): PutQuestion {
  const { pathPrefix, addAuthHeaders, includeBody } = record;
  const added = addAuthHeaders.flatMap(({ name, value }) => [name.toLowerCase(), value]);
  const overridden = new Set(addAuthHeaders.map(({ name }) => name.toLowerCase()));
  const listed = [...alwaysTold, ...(includeBody ? bodyHeaders : []), ...record.allowedRequestHeaders];
  const told = [...new Set(listed)].filter((name) => isTold(name) && !overridden.has(name));
  const unlessOverridden = (forwarded: readonly string[]) =>
    overridden.size === 0 ? forwarded : withoutNames(forwarded, overridden);
  return ({ method, path, search, headers }, forwarded) => ({
    method,
    path: pathPrefix + path + search,
    headers: [...pickPairs(headers, told), ...unlessOverridden(forwarded), ...added],
  });
}

function isTold(name: string): boolean {
  return !neverTold.has(name) && !name.startsWith('x-forwarded-');
}

function pickPairs(headers: IncomingHttpHeaders, names: readonly string[]): string[] {
  const pairs: string[] = [];
  for (const name of names) {
    const value = headers[name];
    if (value !== undefined) pairs.push(name, typeof value === 'string' ? value : value.join(', '));
  }
  return pairs;
}

function withoutNames(pairs: readonly string[], names: ReadonlySet<string>): string[] {
  return pairs.filter((_, index) => !names.has(pairs[index - (index % 2)] ?? ''));
}
