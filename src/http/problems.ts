/** The gateway's table of problems, which are the errors that a client may see: status, meaning and remedy of each. */

export interface ProblemKind {
  readonly status: number;
  /** @default the slug with spaces instead of hyphens */
  readonly title?: string;
  /** The `Retry-After` of the response, unless the code that throws the problem knows a better one. @default none */
  readonly retryAfterSeconds?: number;
  /** What happened, in one sentence for the client's developer. */
  readonly meaning: string;
  /** What the client can do about it. */
  readonly remedy: string;
}

/** Problems by slug, such as `not-found`. */
export type ProblemTable = Readonly<Record<string, ProblemKind>>;

export const problems = {
  'bad-path': {
    status: 400,
    meaning:
      'The path is ambiguous: it begins with two slashes, contains a dot segment, a backslash, a control character, an invalid percent-encoding, or something else that `detail` names.',
    remedy: 'Send the path in its plain form.',
  },
  'bad-argument': {
    status: 400,
    meaning: 'One or more query arguments are unknown, repeated or malformed; `errors` lists them.',
    remedy: 'Correct the arguments that `errors` lists.',
  },
  'bad-body': {
    status: 400,
    meaning: 'The body is missing, is not JSON, or does not match its schema; `errors` lists the faults.',
    remedy: 'Correct the body as `detail` or `errors` says.',
  },
  'bad-request': {
    status: 400,
    meaning: 'The request is not well-formed HTTP, or one of its headers is invalid.',
    remedy: 'Correct the request as `detail` says.',
  },
  unauthorized: {
    status: 401,
    meaning: 'The request has no credentials, or they are not valid.',
    remedy: 'Send an `Authorization` header as `WWW-Authenticate` describes.',
  },
  'access-denied': {
    status: 403,
    meaning: 'The auth service denied the request.',
    remedy: 'Ask for access, or use other credentials.',
  },
  'insufficient-claims': {
    status: 403,
    meaning: 'The request has no token, or a token without the claims that are required here, such as a scope.',
    remedy: 'Send a token with these claims: the operator of the server knows which.',
  },
  'address-denied': {
    status: 403,
    meaning: 'Requests from your address are not allowed here.',
    remedy: 'Ask the operator to allow your address, or use a network that is allowed.',
  },
  'admins-only': {
    status: 403,
    title: 'For administrators only',
    meaning: 'The page shows the state of the gateway, and you are not an administrator.',
    remedy: 'Sign in as a user with the role `admin` in users.yaml, or one that ADMIN_USERS names.',
  },
  'not-found': {
    status: 404,
    meaning: 'There is no such resource, or you may not see it.',
    remedy: 'Check the path; paths are case-sensitive and items have no trailing slash.',
  },
  'method-not-allowed': {
    status: 405,
    meaning: 'The resource exists but does not support this method.',
    remedy: 'Use a method that the `Allow` header lists.',
  },
  'not-acceptable': {
    status: 406,
    meaning: 'The resource is not available in any media type that the `Accept` header allows.',
    remedy: 'Accept one of the media types that `detail` lists.',
  },
  'request-timeout': {
    status: 408,
    meaning: 'The request did not arrive in time.',
    remedy: 'Send the request again without long pauses.',
  },
  'forbidden-transition': {
    status: 409,
    meaning: 'The resource cannot change from its current state to the requested one.',
    remedy: 'Read the resource again; `detail` says what it can become.',
  },
  'idempotency-running': {
    status: 409,
    retryAfterSeconds: 1,
    title: 'Idempotent request under way',
    meaning: 'A request with this idempotency key is still under way.',
    remedy: 'Send the same request again after the number of seconds in `Retry-After`.',
  },
  gone: {
    status: 410,
    meaning: 'This version of the API has ended.',
    remedy: 'Use the successor version that the `Link` header names.',
  },
  'precondition-failed': {
    status: 412,
    meaning: 'The resource has changed: `If-Match` does not contain its current `ETag`.',
    remedy: 'Read the resource again and send its new `ETag`.',
  },
  'body-too-large': {
    status: 413,
    meaning: 'The request body is larger than this server accepts.',
    remedy: 'Send a smaller body; `detail` gives the limit.',
  },
  'unsupported-media-type': {
    status: 415,
    meaning: 'The media type, the charset or the content coding of the body is not supported here.',
    remedy: 'Correct the body as `detail` says; the `Accept` header of the response lists the supported types.',
  },
  'idempotency-mismatch': {
    status: 422,
    meaning: 'The idempotency key was already used for another request; `detail` says when.',
    remedy: 'Use a new key for each new request.',
  },
  'precondition-required': {
    status: 428,
    meaning: 'This change requires `If-Match`, so that it does not overwrite a version that the client has not seen.',
    remedy: 'Read the resource and send its `ETag` in `If-Match`.',
  },
  'too-many-requests': {
    status: 429,
    retryAfterSeconds: 1,
    meaning: 'A rate limit is exhausted.',
    remedy: 'Wait for the number of seconds in `Retry-After`.',
  },
  'login-throttled': {
    status: 429,
    retryAfterSeconds: 1,
    title: 'Too many failed logins',
    meaning:
      'Too many logins from your address, or for this user from your address, have failed; this one was not checked.',
    remedy: 'Try again with the right password after the number of seconds in `Retry-After`.',
  },
  'headers-too-large': {
    status: 431,
    meaning: 'The request headers are larger than this server accepts.',
    remedy: 'Send fewer or shorter headers.',
  },
  internal: {
    status: 500,
    title: 'Internal error',
    meaning: 'An unexpected error occurred. It is logged under the request id.',
    remedy: 'Report the error with the `X-Request-Id` of the response.',
  },
  'body-consumed': {
    status: 500,
    meaning: 'The host application read the request body before frontdesk could.',
    remedy: 'Mount frontdesk before the body parser, or let the parser keep `rawBody`.',
  },
  'no-backend': {
    status: 500,
    meaning: 'The configuration for this path names a backend that does not exist, or that it may not use.',
    remedy: 'Report it: the operator can see what is wrong.',
  },
  'unknown-method': {
    status: 501,
    meaning: 'The server does not support the method of the request on any path.',
    remedy: 'Use a registered HTTP method, in upper case.',
  },
  'unknown-protocol': {
    status: 501,
    meaning:
      'The client wants to switch to a protocol over HTTP/2 that the server or the service does not support here.',
    remedy: 'Use a protocol that the mapping of the path allows, such as `websocket`, or an ordinary request.',
  },
  'upstream-failed': {
    status: 502,
    meaning: 'The service behind the gateway broke the connection or sent something that is not HTTP.',
    remedy: 'Try again later.',
  },
  'destination-elsewhere': {
    status: 502,
    meaning: 'The `Destination` is on another server, or a resource that it or `If` names is behind another mapping.',
    remedy: 'Copy and move within one mapping.',
  },
  'auth-unavailable': {
    status: 503,
    retryAfterSeconds: 1,
    meaning: 'The auth service did not return a valid response, so the request was rejected.',
    remedy: 'Try again after the number of seconds in `Retry-After`.',
  },
  'auth-overloaded': {
    status: 503,
    retryAfterSeconds: 1,
    meaning: 'The auth service is already checking as many passwords as it can; this one was not checked.',
    remedy: 'Try again after the number of seconds in `Retry-After`.',
  },
  'ratelimit-unavailable': {
    status: 503,
    retryAfterSeconds: 1,
    meaning:
      'The rate-limit service did not return a valid response, and the configuration rejects requests in that case.',
    remedy: 'Try again after the number of seconds in `Retry-After`.',
  },
  'upstream-unavailable': {
    status: 503,
    retryAfterSeconds: 1,
    meaning: 'The service behind the gateway could not be reached.',
    remedy: 'Try again after the number of seconds in `Retry-After`.',
  },
  'upstream-overloaded': {
    status: 503,
    retryAfterSeconds: 1,
    meaning: 'The service behind the gateway already has as many requests in progress as the configuration allows.',
    remedy: 'Try again after the number of seconds in `Retry-After`.',
  },
  'storage-unavailable': {
    status: 503,
    retryAfterSeconds: 1,
    meaning: 'The database could not be used.',
    remedy: 'Try again after the number of seconds in `Retry-After`.',
  },
  overloaded: {
    status: 503,
    retryAfterSeconds: 1,
    meaning: 'The server already has as many connections as its configuration allows.',
    remedy: 'Try again after the number of seconds in `Retry-After`.',
  },
  'not-ready': {
    status: 503,
    retryAfterSeconds: 1,
    meaning:
      'The server is stopping, cannot use its database or rate limiter, has not read its Kubernetes cluster yet, or already has as many event streams as it supports; `detail` says which.',
    remedy: 'Try again after the number of seconds in `Retry-After`.',
  },
  'not-configured': {
    status: 503,
    retryAfterSeconds: 5,
    meaning: 'The configuration for this path is not valid at the moment, or has not been read yet.',
    remedy: 'Try again after the number of seconds in `Retry-After`; the operator can see what is wrong.',
  },
  'upstream-timeout': {
    status: 504,
    meaning: 'The service behind the gateway did not respond in time.',
    remedy: 'Try again later, or ask for less.',
  },
  'loop-detected': {
    status: 508,
    meaning: 'The request has already passed through this gateway several times.',
    remedy: 'Report it: a service behind the gateway sends the request back to the gateway.',
  },
} as const satisfies ProblemTable;

export type ProblemSlug = keyof typeof problems;

/** A title that is the same for every occurrence of the problem (RFC 9457 section 3.1.3): `Not found`. */
export function problemTitle(slug: string, { title }: ProblemKind): string {
  return title ?? slug.charAt(0).toUpperCase() + slug.slice(1).replaceAll('-', ' ');
}
