/** The table of problems: every error that a client may read, with its status, its meaning and the way out. */

export interface ProblemKind {
  readonly status: number;
  /** @default the slug in words */
  readonly title?: string;
  /** What happened, in one sentence for the client's developer. */
  readonly meaning: string;
  /** What the client can do about it. */
  readonly remedy: string;
}

export const problems = {
  'bad-path': {
    status: 400,
    meaning:
      'The path holds a dot segment, a backslash, a NUL or a broken percent-encoding, or another ambiguity that this server refuses and `detail` names.',
    remedy: 'Send the path in its plain form.',
  },
  'bad-argument': {
    status: 400,
    meaning: 'One or more query arguments are unknown, repeated or malformed; `errors` names each.',
    remedy: 'Mend the arguments that `errors` names.',
  },
  'bad-body': {
    status: 400,
    meaning: 'The body is missing, no JSON, or not what is asked for here; `errors` names each fault.',
    remedy: 'Mend the body as `detail` or `errors` says.',
  },
  'bad-request': {
    status: 400,
    meaning: 'The request is not well-formed HTTP, or a header of it cannot be understood.',
    remedy: 'Mend the request as `detail` says.',
  },
  unauthorized: {
    status: 401,
    meaning: 'The request carries no credentials, or credentials that do not match.',
    remedy: 'Send an `Authorization` header as `WWW-Authenticate` asks.',
  },
  'access-denied': {
    status: 403,
    meaning: 'The auth service refused the request.',
    remedy: 'Ask for access, or use other credentials.',
  },
  'not-found': {
    status: 404,
    meaning: 'There is no such resource, or it is not yours to see.',
    remedy: 'Check the path; paths are case-sensitive and items have no trailing slash.',
  },
  'method-not-allowed': {
    status: 405,
    meaning: 'The resource exists but does not take this method.',
    remedy: 'Use a method that the `Allow` header lists.',
  },
  'not-acceptable': {
    status: 406,
    meaning: 'None of the representations that the `Accept` header asks for can be made.',
    remedy: 'Accept one of the media types that `detail` lists.',
  },
  'request-timeout': {
    status: 408,
    meaning: 'The request did not arrive in time.',
    remedy: 'Send it again, faster.',
  },
  'sold-out': {
    status: 409,
    meaning: 'Nothing is left of what was to be booked.',
    remedy: 'Book one of `alternatives`, or other dates.',
  },
  'forbidden-transition': {
    status: 409,
    meaning: 'The state in which the resource is does not lead to the one that was asked for.',
    remedy: 'Read the resource again; `detail` names the states that it can go to.',
  },
  'idempotency-running': {
    status: 409,
    title: 'Idempotent request under way',
    meaning: 'A request with this idempotency key is still under way.',
    remedy: 'Send the same request again after the seconds that `Retry-After` names.',
  },
  gone: {
    status: 410,
    meaning: 'This version of the API has ended.',
    remedy: 'Use its successor, which `Link` names.',
  },
  'precondition-failed': {
    status: 412,
    meaning: 'The resource is no longer the one that `If-Match` names.',
    remedy: 'Read the resource again and send its new `ETag`.',
  },
  'body-too-large': {
    status: 413,
    meaning: 'The request body is larger than this server takes.',
    remedy: 'Send a smaller body; `detail` names the limit.',
  },
  'unsupported-media-type': {
    status: 415,
    meaning: 'The body is of a media type, a charset or a content coding that is not taken here.',
    remedy: 'Send what the `Accept` header of the answer lists.',
  },
  'idempotency-mismatch': {
    status: 422,
    meaning: 'The idempotency key was used before, for another request.',
    remedy: 'Make a new key for each new request.',
  },
  'precondition-required': {
    status: 428,
    meaning: 'A change needs `If-Match`, so that nobody overwrites what he has not seen.',
    remedy: 'Read the resource and send its `ETag` in `If-Match`.',
  },
  'too-many-requests': {
    status: 429,
    meaning: 'A rate limit is used up.',
    remedy: 'Wait for the seconds that `Retry-After` names.',
  },
  'headers-too-large': {
    status: 431,
    meaning: 'The request headers are larger than this server takes.',
    remedy: 'Send fewer or shorter headers.',
  },
  internal: {
    status: 500,
    title: 'Internal error',
    meaning: 'Something broke in here. It is logged under the request id.',
    remedy: 'Report the `X-Request-Id`.',
  },
  'body-consumed': {
    status: 500,
    meaning: 'The host application read the request body before frontdesk could.',
    remedy: 'Mount frontdesk before the body parser, or let the parser keep `rawBody`.',
  },
  'method-not-implemented': {
    status: 501,
    meaning: 'This server does not implement the method at all.',
    remedy: 'Use another method.',
  },
  'upstream-failed': {
    status: 502,
    meaning: 'The service behind the gateway broke the connection or answered something that is not HTTP.',
    remedy: 'Try again later.',
  },
  'auth-unavailable': {
    status: 503,
    meaning: 'The auth service could not be asked, so the request was refused.',
    remedy: 'Try again after the seconds that `Retry-After` names.',
  },
  'ratelimit-unavailable': {
    status: 503,
    meaning: 'The rate-limit service could not be asked, and the configuration says to refuse then.',
    remedy: 'Try again after the seconds that `Retry-After` names.',
  },
  'upstream-unavailable': {
    status: 503,
    meaning: 'The service behind the gateway could not be reached.',
    remedy: 'Try again after the seconds that `Retry-After` names.',
  },
  'upstream-overloaded': {
    status: 503,
    meaning: 'The service behind the gateway has as much under way as the configuration lets it have.',
    remedy: 'Try again after the seconds that `Retry-After` names.',
  },
  'storage-unavailable': {
    status: 503,
    meaning: 'The database could not be reached.',
    remedy: 'Try again after the seconds that `Retry-After` names.',
  },
  misconfigured: {
    status: 503,
    meaning: 'What the configuration says of this path is broken; the log and the diagnostics say where.',
    remedy: 'Mend the record that is meant for this path.',
  },
  'not-ready': {
    status: 503,
    meaning: 'The server is starting or stopping.',
    remedy: 'Try again after the seconds that `Retry-After` names.',
  },
  'upstream-timeout': {
    status: 504,
    meaning: 'The service behind the gateway did not answer in time.',
    remedy: 'Try again later, or ask for less.',
  },
  'loop-detected': {
    status: 508,
    meaning: 'The request has come through this gateway several times already.',
    remedy: 'Report it: a service that the gateway forwards to leads back to the gateway.',
  },
} as const satisfies Record<string, ProblemKind>;

export type ProblemSlug = keyof typeof problems;

/** The same whenever the problem comes up (RFC 9457 section 3.1.3): `Not found`. */
export function problemTitle(slug: ProblemSlug): string {
  const { title }: ProblemKind = problems[slug];
  return title ?? slug.charAt(0).toUpperCase() + slug.slice(1).replaceAll('-', ' ');
}
