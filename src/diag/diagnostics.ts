/** The JSON of the diagnostics as types: the contract between the snapshot, the events and the page. */

/**
 * A list has at most `rows_max` rows, and a member ending with `_total` contains the full number. Two query parameters
 * apply before that bound. `filter` selects the routes whose name, prefix, service or target contains it (ignoring
 * case), their clusters and services, and other clusters and services that contain it. `offset` skips the first of the
 * selected routes. Other lists are not affected.
 */
export interface Diagnostics {
  readonly version: string;
  readonly uptime_seconds: number;
  /** The time of this snapshot, in RFC 3339. */
  readonly at: string;
  readonly threads: ThreadsRow;
  readonly connections: ConnectionsRow;
  readonly configuration: ConfigurationRow;
  /** The Kubernetes cluster that the records come from. Undefined if they come from files. */
  readonly kubernetes: KubernetesRow | undefined;
  /** What is not in use, or not all of it, because of the errors below: parts of the files, and objects of a cluster. */
  readonly refused: readonly RefusedRow[];
  readonly refused_total: number;
  readonly errors: readonly ErrorRow[];
  readonly errors_total: number;
  /** Findings that are valid, but may not be intended. */
  readonly notices: readonly ErrorRow[];
  readonly notices_total: number;
  /** The query parameters. */
  readonly filter: string;
  readonly offset: number;
  readonly rows_max: number;
  /** In matching order. */
  readonly routes: readonly RouteRow[];
  /** The number of all routes, and of those that the filter selects. */
  readonly routes_total: number;
  readonly routes_matching: number;
  /** The traffic that matched no route. */
  readonly unmatched: TrafficRow;
  /** Methods and paths that matched no route, latest first, at most 20. */
  readonly unmatched_requests: readonly UnmatchedRow[];
  /** Remote HTTP services, including auth services. */
  readonly clusters: readonly ClusterRow[];
  readonly clusters_total: number;
  readonly services: readonly ServiceRow[];
  readonly services_total: number;
  readonly versions: readonly VersionRow[];
  /** The JwtProviders in use. */
  readonly token_providers: readonly TokenProviderRow[];
  /** The certificates of the gateway. Empty without TLS. */
  readonly certificates: readonly CertificateRow[];
  readonly certificates_total: number;
  readonly limits: readonly LimitRow[];
  readonly limits_total: number;
  /** Requests with a response status of 500 or more, newest first, at most 100. */
  readonly failures: readonly FailureRow[];
  /** Undefined without an auth service. */
  readonly auth: AuthRow | undefined;
  readonly ratelimit: RateLimitRow | undefined;
}

/** The threads that serve requests. The other members are about all of them together. */
export interface ThreadsRow {
  readonly configured: number;
  /** Fewer than configured after one has ended, until another one has started in its place. */
  readonly serving: number;
  /** Threads that ended although they were not told to, latest first, at most 5. */
  readonly ended: readonly EndedThreadRow[];
  readonly ended_total: number;
}

export interface EndedThreadRow {
  /** The first thread has the number 1. One that starts in the place of another has the next number. */
  readonly number: number;
  /** RFC 3339. */
  readonly at: string;
  readonly reason: string;
}

/** Client connections at the listeners of this process, except the admin port. */
export interface ConnectionsRow {
  readonly open: number;
  /** `CONNECTIONS_MAX` */
  readonly max: number;
  /** Those that speak HTTP/2, without those of the rate-limit port, and their requests since the start. */
  readonly http2: number;
  readonly http2_requests: number;
}

/** Counts the responses of auth services since the start. `error` counts calls without a response. */
export interface AuthRow {
  readonly allowed: number;
  readonly denied: number;
  readonly error: number;
  /** RFC 3339. Undefined if there was no error. */
  readonly last_error_at: string | undefined;
}

/** Counts the decisions of the rate-limit service since the start. `error` counts calls without a response. */
export interface RateLimitRow {
  readonly ok: number;
  readonly over: number;
  readonly error: number;
  /** RFC 3339. Also the time of a decision that passed uncounted, because Redis did not respond. */
  readonly last_error_at: string | undefined;
}

/** The current configuration. Replicas with the same files have the same hash. */
export interface ConfigurationRow {
  /** 1 at the start of the process, incremented by each change that took effect. */
  readonly generation: number;
  readonly hash: string;
  /** RFC 3339. */
  readonly applied_at: string;
}

