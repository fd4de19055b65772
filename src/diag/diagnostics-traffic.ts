/** What the diagnostics say of requests: of a route, or of those that no route met. */

/** Since the start, but for `recent`. */
export interface TrafficRow {
  readonly requests: number;
  /** Not ended yet. */
  readonly in_flight: number;
  /** Answered with 500 or more. */
  readonly errors: number;
  readonly refused_by_auth: number;
  readonly refused_by_limit: number;
  /** The client left, or the answer broke off. */
  readonly abandoned: number;
  /** Undefined in this process. */
  readonly upstream: UpstreamRow | undefined;
  /** Undefined without a request in the last five minutes. */
  readonly recent: RecentRow | undefined;
}

/** Attempts beside the first, and failures by what the client was told. */
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
  /** Of each slot, the oldest first; the last is still being filled. */
  readonly requests: readonly number[];
  readonly errors: readonly number[];
  /** Over the last minute. */
  readonly requests_per_second: number;
  /** From 0 to 1, of all five minutes, as are the rest. */
  readonly error_share: number;
  readonly refused_by_auth: number;
  readonly refused_by_limit: number;
  readonly p50_ms: number | undefined;
  readonly p99_ms: number | undefined;
}
