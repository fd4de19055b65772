/** A cluster: a service with one or more addresses. Picks an address for each attempt and tracks its health. */
import type { Mapping, OutlierDetection } from '#config';
import { streamsOfSessionMax } from '#http';
import type { Attempt, AttemptOutcome } from '../attempt.ts';
import { isProvoked, NoAddress } from '../failures.ts';
import { createCircuitBreakers } from './circuit-breakers.ts';
import {
  createEndpoints,
  type Endpoint,
  type EndpointOptions,
  type EndpointParts,
  noteDraining,
  outcomeFields,
} from './endpoints.ts';
import { type Health, isEjected, recordBrokenBody, recordOutcome, recordRecovery } from './health.ts';
import { type Availability, createLoadBalancer } from './load-balancer.ts';
import { type PooledRequest, usedOpenSocket, type WithoutTracing } from './pool.ts';

export interface ClusterSpec extends EndpointOptions {
  readonly outlierDetection: OutlierDetection;
  readonly loadBalancer: Mapping['loadBalancer'];
}

export interface ClusterParts extends EndpointParts {
  readonly withoutTracing: WithoutTracing | undefined;
}

export interface Cluster {
  /**
   * Acquires a slot at the best address, preferring those that are not in `tried`. An upgrade also acquires one of the
   * slots for upgrades. Throws CircuitOpen when a circuit breaker is open, and NoAddress while there is no address.
   */
  readonly attempt: (tried?: readonly string[], isUpgrade?: boolean) => Attempt;
  /** Acquires a slot for a retry and returns a function that releases it. Undefined when there is none. */
  readonly acquireRetry: () => (() => void) | undefined;
  /** True if one more request would occupy more than half of the slots. */
  readonly isCrowded: () => boolean;
  /** Creates a function that returns how fast a body must be at present, in bytes per second. Call it periodically. */
  readonly createPaceMin: () => () => number;
  readonly snapshot: () => ClusterSnapshot;
}

export interface ClusterSnapshot {
  readonly service: string;
  /** False until the first request, unless there is a health check. */
  readonly isUsed: boolean;
  readonly addresses: readonly {
    readonly origin: string;
    readonly health: Health | 'ejected';
    readonly activeRequests: number;
    readonly activeUpgrades: number;
  }[];
  readonly activeRequests: number;
  /** Switched connections, and requests for an upgrade. */
  readonly activeUpgrades: number;
  readonly activeRetries: number;
  /** Open when a circuit breaker would reject a request or an upgrade at every address. */
  readonly circuit: 'closed' | 'open';
  /** The number of requests that circuit breakers have rejected since the start. */
  readonly overflows: number;
}

export interface OpenCluster {
  readonly cluster: Cluster;
  /** Closes each connection after its request and waits for all of them. Later attempts still run. */
  readonly close: () => Promise<void>;
  /** Aborts the remaining requests. */
  readonly destroy: () => void;
}

/** Connects lazily: only attempts and health checks open connections. */
export function openCluster(spec: ClusterSpec, parts: ClusterParts): OpenCluster {
  const { service, outlierDetection } = spec;
  const { clock, logger, withoutTracing } = parts;
  const endpoints = createEndpoints(spec, parts);
  const pick = createLoadBalancer<Endpoint>(spec.loadBalancer);
  const breakers = createCircuitBreakers(service, spec.circuitBreakers, spec.http2 ? streamsOfSessionMax : 1);
  const { acquireRetry, isCrowded, createPaceMin } = breakers;
  const attemptParts: AttemptParts = { breakers, recordHealth, recordBody, withoutTracing };
  let isUsed = spec.healthCheck !== undefined;

  function pickEndpoint(tried: readonly string[]): Endpoint {
    const all = endpoints.list();
    if (all.length === 1) return all[0] as Endpoint;
    if (all.length === 0) throw new NoAddress(service, spec.whyEmpty?.());
    const nowMs = clock();
    return pick(all, (endpoint) => availabilityOf(endpoint, nowMs), tried);
  }

  function availabilityOf(endpoint: Endpoint, nowMs: number): Availability {
    if (isEjected(endpoint.outlier, nowMs) || endpoint.health === 'unhealthy') return 'unavailable';
    if (breakers.isFull(endpoint)) return 'full';
    return nowMs < endpoint.drainingUntilMs ? 'draining' : 'available';
  }

  function attempt(tried: readonly string[] = noneTried, isUpgrade = false): Attempt {
    isUsed = true;
    const endpoint = pickEndpoint(tried);
    breakers.acquire(endpoint, isUpgrade);
    return new ClusterAttempt(endpoint, isUpgrade, attemptParts);
  }

  function recordHealth(endpoint: Endpoint, outcome: AttemptOutcome): void {
    const { outlier } = endpoint;
    if (outcome.kind === 'responded' && outcome.closesConnection) noteDraining(endpoint, clock());
    if (isNeutral(outcome)) return;
    const hasFailed = outcome.kind === 'failed' || outcome.status >= 500;
    if (hasFailed || outlier.failures > 0 || outlier.isSuspect) recordInOutlier(endpoint, outcome, hasFailed);
  }

  function recordInOutlier({ origin, outlier }: Endpoint, outcome: AttemptOutcome, hasFailed: boolean): void {
    const nowMs = clock();
    if (recordOutcome(outlierDetection, outlier, endpoints.outliers(), hasFailed, nowMs)) {
      const forMs = outlier.ejectedUntilMs - nowMs;
      logger.warn({ service, origin, forMs, ...outcomeFields(outcome) }, ejected);
    } else if (!hasFailed && recordRecovery(outlier, nowMs))
      logger.info({ service, origin }, 'address is responding again after its ejection');
  }

  function recordBody({ origin, outlier }: Endpoint, cause: Error | undefined): void {
    if (cause === undefined) outlier.brokenBodies = 0;
    else if (!isProvoked(cause) && recordBrokenBody(outlierDetection, outlier, endpoints.outliers(), clock())) {
      const forMs = outlier.ejectedUntilMs - clock();
      logger.warn({ service, origin, forMs, ...outcomeFields({ kind: 'failed', cause }) }, ejected);
    }
  }

  function snapshot(): ClusterSnapshot {
    const nowMs = clock();
    const all = isUsed ? endpoints.list() : [];
    return {
      service,
      isUsed,
      addresses: isUsed ? all.map((endpoint) => addressOf(endpoint, nowMs)) : unusedAddresses(spec),
      circuit: all.length > 0 && all.every(breakers.rejects) ? 'open' : 'closed',
      ...breakers.counts,
    };
  }

  return Object.freeze({
    cluster: Object.freeze({ attempt, acquireRetry, isCrowded, createPaceMin, snapshot }),
    close: endpoints.close,
    destroy: endpoints.destroy,
  });
}