/** Times are in RFC 3339, and counts are since the start. */
export interface KubernetesRow {
  /** That of frontdesk itself. */
  readonly namespace: string;
  /** Those that are read. Empty for all. */
  readonly namespaces: readonly string[];
  /** What is read: `services`, `mappings.gateway.local`. */
  readonly resources: readonly string[];
  /** False until everything has been read for the first time: until then the server is not ready. */
  readonly read: boolean;
  /** When the API server last answered. */
  readonly answered_at: string | undefined;
  readonly deliveries: number;
  readonly read_failures: number;
  /** What cannot be read now, and why. What was read last stays in use. */
  readonly unread: readonly { readonly resource: string; readonly since: string; readonly message: string }[];
  /** Objects with records: accepted, refused with their last valid version in use, and refused without one. */
  readonly objects: { readonly accepted: number; readonly last_valid: number; readonly refused: number };
  /** Statuses and Events that were written to the cluster, those that failed, and those that wait. */
  readonly writes: { readonly succeeded: number; readonly failed: number; readonly waiting: number };
}

export interface RouteRow {
  readonly name: string;
  readonly prefix: string;
  /** The other conditions of the route and its share of the requests: `POST`, `host api.*`, `20 %`. */
  readonly conditions: readonly string[];
  readonly rewrite: string;
  /** As the record names it. `''` for an internal route, a refused one, and one of the Gateway API that calls none. */
  readonly service: string;
  readonly target: string;
  /** Whether an auth service decides about its requests. */
  readonly authenticated: boolean;
  /** Which clients may come: `only from 10.0.0.0/8, not from 10.0.0.9`. `''` for a route without lists. */
  readonly addresses: string;
  /** The name of the AuthService. Undefined for an open route. */
  readonly auth: string | undefined;
  /** True if the auth service lets only administrators pass. */
  readonly admins_only: boolean;
  readonly labels: readonly string[];
  /** The limits that can count its requests, at most 10, as in `LimitRow`. Empty if another process has the limits. */
  readonly limits: readonly Pick<LimitRow, 'descriptor' | 'limit'>[];
  readonly limits_total: number;
  readonly timeout_ms: number | undefined;
  /** Whether its responses are compressed for clients that accept it. */
  readonly compressed: boolean;
  /** `file:line`. Undefined for internal routes. */
  readonly source: string | undefined;
  /** True for routes that the server defines itself. */
  readonly internal: boolean;
  /** The `name` of its cluster. Undefined for a service in this process and for a redirect. */
  readonly cluster: string | undefined;
  /** Why it answers 503: its record is refused, or one that may protect it. Undefined for other routes. */
  readonly refusal: string | undefined;
  /** Why it answers 500: its backend does not exist, or may not be used. Undefined for other routes. */
  readonly fault: string | undefined;
  /**
   * Depends on the share of responses below 500 in the last five minutes: ok from 90 %, degraded from 70 %, failing
   * below that, unknown without requests. Always failing when no address of the cluster is usable.
   */
  readonly health: 'ok' | 'degraded' | 'failing' | 'unknown';
  readonly traffic: TrafficRow;
}

export interface ClusterRow {
  /**
   * The name of the service. If it has several clusters with different settings, ` #2` is appended to the second, and
   * so on.
   */
  readonly name: string;
  readonly service: string;
  readonly addresses: readonly {
    readonly origin: string;
    readonly health: 'unknown' | 'healthy' | 'unhealthy' | 'ejected';
    readonly active_requests: number;
  }[];
  /** False until the first request, unless the cluster has a health check. */
  readonly used: boolean;
  /** Open when another request or upgrade would be rejected now. `overflows` counts the rejected ones. */
  readonly circuit: 'closed' | 'open';
  readonly active_requests: number;
  /** Connections that have switched protocols, and requests to do so. */
  readonly active_upgrades: number;
  readonly overflows: number;
  /** The mappings that use the cluster, at most 100. Empty for an auth service. */
  readonly mappings: readonly string[];
  readonly mappings_total: number;
}

/** A service that a record names, and the target that it resolves to. */
export interface ServiceRow {
  readonly role: string;
  readonly service: string;
  readonly target: string;
}

/** A part of the API that is deprecated or has a sunset date. Times are in RFC 3339. */
export interface VersionRow {
  readonly name: string;
  readonly prefix: string;
  readonly deprecation: string | undefined;
  readonly sunset: string | undefined;
  readonly successor: string | undefined;
  /** `file:line`. */
  readonly source: string;
}

