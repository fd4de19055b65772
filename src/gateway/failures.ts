/** How an upstream can fail, and what the client is told: a table from cause to problem. */
import { type Problem, type ProblemSlug, problem } from '#http';

export interface Failure {
  readonly slug: ProblemSlug;
  /** `Retry-After` in seconds, where trying again makes sense. */
  readonly retryAfter?: number;
}

/** By the `code` of the error that the client library or the operating system gives. */
export const failures: Readonly<Record<string, Failure>> = {
  ECONNREFUSED: { slug: 'upstream-unavailable', retryAfter: 1 },
  ENOTFOUND: { slug: 'upstream-unavailable', retryAfter: 5 },
  EAI_AGAIN: { slug: 'upstream-unavailable', retryAfter: 1 },
  EHOSTUNREACH: { slug: 'upstream-unavailable', retryAfter: 5 },
  ENETUNREACH: { slug: 'upstream-unavailable', retryAfter: 5 },
  EADDRNOTAVAIL: { slug: 'upstream-unavailable', retryAfter: 1 },
  UND_ERR_CONNECT_TIMEOUT: { slug: 'upstream-timeout' },
  UND_ERR_HEADERS_TIMEOUT: { slug: 'upstream-timeout' },
  UND_ERR_BODY_TIMEOUT: { slug: 'upstream-timeout' },
  ETIMEDOUT: { slug: 'upstream-timeout' },
  ECONNRESET: { slug: 'upstream-failed' },
  EPIPE: { slug: 'upstream-failed' },
  UND_ERR_SOCKET: { slug: 'upstream-failed' },
  UND_ERR_HEADERS_OVERFLOW: { slug: 'upstream-failed' },
  UND_ERR_RESPONSE_EXCEEDED_MAX_SIZE: { slug: 'upstream-failed' },
  UND_ERR_DESTROYED: { slug: 'not-ready', retryAfter: 1 },
  UND_ERR_CLOSED: { slug: 'not-ready', retryAfter: 1 },
};

/** The problem for a failed exchange with an upstream. The cause goes to the log alone: it would tell of our inside. */
export function upstreamProblem(cause: unknown): Problem {
  const { slug, retryAfter } = failures[codeOf(cause) ?? ''] ?? {
    slug: 'upstream-failed',
  };
  return problem(slug, {
    cause,
    ...(retryAfter === undefined ? {} : { headers: { 'Retry-After': String(retryAfter) } }),
  });
}

/** Node wraps the refusals of several addresses in an AggregateError that carries their code. */
function codeOf(cause: unknown): string | undefined {
  if (typeof cause !== 'object' || cause === null) return undefined;
  const { code } = cause as { code?: unknown };
  return typeof code === 'string' ? code : undefined;
}
