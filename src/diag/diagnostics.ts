/** What the diagnostics say, as types named like their JSON: the contract between the reader of the state and the page. */

/**
 * A list has at most `rows_max` rows; the member that ends with `_total` says how many there are. Before that bound,
 * `?filter=` selects the routes whose name, prefix, service or target contains it, in any case, with their clusters and
 * services, and other clusters and services that contain it; `?offset=` skips the first of the selected routes. Both
 * apply to no other list.
 */
export interface Diagnostics {
  readonly version: string;
  readonly uptime_seconds: number;
  /** When this was read, in RFC 3339. */
  readonly at: string;
  readonly configuration: ConfigurationRow;
  readonly errors: readonly ErrorRow[];
  readonly errors_total: number;
  /** What is valid, but perhaps not what was meant. */
  readonly notices: readonly ErrorRow[];
  readonly notices_total: number;
  /** As in the query. */
  readonly filter: string;
  readonly offset: number;
  readonly rows_max: number;
  /** In the order in which they are tried. */
  readonly routes: readonly RouteRow[];
  /** The number of all routes, and of those that the filter selects. */
  readonly routes_total: number;
  readonly routes_matching: number;
  /** Requests that matched no route. */
  readonly unmatched: TrafficRow;
  /** Their methods and paths, the latest first; twenty at most. */
  readonly unmatched_requests: readonly UnmatchedRow[];
  /** Services across HTTP, auth services among them. */
  readonly clusters: readonly ClusterRow[];
  readonly clusters_total: number;
  readonly services: readonly ServiceRow[];
  readonly services_total: number;
  readonly versions: readonly VersionRow[];
  readonly limits: readonly LimitRow[];
  readonly limits_total: number;
  /** Requests answered with 500 or more, newest first; a hundred at most. */
  readonly failures: readonly FailureRow[];
  /** Undefined without an auth service. */
  readonly auth: AuthRow | undefined;
  readonly ratelimit: RateLimitRow | undefined;
}

/** Answers of auth services since the start. `error`: no answer. */
export interface AuthRow {
  readonly allowed: number;
  readonly denied: number;
  readonly error: number;
  /** RFC 3339; undefined if there was none. */
  readonly last_error_at: string | undefined;
}

/** Answers of the rate-limit service since the start. `error`: no answer. */
export interface RateLimitRow {
  readonly ok: number;
  readonly over: number;
  readonly error: number;
  /** RFC 3339; undefined if there was none. */
  readonly last_error_at: string | undefined;
}

/** The configuration in force: replicas with the same files have the same hash. */
export interface ConfigurationRow {
  /** 1 at the start of the process, and one more for each change that came into force. */
  readonly generation: number;
  readonly hash: string;
  /** RFC 3339. */
  readonly applied_at: string;
}

export interface RouteRow {
  readonly name: string;
  readonly prefix: string;
  /** The conditions beside the prefix, and the share of requests that it gets: `POST`, `host api.*`, `20 %`. */
  readonly conditions: readonly string[];
  readonly rewrite: string;
  readonly service: string;
  readonly target: string;
  readonly authenticated: boolean;
  readonly labels: readonly string[];
  readonly timeout_ms: number | undefined;
  /** `file:line`; undefined for the server's own routes. */
  readonly source: string | undefined;
  /** True for routes that the server brings itself. */
  readonly internal: boolean;
  /** The `name` of its cluster; undefined for a service in this process and for a redirect. */
  readonly cluster: string | undefined;
  /**
   * By the requests of the last five minutes that were answered with less than 500: ok from 90 %, degraded from 70 %,
   * failing below; unknown without a request. Always failing when no address of its cluster is usable.
   */
  readonly health: 'ok' | 'degraded' | 'failing' | 'unknown';
  readonly traffic: TrafficRow;
}