/** An issuer of tokens. Times are in RFC 3339, and counts are since the start. */
export interface TokenProviderRow {
  readonly name: string;
  readonly issuer: string;
  /** A URL without its query, or `the record`. */
  readonly keys_from: string;
  /** The number of usable keys. Undefined while there have never been any, so that its tokens cannot be checked. */
  readonly keys: number | undefined;
  /** Undefined for keys in the record. */
  readonly keys_read_at: string | undefined;
  /** Failed attempts to read the keys. */
  readonly failures: number;
  /** The last attempt, if it failed. */
  readonly last_error: string | undefined;
  readonly last_error_at: string | undefined;
  /** Tokens that were verified, and that were known from a verification before. */
  readonly valid: number;
  readonly remembered: number;
  readonly invalid: number;
  /** Tokens that no key of the issuer has signed. */
  readonly unknown_key: number;
  /** Tokens that could not be checked, because there were no keys. */
  readonly unchecked: number;
  /** Why the last invalid token was rejected. */
  readonly last_rejection: string | undefined;
  readonly last_rejection_at: string | undefined;
  /** `file:line`. */
  readonly source: string;
}

export interface CertificateRow {
  /** `TLS_CERT`, the file below TLS_DIR, or the Secret. */
  readonly name: string;
  /** The hosts that it is for, at most 100. */
  readonly hosts: readonly string[];
  /** RFC 3339. */
  readonly expires_at: string;
}

export interface LimitRow {
  readonly domain: string;
  /** The descriptor's entries, outermost first: `key`, or `key=…` if the entry has a value. */
  readonly descriptor: string;
  /** `10 per minute` or `unlimited`. */
  readonly limit: string;
  readonly source: string;
  /** Hits in this process since the start. */
  readonly hits: number;
  readonly over: number;
  /** The used share of the fullest counter, from 0 to 1. Undefined if this process has counted no hit of the limit. */
  readonly fullness: number | undefined;
}

export interface UnmatchedRow {
  /** The time of the last request, in RFC 3339. */
  readonly at: string;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly requests: number;
}

export interface FailureRow {
  /** RFC 3339. */
  readonly at: string;
  readonly request_id: string;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** Undefined if no route matched. */
  readonly mapping: string | undefined;
  readonly status: number;
  /** Undefined if the status came from the service itself. */
  readonly problem: string | undefined;
  readonly reason: string | undefined;
  /** The address that was tried last. Undefined if none was, or for a service in this process. */
  readonly upstream: string | undefined;
}

export interface RefusedRow {
  /** `records` includes the limits. */
  readonly part: 'records' | 'users' | 'certificates';
  /** The object of a cluster: `Mapping shop/orders`. Undefined for a part of the files. */
  readonly object: string | undefined;
  /** RFC 3339. */
  readonly since: string;
  /** What holds until the errors are fixed, such as `records and limits stay as they were`. */
  readonly consequence: string;
}

export interface ErrorRow {
  /** `file:line`, or a file or directory as a whole. */
  readonly source: string;
  readonly record: string | undefined;
  readonly message: string;
  readonly remedy: string;
}

/** The requests of a route, or those that matched no route. All numbers except `recent` are since the start. */
export interface TrafficRow {
  readonly requests: number;
  /** Unfinished requests. */
  readonly in_flight: number;
  /** Responses with status 500 or more. */
  readonly errors: number;
  /** By lists of addresses. */
  readonly refused_by_address: number;
  readonly refused_by_auth: number;
  readonly refused_by_limit: number;
  /** The client disconnected before it had received the response: status 499 in the log and the metrics. */
  readonly abandoned: number;
  /** Undefined for a service in this process. */
  readonly upstream: UpstreamRow | undefined;
  /** Undefined when there was no request in the last five minutes. */
  readonly recent: RecentRow | undefined;
}

/** Counts retries, and failures by the problem that was sent to the client. */
export interface UpstreamRow {
  readonly retries: number;
  readonly unavailable: number;
  readonly failed: number;
  readonly timeout: number;
  readonly overloaded: number;
}

/** The traffic of the last five minutes. */
export interface RecentRow {
  readonly slot_seconds: number;
  /** Counts per slot, oldest first. The last slot is still being filled. */
  readonly requests: readonly number[];
  readonly errors: readonly number[];
  /** The average of the last minute. */
  readonly requests_per_second: number;
  /** From 0 to 1. This and the following members cover all five minutes. */
  readonly error_share: number;
  readonly refused_by_address: number;
  readonly refused_by_auth: number;
  readonly refused_by_limit: number;
  readonly p50_ms: number | undefined;
  readonly p99_ms: number | undefined;
}
