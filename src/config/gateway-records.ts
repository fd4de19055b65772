/** What the gateway's records say, as plain frozen data: Mapping, AuthService, RateLimitService and Version. */
import type { LabelGroup } from './label-records.ts';
import type {
  CircuitBreakers,
  CorsRule,
  HeaderRules,
  HealthCheck,
  HostMatch,
  NamedMatch,
  OutlierDetection,
  Redirect,
  RegexRewrite,
  RetryPolicy,
  TextMatch,
} from './mapping-parts.ts';
import type { Source } from './source.ts';

export type * from './label-records.ts';
export type * from './mapping-parts.ts';

export interface Mapping {
  readonly kind: 'Mapping';
  readonly name: string;
  /** A path that starts with `/`, without a slash at the end (but for `/` itself); a pattern where `prefixMatch` is `regex`. */
  readonly prefix: string;
  /** `segments`: the path or anything below it; `exact`: the path alone; `regex`: the whole path. */
  readonly prefixMatch: 'segments' | 'exact' | 'regex';
  /** Of the prefix. */
  readonly caseSensitive: boolean;
  readonly host: HostMatch | undefined;
  readonly method: TextMatch | undefined;
  /** All must match. */
  readonly headers: readonly NamedMatch[];
  /** All must match, each by its first value. */
  readonly queryParameters: readonly NamedMatch[];
  /** Higher is tried first, whatever the prefix. */
  readonly precedence: number;
  /** Percent of the requests that its group matches; undefined: a fair share of what is left. For a shadow the percent that is copied. */
  readonly weight: number | undefined;
  /** Gets copies of the requests of its group; what it answers is dropped. */
  readonly shadow: boolean;
  /** Replaces the matched prefix; `''` leaves the path alone. @default '/' */
  readonly rewrite: string;
  /** In place of `rewrite`. */
  readonly regexRewrite: RegexRewrite | undefined;
  /** The `Host` that the service sees; undefined: its own. */
  readonly hostRewrite: string | undefined;
  readonly redirect: Redirect | undefined;
  /** A service reference: `name`, `name:port` or a URL. Of a redirect it is not called. */
  readonly service: string;
  /** Until the service's response headers, retries included, in milliseconds; 0: without end; undefined: the setting's. */
  readonly timeoutMs: number | undefined;
  readonly connectTimeoutMs: number | undefined;
  /** How long the body may rest, either way, in milliseconds; 0: without end; undefined: the setting's. */
  readonly idleTimeoutMs: number | undefined;
  readonly retryPolicy: RetryPolicy | undefined;
  readonly circuitBreakers: CircuitBreakers;
  readonly healthCheck: HealthCheck | undefined;
  readonly outlierDetection: OutlierDetection;
  readonly loadBalancer: 'round_robin' | 'least_request';
  readonly cors: CorsRule | undefined;
  readonly requestHeaders: HeaderRules;
  readonly responseHeaders: HeaderRules;
  /** Protocols, in lower case, to which a client may switch the connection: `websocket`. */
  readonly allowUpgrade: readonly string[];
  /** Label groups by rate-limit domain. */
  readonly labels: Readonly<Record<string, readonly LabelGroup[]>>;
  readonly bypassAuth: boolean;
  /** The name of an AuthService; undefined: the default one. */
  readonly authService: string | undefined;
  readonly source: Source;
}

/** A path that a broken Mapping was meant for, and everything below it. */
export interface HeldPrefix extends Pick<Mapping, 'caseSensitive' | 'precedence'> {
  readonly name: string;
  readonly prefix: string;
  readonly source: Source;
}

export interface AuthService {
  readonly kind: 'AuthService';
  readonly name: string;
  readonly authService: string;
  readonly proto: 'http';
  /** Asked for mappings that name none, and for the gateway's own pages. One must be where there are several. */
  readonly isDefault: boolean;
  /** Put verbatim before the path that is asked about. @default '' */
  readonly pathPrefix: string;
  /** Lower-case names of client headers that the service is told, beside the usual ones. */
  readonly allowedRequestHeaders: readonly string[];
  /** Lower-case names of headers that only the auth service can set on a routed request. */
  readonly allowedAuthorizationHeaders: readonly string[];
  /** Told to the service in place of what the client sent under these names. */
  readonly addAuthHeaders: readonly { readonly name: string; readonly value: string }[];
  /** How much of the body the service is told; undefined: nothing. Without `allowPartial` a larger one is 413. */
  readonly includeBody: { readonly maxBytes: number; readonly allowPartial: boolean } | undefined;
  readonly timeoutMs: number;
  /** The status when the auth service is down, slow or answers 5xx. @default 503 */
  readonly statusOnError: number;
  readonly failureModeAllow: boolean;
  /** How long a positive answer holds for the same credentials, in milliseconds; 0: it is asked each time. @default 0 */
  readonly cacheMs: number;
  readonly source: Source;
}

export interface RateLimitService {
  readonly kind: 'RateLimitService';
  readonly name: string;
  readonly service: string;
  /** The label domain that is sent. @default 'gateway' */
  readonly domain: string;
  readonly timeoutMs: number;
  readonly failureModeDeny: boolean;
  /** What a client is told of its limits. @default 'ietf' */
  readonly headers: RateLimitHeaderStyle;
  /** Lower-case names of the headers that the service may add to an answer. @default the names that envoyproxy/ratelimit and Envoy write */
  readonly allowedResponseHeaders: readonly string[];
  readonly source: Source;
}

/** Of the two times at least one is there; both are milliseconds since the epoch. */
export interface Version {
  readonly kind: 'Version';
  readonly name: string;
  /** As a mapping's, by whole segments: whoever serves what is below it. */
  readonly prefix: string;
  /** Past or to come. */
  readonly deprecatedAtMs: number | undefined;
  /** From then on it is gone; never before `deprecatedAtMs`. */
  readonly endsAtMs: number | undefined;
  /** A path of the gateway, or an absolute URL. */
  readonly successor: string | undefined;
  /** The same, of a page for people. */
  readonly info: string | undefined;
  readonly source: Source;
}

/** `ietf`: `RateLimit` and `RateLimit-Policy`; `draft_03`: `X-RateLimit-Limit`, `-Remaining`, `-Reset` as Envoy writes them. */
export type RateLimitHeaderStyle = 'ietf' | 'draft_03' | 'none';
