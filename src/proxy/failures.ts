/** How an upstream can fail: a table from cause to what the client is told, what may be tried again, and what the operator can do. */
import { type Problem, type ProblemSlug, problem } from '#http';

/** A call was ended from here; `code` as the operating system would put it. */
export class CallAborted extends Error {
  override readonly name = 'CallAborted';
  readonly code: 'ETIMEDOUT' | 'ECONNRESET';

  constructor(code: 'ETIMEDOUT' | 'ECONNRESET', message: string) {
    super(message);
    this.code = code;
  }
}

/** A circuit breaker refuses the request: enough are under way. */
export class CircuitOpen extends Error {
  override readonly name = 'CircuitOpen';
  readonly code = 'OVERFLOW';
}

export function timedOut(message: string): CallAborted {
  return new CallAborted('ETIMEDOUT', message);
}

export function clientGone(): CallAborted {
  return new CallAborted('ECONNRESET', 'the client closed its connection');
}

/**
 * `connect`: nothing was sent. `reset`: the exchange broke before there was an answer. `timeout`: it took too long.
 * `never`: the next try would end the same way, or must not be made.
 */
export type RetryClass = 'connect' | 'reset' | 'timeout' | 'never';

export interface Failure {
  readonly slug: ProblemSlug;
  readonly retry: RetryClass;
  /** `Retry-After` in seconds, where trying again makes sense. */
  readonly retryAfter?: number;
  /** For the log: what the operator can do. */
  readonly remedy?: string;
}

const refused: Failure = { slug: 'upstream-unavailable', retry: 'connect', retryAfter: 1 };
const unreachable: Failure = { slug: 'upstream-unavailable', retry: 'connect', retryAfter: 5 };
const broken: Failure = { slug: 'upstream-failed', retry: 'reset' };
const slow: Failure = { slug: 'upstream-timeout', retry: 'timeout' };
const stopping: Failure = { slug: 'not-ready', retry: 'never', retryAfter: 1 };
/** A mistake of ours or a part of the library that we do not use: it reads 500, and the log calls it an error. */
const ours: Failure = { slug: 'internal', retry: 'never' };

const unknownIssuer: Failure = {
  slug: 'upstream-failed',
  retry: 'connect',
  remedy: 'trust its issuer with NODE_EXTRA_CA_CERTS=<file.pem>, let the service send the whole chain, or use http://',
};
const invalidCertificate: Failure = {
  slug: 'upstream-failed',
  retry: 'connect',
  remedy: 'renew the certificate of the service, or check the clocks of both machines',
};
const refusedCertificate: Failure = {
  slug: 'upstream-failed',
  retry: 'connect',
  remedy: 'give the service a certificate that is valid for a server of its name',
};
const noTls: Failure = {
  slug: 'upstream-failed',
  retry: 'connect',
  remedy:
    'check that the service speaks TLS on this port, in a version that both sides take; use http:// if it does not',
};
const badFraming: Failure = {
  slug: 'upstream-failed',
  retry: 'reset',
  remedy: 'the service answered with something that is not HTTP/1.1: check the port, and the service',
};
const hugeHeaders: Failure = {
  slug: 'upstream-failed',
  retry: 'never',
  remedy: 'let the service send fewer or shorter headers, or start with --max-http-header-size=<bytes>',
};