interface AttemptParts {
  readonly breakers: ReturnType<typeof createCircuitBreakers>;
  readonly recordHealth: (endpoint: Endpoint, outcome: AttemptOutcome) => void;
  /** `cause` is undefined for a complete body. */
  readonly recordBody: (endpoint: Endpoint, cause: Error | undefined) => void;
  readonly withoutTracing: WithoutTracing | undefined;
}

/** A slot that was acquired at an address. A class, because each request has one. */
class ClusterAttempt implements Attempt {
  readonly origin: string;
  private readonly endpoint: Endpoint;
  private readonly isUpgrade: boolean;
  private readonly parts: AttemptParts;
  private request: PooledRequest | undefined = undefined;
  private isReported = false;
  private hasSwitched = false;
  private isReleased = false;

  constructor(endpoint: Endpoint, isUpgrade: boolean, parts: AttemptParts) {
    this.origin = endpoint.origin;
    this.endpoint = endpoint;
    this.isUpgrade = isUpgrade;
    this.parts = parts;
  }

  dispatch(options: PooledRequest['options'], handler: PooledRequest['handler'], isFresh = false): void {
    const { withoutTracing } = this.parts;
    this.request = { options, handler, isFresh, withoutTracing, connection: undefined, openSocket: 0 };
    this.endpoint.pool.run(this.request);
  }

  isReused(): boolean {
    return this.request !== undefined && usedOpenSocket(this.request);
  }

  reportOutcome(outcome: AttemptOutcome): void {
    if (!this.isReported) this.parts.recordHealth(this.endpoint, outcome);
    this.isReported = true;
  }

  reportBody(breakCause?: Error): void {
    this.parts.recordBody(this.endpoint, breakCause);
  }

  reportSwitch(): void {
    this.hasSwitched = true;
    this.parts.breakers.release(this.endpoint);
  }

  release(): void {
    if (this.isReleased) return;
    this.isReleased = true;
    const { breakers } = this.parts;
    if (!this.hasSwitched) breakers.release(this.endpoint);
    if (this.isUpgrade) breakers.releaseUpgrade(this.endpoint);
    if (this.request !== undefined) this.endpoint.pool.cancel(this.request);
  }
}

const ejected = 'address ejected after consecutive failures';

const noneTried: readonly string[] = [];

function isNeutral(outcome: AttemptOutcome): boolean {
  return outcome.kind === 'failed' ? isProvoked(outcome.cause) : provokedStatuses.has(outcome.status);
}

/**
 * The 5xx statuses with which a healthy service may reject a request, such as one with an unknown method or a loop. If
 * they counted as failures, a client could get one address after another ejected.
 */
const provokedStatuses: ReadonlySet<number> = new Set([501, 505, 506, 507, 508, 510, 511]);

function addressOf({ origin, outlier, health, activeRequests, activeUpgrades }: Endpoint, nowMs: number) {
  return { origin, health: isEjected(outlier, nowMs) ? ('ejected' as const) : health, activeRequests, activeUpgrades };
}

function unusedAddresses({ origins }: ClusterSpec): ClusterSnapshot['addresses'] {
  return [...new Set(origins())].map((origin) => ({ origin, health: 'unknown', activeRequests: 0, activeUpgrades: 0 }));
}
