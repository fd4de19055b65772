/** A service at one or several addresses: picks an address for each attempt, counts, and learns from outcomes. */
import type { Mapping, OutlierDetection } from '#config';
import type { Attempt, AttemptOutcome } from '../attempt.ts';
import { createCircuitBreakers } from './circuit-breakers.ts';
import { createPooledRequest, type PooledRequest, usedOpenSocket, type WithoutTracing } from './connection.ts';
import { createEndpoints, type Endpoint, type EndpointOptions, type EndpointParts } from './endpoints.ts';
import type { Health } from './health-check.ts';
import { createLoadBalancer } from './load-balancer.ts';
import { isEjected, recordOutcome } from './outlier-detection.ts';

export interface ClusterSpec extends EndpointOptions {
  readonly outlierDetection: OutlierDetection;
  readonly loadBalancer: Mapping['loadBalancer'];
}

export interface ClusterParts extends EndpointParts {
  /** Milliseconds. */
  readonly clock: () => number;
  readonly withoutTracing: WithoutTracing | undefined;
}

export interface Cluster {
  /** Takes a place at the best address, if possible none of `tried`. Throws CircuitOpen when a circuit breaker is open. */
  readonly attempt: (tried?: readonly string[]) => Attempt;
  /** Takes one of the retries that may run at the same time and returns its release; undefined when there are enough. */
  readonly takeRetry: () => (() => void) | undefined;
  /** Whether one more request would take more than half of its places. */
  readonly isCrowded: () => boolean;
  readonly snapshot: () => ClusterSnapshot;
}

export interface ClusterSnapshot {
  readonly service: string;
  /** False: it has had no request yet and has no health check. */
  readonly isUsed: boolean;
  readonly addresses: readonly {
    readonly origin: string;
    readonly health: Health | 'ejected';
    readonly activeRequests: number;
  }[];
  readonly activeRequests: number;
  readonly activeRetries: number;
  /** Open: at every address a circuit breaker would refuse one more request. */
  readonly circuit: 'closed' | 'open';
  /** How often a circuit breaker refused, since the start. */
  readonly overflows: number;
}

export interface OpenCluster {
  readonly cluster: Cluster;
  /** Waits for the connections, which end with their requests; later attempts still run. */
  readonly close: () => Promise<void>;
}

/** Opens no connection; a taking of snapshots does not either. */
export function openCluster(spec: ClusterSpec, parts: ClusterParts): OpenCluster {
  const { service, outlierDetection } = spec;
  const { clock, logger, withoutTracing } = parts;
  const endpoints = createEndpoints(spec, parts);
  const pick = createLoadBalancer<Endpoint>(spec.loadBalancer);
  const breakers = createCircuitBreakers(service, spec.circuitBreakers);
  let isUsed = spec.healthCheck !== undefined;

  function choose(tried: readonly string[]): Endpoint {
    const all = endpoints.list();
    if (all.length === 1) return all[0] as Endpoint;
    const nowMs = clock();
    return pick(all, ({ outlier, health }) => !isEjected(outlier, nowMs) && health !== 'unhealthy', tried);
  }

  function attempt(tried: readonly string[] = untried): Attempt {
    isUsed = true;
    const endpoint = choose(tried);
    breakers.enter(endpoint);
    let request: PooledRequest | undefined;
    let isReported = false;
    let isReleased = false;
    return {
      origin: endpoint.origin,
      dispatch(options, handler, connection) {
        request = createPooledRequest(options, handler, connection === 'fresh', withoutTracing);
        endpoint.pool.run(request);
      },
      isReused: () => request !== undefined && usedOpenSocket(request),
      reportOutcome(outcome) {
        if (!isReported) learn(endpoint, outcome);
        isReported = true;
      },
      release() {
        if (isReleased) return;
        isReleased = true;
        breakers.leave(endpoint);
        if (request !== undefined) endpoint.pool.end(request);
      },
    };
  }

  function learn({ origin, outlier }: Endpoint, outcome: AttemptOutcome): void {
    if (isOfRequest(outcome)) return;
    const hasFailed = outcome.kind === 'failed' || outcome.status >= 500;
    if (!hasFailed && outlier.failures === 0) return;
    const nowMs = clock();
    if (!recordOutcome(outlierDetection, outlier, endpoints.outliers(), hasFailed, nowMs)) return;
    logger.warn({ service, origin, forMs: outlier.ejectedUntilMs - nowMs }, 'address ejected');
  }

  function snapshot(): ClusterSnapshot {
    const nowMs = clock();
    const all = isUsed ? endpoints.list() : [];
    return {
      service,
      isUsed,
      addresses: isUsed ? all.map((endpoint) => addressOf(endpoint, nowMs)) : unusedAddresses(spec),
      circuit: isUsed && all.every(breakers.refuses) ? 'open' : 'closed',
      ...breakers.counts,
    };
  }

  return Object.freeze({
    cluster: Object.freeze({ attempt, takeRetry: breakers.takeRetry, isCrowded: breakers.isCrowded, snapshot }),
    close: endpoints.close,
  });
}

const untried: readonly string[] = [];

/** What undici refuses, and headers that are too large, since those of a response may repeat what was asked. */
const causedByRequest = [
  ...['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED', 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH'],
  'UND_ERR_HEADERS_OVERFLOW',
];

/** A method or a version of HTTP that the service does not have (RFC 9110 sections 15.6.2 and 15.6.6). */
const statusesOfRequest = [501, 505];

/** What a client can bring about. Counted, it would let one have address after address ejected. */
function isOfRequest(outcome: AttemptOutcome): boolean {
  if (outcome.kind === 'answered') return statusesOfRequest.includes(outcome.status);
  const { cause } = outcome;
  return cause instanceof Error && 'code' in cause && causedByRequest.includes(String(cause.code));
}

function addressOf({ origin, outlier, health, activeRequests }: Endpoint, nowMs: number) {
  return { origin, health: isEjected(outlier, nowMs) ? ('ejected' as const) : health, activeRequests };
}

function unusedAddresses({ origins }: ClusterSpec): ClusterSnapshot['addresses'] {
  return [...new Set(origins())].map((origin) => ({ origin, health: 'unknown', activeRequests: 0 }));
}
