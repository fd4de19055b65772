/** Failed upstream calls: the problem for the client, a remedy for the operator, and the class for the attempt rules. */
import type { Fault } from '#config';
import { codeOf } from '#foundation';
import { type Problem, type ProblemSlug, problem } from '#http';

/** The gateway ended the call itself. `code` is that of the equivalent system error. */
export class CallAborted extends Error {
  override readonly name = 'CallAborted';
  readonly code: 'ETIMEDOUT' | 'ECONNRESET' | 'ECANCELED';

  constructor(code: CallAborted['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/** A circuit breaker rejected the request because a limit is reached. */
export class CircuitOpen extends Error {
  override readonly name = 'CircuitOpen';
  readonly code = 'OVERFLOW';
}

/** The service has no address at present. */
export class NoAddress extends Error {
  override readonly name = 'NoAddress';
  readonly code = 'NO_ADDRESS';

  constructor(service: string, whyEmpty: Fault | undefined) {
    super(`${service} has no address: ${whyEmpty ? `${whyEmpty.message}. ${whyEmpty.remedy}` : 'its list is empty'}`);
  }
}

export function timedOut(message: string): CallAborted {
  return new CallAborted('ETIMEDOUT', message);
}

/** A limit that says nothing about the service. */
export function limitReached(message: string): CallAborted {
  return new CallAborted('ECANCELED', message);
}

export function clientGone(): CallAborted {
  return new CallAborted('ECONNRESET', 'the client closed its connection');
}

export function clientPaused(ms: number): CallAborted {
  return new CallAborted('ECONNRESET', `the client did not read the response for ${ms} ms`);
}

export function clientSlow(): CallAborted {
  return new CallAborted('ECONNRESET', 'the client read the response too slowly while requests needed its slot');
}

/**
 * Decides whether a failed attempt may be retried:
 * - `connect`: nothing was sent.
 * - `refused`: the service has not processed the request (HTTP/2), and another session may take it.
 * - `reset`: the connection broke before a response.
 * - `timeout`: the service took too long.
 * - `never`: another attempt would fail the same way, or is not allowed.
 */
export type RetryClass = 'connect' | 'refused' | 'reset' | 'timeout' | 'never';

export interface Failure {
  readonly slug: ProblemSlug;
  readonly retry: RetryClass;
  /** Replaces the `Retry-After` of the problem. */
  readonly retryAfterSeconds?: number;
  /** Tells the operator what to do. It is only logged. */
  readonly remedy?: string;
  /** True if a client or this process can cause it at a healthy service. It does not count against the address. */
  readonly isProvoked?: true;
}

/** The classes of failures, each with its error codes from undici, our HTTP/2 client, the operating system or OpenSSL. */
const classes: readonly (readonly [failure: Failure, ...codes: readonly string[]])[] = [
  [{ slug: 'upstream-unavailable', retry: 'connect' }, 'ECONNREFUSED', 'EAI_AGAIN'],
  [{ slug: 'upstream-unavailable', retry: 'connect', isProvoked: true }, 'EADDRNOTAVAIL'],
  [
    { slug: 'upstream-unavailable', retry: 'connect', retryAfterSeconds: 5 },
    'ENOTFOUND',
    'EAI_FAIL',
    'EAI_NODATA',
    'EAI_NONAME',
    'EACCES',
    'EHOSTUNREACH',
    'EHOSTDOWN',
    'ENETUNREACH',
    'ENETDOWN',
  ],
  [
    {
      slug: 'upstream-unavailable',
      retry: 'never',
      remedy: 'raise the open file limit of this process (ulimit -n) or, for ENFILE, of this machine',
      isProvoked: true,
    },
    // The last one means that Node cannot open undici, which the first call loads.
    'EMFILE',
    'ENFILE',
    'ERR_INVALID_PACKAGE_CONFIG',
  ],
  [{ slug: 'upstream-unavailable', retry: 'never', isProvoked: true }, 'ENOBUFS'],
  [{ slug: 'upstream-unavailable', retry: 'never' }, 'NO_ADDRESS'],
  [
    {
      slug: 'upstream-unavailable',
      retry: 'connect',
      retryAfterSeconds: 5,
      remedy: 'name another host, because only trusted namespaces may lead there (KUBERNETES_TRUSTED_NAMESPACES)',
    },
    'OWN_MACHINE',
  ],
  [
    {
      slug: 'upstream-overloaded',
      retry: 'never',
      remedy: 'raise it in circuit_breakers if the service can handle more, or add addresses to the service',
    },
    'OVERFLOW',
  ],
  [
    { slug: 'upstream-failed', retry: 'reset' },
    'ECONNRESET',
    'ECONNABORTED',
    'EPIPE',
    'ENOTCONN',
    'UND_ERR_SOCKET',
    'UND_ERR_INFO',
    'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
    'UND_ERR_ABORT',
    'UND_ERR_ABORTED',
    'HTTP2_RESET',
  ],
  [{ slug: 'upstream-unavailable', retry: 'refused', isProvoked: true }, 'HTTP2_REFUSED'],
  [{ slug: 'upstream-timeout', retry: 'timeout' }, 'ETIMEDOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'],
  [{ slug: 'upstream-timeout', retry: 'never', isProvoked: true }, 'ECANCELED'],
  [{ slug: 'upstream-timeout', retry: 'connect' }, 'UND_ERR_CONNECT_TIMEOUT', 'HTTP2_CONNECT_TIMEOUT'],
  [
    {
      slug: 'upstream-failed',
      retry: 'connect',
      remedy: 'check the port of the service, or remove http2 or grpc from the record, which call it over HTTP/2',
    },
    'HTTP2_UNSUPPORTED',
  ],
  [
    {
      slug: 'upstream-failed',
      retry: 'reset',
      remedy: 'the response is not valid HTTP/2: check the port and the service',
    },
    'HTTP2_PROTOCOL',
  ],
  [
    {
      slug: 'upstream-failed',
      retry: 'reset',
      remedy:
        'the response is not valid HTTP/1.1: check the port, or set http2: true or grpc: true if the service speaks HTTP/2',
    },
    'HPE_',
    'ERR_ASSERTION',
    'ERR_INVALID_CHAR',
    'ERR_INVALID_HTTP_TOKEN',
    'ERR_HTTP_INVALID_HEADER_VALUE',
    'ERR_HTTP_INVALID_STATUS_CODE',
  ],
  [
    {
      slug: 'upstream-failed',
      retry: 'never',
      remedy: 'make the service send fewer or shorter headers, or raise UPSTREAM_HEADER_BYTES_MAX',
      // A service may echo parts of the request in its response headers.
      isProvoked: true,
    },
    'UND_ERR_HEADERS_OVERFLOW',
    'HTTP2_HEADERS_OVERFLOW',
  ],
  [{ slug: 'upstream-failed', retry: 'never' }, 'UND_ERR_RES_EXCEEDED_MAX_SIZE'],
  [
    {
      slug: 'upstream-failed',
      retry: 'connect',
      remedy:
        'trust its issuer with NODE_EXTRA_CA_CERTS=<file.pem>, make the service send the whole chain, or use http://',
    },
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'SELF_SIGNED_CERT_IN_CHAIN',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'UNABLE_TO_GET_ISSUER_CERT',
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
    'CERT_UNTRUSTED',
    'CERT_CHAIN_TOO_LONG',
    'INVALID_CA',
    'PATH_LENGTH_EXCEEDED',
  ],
  [
    {
      slug: 'upstream-failed',
      retry: 'connect',
      remedy: 'renew the certificate of the service, or check the clocks of both machines',
    },
    'CERT_HAS_EXPIRED',
    'CERT_NOT_YET_VALID',
    'CRL_HAS_EXPIRED',
    'CRL_NOT_YET_VALID',
  ],
  [
    {
      slug: 'upstream-failed',
      retry: 'connect',
      remedy: 'give the service a server certificate that is valid for its host name',
    },
    'UNABLE_TO_GET_CRL',
    'UNABLE_TO_DECRYPT_CERT_SIGNATURE',
    'UNABLE_TO_DECRYPT_CRL_SIGNATURE',
    'UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY',
    'CERT_SIGNATURE_FAILURE',
    'CRL_SIGNATURE_FAILURE',
    'ERROR_IN_CERT_NOT_BEFORE_FIELD',
    'ERROR_IN_CERT_NOT_AFTER_FIELD',
    'ERROR_IN_CRL_LAST_UPDATE_FIELD',
    'ERROR_IN_CRL_NEXT_UPDATE_FIELD',
    'CERT_REVOKED',
    'CERT_REJECTED',
    'INVALID_PURPOSE',
    'HOSTNAME_MISMATCH',
    'ERR_TLS_CERT_ALTNAME_INVALID',
  ],
  [
    {
      slug: 'upstream-failed',
      retry: 'connect',
      remedy:
        'check that the service speaks TLS on this port, in a version that both sides support; otherwise use http://',
    },
    'ERR_TLS_',
    'ERR_SSL_',
    'EPROTO',
  ],
  [{ slug: 'not-ready', retry: 'never', isProvoked: true }, 'UND_ERR_DESTROYED', 'UND_ERR_CLOSED', 'HTTP2_DESTROYED'],
  // The body does not have the length that the client declared. The client's connection is broken by then.
  [
    { slug: 'bad-request', retry: 'never', isProvoked: true },
    'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH',
    'HTTP2_BODY_LENGTH',
  ],
  // A bug in the gateway, or a feature of undici that it does not use. The client gets a 500, and an error is logged.
  [
    { slug: 'internal', retry: 'never', isProvoked: true },
    'UND_ERR',
    'UND_ERR_INVALID_ARG',
    'HTTP2_INVALID_REQUEST',
    'UND_ERR_INVALID_RETURN_VALUE',
    'UND_ERR_NOT_SUPPORTED',
    'UND_ERR_BPL_MISSING_UPSTREAM',
    'UND_ERR_MAX_ORIGINS_REACHED',
    'UND_ERR_REQ_RETRY',
    'UND_ERR_RESPONSE',
    'UND_ERR_PRX_TLS',
    'UND_ERR_PRX_CONN',
    'UND_ERR_REDIRECT_MAX',
    'UND_ERR_SOCKS5',
    'UND_ERR_WS_MESSAGE_SIZE_EXCEEDED',
    'ERR_WEBASSEMBLY_NOT_SUPPORTED',
  ],
];

/** The failures by error code. A code that ends in `_` matches every code with that prefix. */
export const failures: Readonly<Record<string, Failure>> = Object.fromEntries(
  classes.flatMap(([failure, ...codes]) => codes.map((code) => [code, failure])),
);

/** The codes that are prefixes: those of the HTTP parser, OpenSSL and Node's TLS. */
const families = ['HPE_', 'ERR_SSL_', 'ERR_TLS_'] as const;

const unknown: Failure = { slug: 'upstream-failed', retry: 'reset' };

export function failureOf(cause: unknown): Failure {
  const code = failureCode(cause);
  if (Object.hasOwn(failures, code)) return failures[code] ?? unknown;
  const family = families.find((one) => code.startsWith(one));
  return (family !== undefined && failures[family]) || unknown;
}

/** True when a client or this process may have caused the failure while the service is healthy. */
export function isProvoked(cause: unknown): boolean {
  return failureOf(cause).isProvoked === true || hasInvalidHeader(cause);
}

/** A service that echoes parts of the request may produce a header with invalid bytes. */
function hasInvalidHeader(cause: unknown): boolean {
  return cause instanceof Error && cause.name === 'HTTPParserError' && /header/i.test(cause.message);
}

/** Returns the problem for a failed call. Its cause is only logged, because it reveals internal addresses. */
export function upstreamProblem(cause: unknown): Problem {
  const { slug, retryAfterSeconds } = failureOf(cause);
  return problem(slug, {
    cause: explainFailure(cause),
    ...(retryAfterSeconds === undefined ? {} : { headers: { 'Retry-After': String(retryAfterSeconds) } }),
  });
}

/** Adds the remedy to the message, for the log. */
export function explainFailure(cause: unknown): unknown {
  const { remedy } = failureOf(cause);
  if (remedy === undefined) return cause;
  const { message = String(cause) } = Object(cause) as { message?: string };
  return new Error(`${message || failureCode(cause)}: ${remedy}`, { cause });
}

/**
 * When several IP addresses refuse the connection, Node throws an AggregateError with their code. The errors of
 * undici's parser reach us without their codes.
 */
function failureCode(cause: unknown): string {
  return codeOf(cause) || (cause instanceof Error && cause.name === 'HTTPParserError' ? 'HPE_' : '');
}

/** Counts the failed calls of a mapping by the problem that the client received. `failed` counts `upstream-failed`. */
export interface UpstreamCounts {
  /** Attempts beyond the first of each call. */
  retries: number;
  unavailable: number;
  failed: number;
  timeout: number;
  overloaded: number;
}

export function createUpstreamCounts(): UpstreamCounts {
  return { retries: 0, unavailable: 0, failed: 0, timeout: 0, overloaded: 0 };
}

/** Ignores problems that the client caused. */
export function countFailure(counts: UpstreamCounts, { slug }: Problem): void {
  const kind = kinds[slug];
  if (kind !== undefined) counts[kind] += 1;
}

const kinds: Partial<Record<string, keyof UpstreamCounts>> = {
  'upstream-unavailable': 'unavailable',
  'upstream-failed': 'failed',
  'upstream-timeout': 'timeout',
  'upstream-overloaded': 'overloaded',
} satisfies Partial<Record<ProblemSlug, keyof UpstreamCounts>>;