export interface ClusterRow {
  /** The service. If a service has several clusters, with different settings, the second ends with ` #2`, and so on. */
  readonly name: string;
  readonly service: string;
  readonly addresses: readonly {
    readonly origin: string;
    readonly health: 'unknown' | 'healthy' | 'unhealthy' | 'ejected';
    readonly active_requests: number;
  }[];
  /** False: it has had no request yet, and its health is not checked. */
  readonly used: boolean;
  /** Open: one more request, or one more upgrade, would be refused now. `overflows` counts the refused ones. */
  readonly circuit: 'closed' | 'open';
  readonly active_requests: number;
  /** Connections that have switched protocols, and requests that ask for it. */
  readonly active_upgrades: number;
  readonly overflows: number;
  /** The mappings that lead there, a hundred at most; none for an auth service. */
  readonly mappings: readonly string[];
  readonly mappings_total: number;
}

/** A service that a record names, and where it leads. */
export interface ServiceRow {
  readonly role: string;
  readonly service: string;
  readonly target: string;
}

/** A part of the API that is deprecated or ends; times in RFC 3339. */
export interface VersionRow {
  readonly name: string;
  readonly prefix: string;
  readonly deprecation: string | undefined;
  readonly sunset: string | undefined;
  readonly successor: string | undefined;
  /** `file:line`. */
  readonly source: string;
}

export interface LimitRow {
  readonly domain: string;
  /** The descriptor's entries, outermost first: `key`, or `key=…` for one value of the key. */
  readonly descriptor: string;
  /** `10 per minute` or `unlimited`. */
  readonly limit: string;
  readonly source: string;
  /** Since the start; 0 where this process does not count. */
  readonly hits: number;
  readonly over: number;
  /** How much of it its fullest counter has used, from 0 to 1; undefined: not counted in this process. */
  readonly fullness: number | undefined;
}

export interface UnmatchedRow {
  /** Of the last request, in RFC 3339. */
  readonly at: string;
  readonly method: string;
  /** Without its query. */
  readonly path: string;
  readonly requests: number;
}

export interface FailureRow {
  /** RFC 3339. */
  readonly at: string;
  readonly request_id: string;
  readonly method: string;
  /** Without its query. */
  readonly path: string;
  /** Undefined: it matched no route. */
  readonly mapping: string | undefined;
  readonly status: number;
  /** Undefined: the service itself gave this status. */
  readonly problem: string | undefined;
  readonly reason: string | undefined;
}

export interface ErrorRow {
  /** `file:line`. */
  readonly source: string;
  readonly record: string | undefined;
  readonly message: string;
  readonly remedy: string;
}

/** The requests of a route, or those that matched none; since the start, except `recent`. */
export interface TrafficRow {
  readonly requests: number;
  /** Not ended yet. */
  readonly in_flight: number;
  /** Answered with 500 or more. */
  readonly errors: number;
  readonly refused_by_auth: number;
  readonly refused_by_limit: number;
  /** The client left, or the response broke off. */
  readonly abandoned: number;
  /** Undefined for a service in this process. */
  readonly upstream: UpstreamRow | undefined;
  /** Undefined without a request in the last five minutes. */
  readonly recent: RecentRow | undefined;
}

/** Retries, and failures by the problem that the client got. */
export interface UpstreamRow {
  readonly retries: number;
  readonly unavailable: number;
  readonly failed: number;
  readonly timeout: number;
  readonly overloaded: number;
}

/** Of the last five minutes. */
export interface RecentRow {
  readonly slot_seconds: number;
  /** Per slot, oldest first; the last slot is not over yet. */
  readonly requests: readonly number[];
  readonly errors: readonly number[];
  /** Over the last minute. */
  readonly requests_per_second: number;
  /** From 0 to 1. This and the following members are over all five minutes. */
  readonly error_share: number;
  readonly refused_by_auth: number;
  readonly refused_by_limit: number;
  readonly p50_ms: number | undefined;
  readonly p99_ms: number | undefined;
}
