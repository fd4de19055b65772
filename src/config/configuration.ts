/** What a configuration directory says, as plain frozen data: the shapes that every other module reads. */

/** Where a piece of configuration stands, for messages and for the diagnostics page. Lines count from 1. */
export interface Source {
  readonly file: string;
  readonly line: number;
}

/** One label of a group: `header` is lower-case; `default` is sent when the header is missing and `omitIfNotPresent` is false. */
export interface Label {
  readonly name: string;
  readonly header: string;
  readonly omitIfNotPresent: boolean;
  readonly default: string;
}

/** One descriptor in the making. The group's name is for people. */
export interface LabelGroup {
  readonly name: string;
  readonly labels: readonly Label[];
}

export interface Mapping {
  readonly kind: 'Mapping';
  readonly name: string;
  /** Whole path segments, starting with `/`, without a slash at the end (but for `/` itself). */
  readonly prefix: string;
  /** Replaces the matched prefix; `''` leaves the path alone. @default '/' */
  readonly rewrite: string;
  /** A service reference: `name`, `name:port` or a URL. */
  readonly service: string;
  /** Label groups by rate-limit domain. */
  readonly labels: Readonly<Record<string, readonly LabelGroup[]>>;
  /** Until the upstream's response headers, in milliseconds; undefined: the setting's. */
  readonly timeoutMs: number | undefined;
  readonly connectTimeoutMs: number | undefined;
  readonly bypassAuth: boolean;
  readonly source: Source;
}

export interface AuthService {
  readonly kind: 'AuthService';
  readonly name: string;
  readonly authService: string;
  readonly proto: 'http';
  /** Lower-case names of headers that only the auth service can set on a routed request. */
  readonly allowedAuthorizationHeaders: readonly string[];
  readonly timeoutMs: number;
  /** The status when the auth service is down, slow or answers 5xx. @default 503 */
  readonly statusOnError: number;
  readonly failureModeAllow: boolean;
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

/** `ietf`: `RateLimit` and `RateLimit-Policy`; `draft_03`: `X-RateLimit-Limit`, `-Remaining`, `-Reset` as Envoy writes them. */
export type RateLimitHeaderStyle = 'ietf' | 'draft_03' | 'none';

export type Unit = 'second' | 'minute' | 'hour' | 'day' | 'week' | 'month' | 'year';

/** How a limit counts; src/ratelimit/counters.ts says exactly what each means. */
export type Algorithm = 'fixed_window' | 'sliding_window' | 'token_bucket';

/** So many requests per `unitMultiplier` × `unit`. `unlimited` has no unit and no number (they read `'second'` and 0). */
export interface Limit {
  readonly unit: Unit;
  /** 30 with `'second'` is half a minute. @default 1 */
  readonly unitMultiplier: number;
  readonly requestsPerUnit: number;
  readonly unlimited: boolean;
  readonly name: string | undefined;
  /** Names of the limits that this one drops when both meet the same request. */
  readonly replaces: readonly string[];
  /** Counts, and never denies. */
  readonly shadowMode: boolean;
  /** @default 'fixed_window' */
  readonly algorithm: Algorithm;
  /** What a token bucket holds; undefined: `requestsPerUnit`. */
  readonly burst: number | undefined;
}

/** One level of a limits file; `value` undefined matches any value of `key`, and `*` in it any text. */
export interface LimitDescriptor {
  readonly key: string;
  readonly value: string | undefined;
  /** All of them count; none lets pass. */
  readonly limits: readonly Limit[];
  /** One counter for all values that match the wildcard. */
  readonly shareThreshold: boolean;
  /** Metrics tell the values apart. */
  readonly detailedMetric: boolean;
  readonly descriptors: readonly LimitDescriptor[];
  readonly source: Source;
}

export interface LimitDomain {
  readonly domain: string;
  readonly descriptors: readonly LimitDescriptor[];
  readonly source: Source;
}

/** `passwordHash` is a scrypt PHC string. */
export interface User {
  readonly name: string;
  readonly passwordHash: string;
}

/** Something in the configuration that cannot be used, with what to do about it. */
export interface ConfigurationError {
  readonly source: Source;
  /** For example `Mapping hotel`; undefined when the file as a whole is at fault. */
  readonly record: string | undefined;
  readonly message: string;
  /** A second place that the message speaks of, such as the record that has the name already. */
  readonly other?: Source | undefined;
  readonly remedy: string;
}

export interface Configuration {
  readonly mappings: readonly Mapping[];
  readonly authServices: readonly AuthService[];
  readonly rateLimitServices: readonly RateLimitService[];
  readonly limits: readonly LimitDomain[];
  readonly users: readonly User[];
  /** Rows by table for an empty database, as demo.yaml has them (checked for shape: tables of rows of scalars). */
  readonly demo: Readonly<Record<string, readonly Readonly<Record<string, string | number | boolean | null>>[]>>;
}