/** By the `code` of the error that the client library, the operating system or OpenSSL gives. */
export const failures: Readonly<Record<string, Failure>> = {
  ECONNREFUSED: refused,
  EADDRNOTAVAIL: refused,
  EAI_AGAIN: refused,
  ENOTFOUND: unreachable,
  EAI_FAIL: unreachable,
  EAI_NODATA: unreachable,
  EAI_NONAME: unreachable,
  EHOSTUNREACH: unreachable,
  EHOSTDOWN: unreachable,
  ENETUNREACH: unreachable,
  ENETDOWN: unreachable,
  EACCES: unreachable,
  EMFILE: {
    slug: 'upstream-unavailable',
    retry: 'never',
    retryAfter: 1,
    remedy: 'raise the limit of open files of this process',
  },
  ENFILE: {
    slug: 'upstream-unavailable',
    retry: 'never',
    retryAfter: 1,
    remedy: 'raise the limit of open files of this machine',
  },
  ENOBUFS: { slug: 'upstream-unavailable', retry: 'never', retryAfter: 1 },
  OVERFLOW: { slug: 'upstream-overloaded', retry: 'never', retryAfter: 1 },

  ECONNRESET: broken,
  ECONNABORTED: broken,
  EPIPE: broken,
  ENOTCONN: broken,
  UND_ERR_SOCKET: broken,
  UND_ERR_INFO: broken,
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: broken,

  ETIMEDOUT: slow,
  UND_ERR_CONNECT_TIMEOUT: { slug: 'upstream-timeout', retry: 'connect' },
  UND_ERR_HEADERS_TIMEOUT: slow,
  UND_ERR_BODY_TIMEOUT: slow,

  HPE_: badFraming,
  ERR_ASSERTION: badFraming,
  ERR_INVALID_CHAR: badFraming,
  ERR_HTTP_INVALID_HEADER_VALUE: badFraming,
  ERR_HTTP_INVALID_STATUS_CODE: badFraming,
  ERR_INVALID_HTTP_TOKEN: badFraming,
  UND_ERR_HEADERS_OVERFLOW: hugeHeaders,
  UND_ERR_RES_EXCEEDED_MAX_SIZE: { slug: 'upstream-failed', retry: 'never' },

  DEPTH_ZERO_SELF_SIGNED_CERT: unknownIssuer,
  SELF_SIGNED_CERT_IN_CHAIN: unknownIssuer,
  UNABLE_TO_GET_ISSUER_CERT: unknownIssuer,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: unknownIssuer,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: unknownIssuer,
  CERT_UNTRUSTED: unknownIssuer,
  CERT_CHAIN_TOO_LONG: unknownIssuer,
  INVALID_CA: unknownIssuer,
  PATH_LENGTH_EXCEEDED: unknownIssuer,
  CERT_HAS_EXPIRED: invalidCertificate,
  CERT_NOT_YET_VALID: invalidCertificate,
  CRL_HAS_EXPIRED: invalidCertificate,
  CRL_NOT_YET_VALID: invalidCertificate,
  UNABLE_TO_GET_CRL: refusedCertificate,
  UNABLE_TO_DECRYPT_CERT_SIGNATURE: refusedCertificate,
  UNABLE_TO_DECRYPT_CRL_SIGNATURE: refusedCertificate,
  UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY: refusedCertificate,
  CERT_SIGNATURE_FAILURE: refusedCertificate,
  CRL_SIGNATURE_FAILURE: refusedCertificate,
  ERROR_IN_CERT_NOT_BEFORE_FIELD: refusedCertificate,
  ERROR_IN_CERT_NOT_AFTER_FIELD: refusedCertificate,
  ERROR_IN_CRL_LAST_UPDATE_FIELD: refusedCertificate,
  ERROR_IN_CRL_NEXT_UPDATE_FIELD: refusedCertificate,
  CERT_REVOKED: refusedCertificate,
  CERT_REJECTED: refusedCertificate,
  INVALID_PURPOSE: refusedCertificate,
  HOSTNAME_MISMATCH: refusedCertificate,
  ERR_TLS_CERT_ALTNAME_INVALID: refusedCertificate,
  ERR_TLS_: noTls,
  ERR_SSL_: noTls,
  EPROTO: noTls,

  UND_ERR_DESTROYED: stopping,
  UND_ERR_CLOSED: stopping,
  UND_ERR_ABORT: broken,
  UND_ERR_ABORTED: broken,
  /** The client's own length was not what it sent; its connection is broken by then. */
  UND_ERR_REQ_CONTENT_LENGTH_MISMATCH: { slug: 'bad-request', retry: 'never' },

  UND_ERR: ours,
  UND_ERR_INVALID_ARG: ours,
  UND_ERR_INVALID_RETURN_VALUE: ours,
  UND_ERR_NOT_SUPPORTED: ours,
  UND_ERR_BPL_MISSING_UPSTREAM: ours,
  UND_ERR_MAX_ORIGINS_REACHED: ours,
  UND_ERR_REQ_RETRY: ours,
  UND_ERR_RESPONSE: ours,
  UND_ERR_PRX_TLS: ours,
  UND_ERR_PRX_CONN: ours,
  UND_ERR_REDIRECT_MAX: ours,
  ERR_WEBASSEMBLY_NOT_SUPPORTED: ours,
  UND_ERR_SOCKS5: ours,
  UND_ERR_WS_MESSAGE_SIZE_EXCEEDED: ours,
};

/** Rows that stand for every code that begins so: the parser's, and OpenSSL's. */
const families = ['HPE_', 'ERR_SSL_', 'ERR_TLS_'] as const;

const unknown: Failure = broken;

export function failureOf(cause: unknown): Failure {
  const code = codeOf(cause);
  if (code === undefined) return unknown;
  if (Object.hasOwn(failures, code)) return failures[code] ?? unknown;
  const family = families.find((one) => code.startsWith(one));
  return (family !== undefined && failures[family]) || unknown;
}

/** The problem for a failed exchange with an upstream. The cause goes to the log alone: it would tell of our inside. */
export function upstreamProblem(cause: unknown): Problem {
  const { slug, retryAfter, remedy } = failureOf(cause);
  return problem(slug, {
    cause: remedy === undefined ? cause : withRemedy(cause, remedy),
    ...(retryAfter === undefined ? {} : { headers: { 'Retry-After': String(retryAfter) } }),
  });
}

function withRemedy(cause: unknown, remedy: string): Error {
  const { message = String(cause) } = Object(cause) as { message?: string };
  return new Error(`${message || codeOf(cause)}: ${remedy}`, { cause });
}

/**
 * Node wraps the refusals of several addresses in an AggregateError that carries their code. undici's parser has codes
 * for its errors and loses them on the way.
 */
function codeOf(cause: unknown): string | undefined {
  if (typeof cause !== 'object' || cause === null) return undefined;
  const { code, name } = cause as { code?: unknown; name?: unknown };
  if (typeof code === 'string') return code;
  return name === 'HTTPParserError' ? 'HPE_' : undefined;
}
