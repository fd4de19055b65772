/** The parts that a Mapping is made of. */

/** What one part of a request must be. A `regex` is RE2's syntax and must match the whole text. */
export type TextMatch =
  | { readonly kind: 'exact'; readonly value: string }
  | { readonly kind: 'regex'; readonly pattern: string }
  | { readonly kind: 'present' };

/** A request header (lower-case name) or a query parameter that must be there and match. */
export interface NamedMatch {
  readonly name: string;
  readonly match: TextMatch;
}

/** Lower-case, without port. `suffix` is `*.example.com` (its value `.example.com`), `prefix` is `api.*` (its value `api.`). */
export type HostMatch =
  | { readonly kind: 'exact' | 'suffix' | 'prefix'; readonly value: string }
  | { readonly kind: 'regex'; readonly pattern: string };

/** RE2's syntax on the whole path; `\1` in the substitution is the first group. */
export interface RegexRewrite {
  readonly pattern: string;
  readonly substitution: string;
}

/** The answer is a redirect: nobody is asked who the client is, and no service is called. */
export interface Redirect {
  /** Host and port of the `Location`; undefined: the request's own. */
  readonly host: string | undefined;
  /** `path`: the whole path; `prefix`: in place of the mapping's prefix; `regex`: as a rewrite; undefined: the path stays. */
  readonly path:
    | { readonly kind: 'path' | 'prefix'; readonly value: string }
    | ({ readonly kind: 'regex' } & RegexRewrite)
    | undefined;
  readonly status: 301 | 302 | 303 | 307 | 308;
}

/** Conditions on which a failed attempt may be followed by another. */
export type RetryCondition =
  | '5xx'
  | 'gateway-error'
  | 'connect-failure'
  | 'refused-stream'
  | 'reset'
  | 'retriable-4xx'
  | 'retriable-status-codes';

export interface RetryPolicy {
  readonly retryOn: readonly RetryCondition[];
  /** Beside the first attempt. */
  readonly numRetries: number;
  /** Until the response headers of one attempt, in milliseconds; undefined: what is left of the whole. */
  readonly perTryTimeoutMs: number | undefined;
  /** For `retriable-status-codes`. */
  readonly statusCodes: readonly number[];
}

/** Bounds on what one mapping has under way at its service; beyond them a request is refused at once with 503. */
export interface CircuitBreakers {
  /** To each address of the service. */
  readonly maxConnections: number;
  /** Waiting for a connection. */
  readonly maxPendingRequests: number;
  readonly maxRequests: number;
  /** At the same time. */
  readonly maxRetries: number;
}

/** Each address of the service is asked in turn, whether there is traffic or not. */
export interface HealthCheck {
  /** On the service itself. */
  readonly path: string;
  /** The `Host` of the check; undefined: the address. */
  readonly hostname: string | undefined;
  readonly timeoutMs: number;
  readonly intervalMs: number;
  /** Failures in a row that make an address unhealthy. */
  readonly unhealthyThreshold: number;
  /** Successes in a row that make it healthy again. */
  readonly healthyThreshold: number;
  readonly expectedStatuses: readonly { readonly min: number; readonly max: number }[];
}

/** An address that fails so often in a row is left out for a while, unless too many already are. */
export interface OutlierDetection {
  /** 0 turns it off. */
  readonly consecutive5xx: number;
  /** Times the number of ejections in a row. */
  readonly baseEjectionTimeMs: number;
  readonly maxEjectionPercent: number;
}

export interface CorsRule {
  /** Origins such as `https://app.example`, or `*` alone. */
  readonly origins: readonly string[];
  readonly methods: readonly string[];
  /** What a script may send and read; empty: the safelisted ones. */
  readonly headers: readonly string[];
  readonly exposedHeaders: readonly string[];
  readonly credentials: boolean;
  /** How long a preflight's answer may be remembered, in seconds; undefined: the browser's own default. */
  readonly maxAgeSeconds: number | undefined;
}

/** `name` in lower case. Without `append` what is there under the name is replaced. */
export interface HeaderValue {
  readonly name: string;
  readonly value: string;
  readonly append: boolean;
}

/** Removed first, then added. */
export interface HeaderRules {
  readonly add: readonly HeaderValue[];
  /** Lower-case names. */
  readonly remove: readonly string[];
}
