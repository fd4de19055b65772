/** What the diagnostics say, in the words of their JSON: the contract between who reads it off the process and who shows it. */
import type { TrafficRow } from './diagnostics-traffic.ts';

/**
 * A list has at most `rows_max` rows; how many there are in all is in the member that ends with `_total`. Before that
 * bound `?filter=` picks the routes whose name, prefix, service or target holds it, in any case, with their clusters
 * and services, and others that hold it themselves; `?offset=` leaves out the first of the routes picked. No other list
 * follows them.
 */
export interface Diagnostics {
  readonly version: string;
  readonly uptime_seconds: number;
  /** When this was read, in RFC 3339. */
  readonly at: string;
  readonly configuration: ConfigurationRow;
  readonly errors: readonly ErrorRow[];
  readonly errors_total: number;
  /** What is right, and yet not what a reader of the file might expect. */
  readonly notices: readonly ErrorRow[];
  readonly notices_total: number;
  /** As they were asked for. */
  readonly filter: string;
  readonly offset: number;
  readonly rows_max: number;
  /** In the order in which they are tried. */
  readonly routes: readonly RouteRow[];
  /** Of all, and of those that the filter picks. */
  readonly routes_total: number;
  readonly routes_matching: number;
  /** Requests that no route met. */
  readonly unmatched: TrafficRow;
  /** Services across HTTP, those of auth services as well. */
  readonly clusters: readonly ClusterRow[];
  readonly clusters_total: number;
  readonly services: readonly ServiceRow[];
  readonly services_total: number;
  readonly versions: readonly VersionRow[];
  readonly limits: readonly LimitRow[];
  readonly limits_total: number;
  /** Answered with 500 or more, the newest first: a hundred at most. */
  readonly failures: readonly FailureRow[];
  /** Undefined: nobody is asked. */
  readonly auth: AuthRow | undefined;
  readonly ratelimit: RateLimitRow | undefined;
}

/** What auth services answered since the start; `error`: nothing. */
export interface AuthRow {
  readonly allowed: number;
  readonly denied: number;
  readonly error: number;
  /** RFC 3339; undefined: there was none. */
  readonly last_error_at: string | undefined;
}

/** What the rate-limit service answered since the start; `error`: nothing. */
export interface RateLimitRow {
  readonly ok: number;
  readonly over: number;
  readonly error: number;
  /** RFC 3339; undefined: there was none. */
  readonly last_error_at: string | undefined;
}

/** What is in force: replicas with the same files have the same hash. */
export interface ConfigurationRow {
  /** From 1 at the start of the process, and one more for each change that was taken over. */
  readonly generation: number;
  readonly hash: string;
  /** RFC 3339. */
  readonly applied_at: string;
}

export interface RouteRow {
  readonly name: string;
  readonly prefix: string;
  /** What it asks of a request beside the prefix, and what part of the requests it gets: `POST`, `host api.*`, `20 %`. */
  readonly conditions: readonly string[];
  readonly rewrite: string;
  readonly service: string;
  readonly target: string;
  readonly authenticated: boolean;
  readonly labels: readonly string[];
  readonly timeout_ms: number | undefined;
  /** `file:line`; undefined for the server's own routes. */
  readonly source: string | undefined;
  /** True: the server brings it itself. */
  readonly internal: boolean;
  /** The `name` of its cluster; undefined in this process, and of a redirect. */
  readonly cluster: string | undefined;
  /**
   * By the requests of the last five minutes that were answered with less than 500: ok from 90 %, degraded from 70 %,
   * failing below; unknown without a request. Failing in any case when no address of its cluster is fit.
   */
  readonly health: 'ok' | 'degraded' | 'failing' | 'unknown';
  readonly traffic: TrafficRow;
}

export interface ClusterRow {
  /** The service; of several clusters for one service, told apart by their settings, the second has ` #2` behind it, and so on. */
  readonly name: string;
  readonly service: string;
  readonly addresses: readonly {
    readonly origin: string;
    readonly health: 'unknown' | 'healthy' | 'unhealthy' | 'ejected';
    readonly active_requests: number;
  }[];
  /** False: nobody has asked it for anything yet, and no health is checked. */
  readonly used: boolean;
  /** Open: one more request would be refused now. `overflows` tells how often that came to pass. */
  readonly circuit: 'closed' | 'open';
  readonly active_requests: number;
  readonly overflows: number;
  /** Whose requests go there: a hundred at most; empty for an auth service. */
  readonly mappings: readonly string[];
  readonly mappings_total: number;
}

/** Whom a record names as a service, and where that leads. */
export interface ServiceRow {
  readonly role: string;
  readonly service: string;
  readonly target: string;
}

/** A part of the API that is on its way out; its times are in RFC 3339. */
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
  /** The descriptor's entries, outermost first: `key` or `key=value`. */
  readonly descriptor: string;
  /** `10 per minute` or `unlimited`. */
  readonly limit: string;
  readonly source: string;
  /** Since the start; 0 where this process does not count. */
  readonly hits: number;
  readonly over: number;
  /** How much of it its fullest counter has used, from 0 to 1; undefined: it was not asked about in this process. */
  readonly fullness: number | undefined;
}

export interface FailureRow {
  /** RFC 3339. */
  readonly at: string;
  readonly request_id: string;
  readonly method: string;
  /** Without its query. */
  readonly path: string;
  /** Undefined: no route met it. */
  readonly mapping: string | undefined;
  readonly status: number;
  /** Undefined: the service itself said so. */
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
