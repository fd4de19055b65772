/** A service at one or several addresses: the port between who forwards a request and who knows where it may go. */
import type { Dispatcher } from 'undici';
import type { CircuitBreakers, HealthCheck, Mapping, OutlierDetection } from '#config';

export interface ClusterSpec {
  /** The service reference, for people and for logs. */
  readonly service: string;
  /** Scheme, host and port of each address; asked at each request, since a listener's port may be known late. Never empty. */
  readonly origins: () => readonly string[];
  /** The name that the certificate of an HTTPS address must show, whatever the address; undefined: the address's host. */
  readonly serverName?: string | undefined;
  readonly connectTimeoutMs: number;
  readonly circuitBreakers: CircuitBreakers;
  readonly healthCheck: HealthCheck | undefined;
  readonly outlierDetection: OutlierDetection;
  readonly loadBalancer: Mapping['loadBalancer'];
}

/** How an attempt ended: response headers with this status, a failure before them, or given up by us or the client. */
export type AttemptOutcome =
  | { readonly kind: 'answered'; readonly status: number }
  | { readonly kind: 'failed'; readonly cause: unknown }
  | { readonly kind: 'abandoned' };

/** One place at one address, taken until both `settle` and `release` have been called. */
export interface Attempt {
  readonly origin: string;
  /**
   * undici's own, once. The time-outs are the caller's: there is none but the one for connecting. Who gives up before
   * `onRequestStart` releases, and aborts there should it come nevertheless. `fresh`: on a new connection, where one that
   * was open before has failed.
   */
  readonly dispatch: (
    options: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
    connection?: 'fresh' | undefined,
  ) => void;
  /**
   * True when the connection was open before: then a reset before any answer may be the idle time-out of the service. To
   * be asked when the exchange has failed, before anything else is awaited.
   */
  readonly isReused: () => boolean;
  /** For the health of the address: as soon as it is known, once. */
  readonly settle: (outcome: AttemptOutcome) => void;
  /**
   * Gives the place back: when the body is through as well, or what the connection was switched to. An exchange that
   * waits for a connection then never begins, and its handler hears nothing. Again, it does nothing.
   */
  readonly release: () => void;
}

export interface Cluster {
  /** Takes a place at the best address, if possible none of `tried`. Throws an Overflow when a circuit breaker is open. */
  readonly attempt: (tried?: readonly string[]) => Attempt;
  /** Takes one of the retries that may run at the same time; gives its release, or undefined when there are enough. */
  readonly takeRetry: () => (() => void) | undefined;
  readonly snapshot: () => ClusterSnapshot;
}

export interface ClusterSnapshot {
  readonly service: string;
  /** False: nothing was asked of it yet, and nobody asks after its health. */
  readonly isUsed: boolean;
  readonly addresses: readonly {
    readonly origin: string;
    readonly health: 'unknown' | 'healthy' | 'unhealthy' | 'ejected';
    readonly activeRequests: number;
  }[];
  readonly activeRequests: number;
  readonly activeRetries: number;
  /** Open: at every address a circuit breaker would refuse one more request. */
  readonly circuit: 'closed' | 'open';
  /** How often a circuit breaker refused, since the start. */
  readonly overflows: number;
}
