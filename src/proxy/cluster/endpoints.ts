/** The addresses of one cluster as they come and go, each with its connections, its health and its outlier state. */
import type { CircuitBreakers, HealthCheck } from '#config';
import type { Logger } from '#http';
import { type Health, type HealthCheckParts, watchHealth } from './health-check.ts';
import type { Candidate } from './load-balancer.ts';
import { createOutlierState, endEjection, isEjected, type OutlierState } from './outlier-detection.ts';
import { createPool, type Pool } from './pool.ts';

export interface EndpointOptions {
  /** The service reference, for people and for logs. */
  readonly service: string;
  /** Scheme, host and port of each address; asked at each request, since a listener's port may be known late. Never empty. */
  readonly origins: () => readonly string[];
  /** The name that the certificate of an HTTPS address must show at any address; undefined: the address's host. */
  readonly serverName?: string | undefined;
  readonly connectTimeoutMs: number;
  /** How long an idle connection is kept; undefined: a default, or what the service says. */
  readonly idleConnectionMs?: number | undefined;
  readonly circuitBreakers: CircuitBreakers;
  readonly healthCheck: HealthCheck | undefined;
}

export interface EndpointParts extends Pick<HealthCheckParts, 'random' | 'timer'> {
  readonly logger: Logger;
  /** Milliseconds. */
  readonly clock: () => number;
}

export interface Endpoint extends Candidate {
  activeRequests: number;
  activeUpgrades: number;
  health: Health;
  /** Until then others are asked, where there are any: its last response said `Connection: close`. */
  leavingUntilMs: number;
  readonly outlier: OutlierState;
  readonly pool: Pool;
  /** Stops the health check and ends the connections after their requests. */
  readonly close: () => Promise<void>;
}

export interface Endpoints {
  readonly list: () => readonly Endpoint[];
  /** Of the addresses that were listed last, in the same order. */
  readonly outliers: () => readonly OutlierState[];
  /** Health checks stop at once; waits for all connections, also to addresses that are gone. */
  readonly close: () => Promise<void>;
  /** Breaks off what is left on these connections. */
  readonly destroy: () => void;
}

/** An address that stays keeps its state. With a health check, the origins are read at its interval, with or without traffic. */
export function createEndpoints(options: EndpointOptions, parts: EndpointParts): Endpoints {
  const leaving = new Set<Endpoint>();
  let origins: readonly string[] = [];
  let endpoints: readonly Endpoint[] = [];
  let outliers: readonly OutlierState[] = [];
  let isClosed = false;
  let cancel = options.healthCheck === undefined ? () => {} : parts.timer(refresh, 0);

  function refresh(): void {
    list();
    cancel = parts.timer(refresh, options.healthCheck?.intervalMs ?? 0);
  }

  function list(): readonly Endpoint[] {
    const current = options.origins();
    if (current !== origins) update(current);
    return endpoints;
  }

  function update(current: readonly string[]): void {
    origins = current;
    const known = new Map(endpoints.map((endpoint) => [endpoint.origin, endpoint]));
    const next = [...new Set(current)].map((origin) => known.get(origin) ?? openEndpoint(origin, options, parts));
    for (const { origin } of next) known.delete(origin);
    for (const gone of known.values()) leave(gone);
    endpoints = next;
    outliers = next.map(({ outlier }) => outlier);
    // `close` will not be called again for these.
    if (isClosed) for (const endpoint of next) void endpoint.close();
  }

  function leave(endpoint: Endpoint): void {
    leaving.add(endpoint);
    void endpoint.close().finally(() => leaving.delete(endpoint));
  }

  return Object.freeze({
    list,
    outliers: () => outliers,
    async close() {
      isClosed = true;
      cancel();
      await Promise.all([...leaving, ...endpoints].map((endpoint) => endpoint.close()));
    },
    destroy() {
      for (const { pool } of [...leaving, ...endpoints]) pool.destroy();
    },
  });
}

/** `lastPicked` is negative at random: many gateways must not all begin with the same address. */
function openEndpoint(origin: string, options: EndpointOptions, parts: EndpointParts): Endpoint {
  const { serverName, connectTimeoutMs, idleConnectionMs, circuitBreakers, healthCheck } = options;
  const pool = createPool({ origin, serverName, connectTimeoutMs, idleConnectionMs }, circuitBreakers.maxConnections);
  let stopWatching = () => {};
  const endpoint: Endpoint = {
    origin,
    activeRequests: 0,
    activeUpgrades: 0,
    lastPicked: -parts.random(),
    health: 'unknown',
    leavingUntilMs: Number.NEGATIVE_INFINITY,
    outlier: createOutlierState(),
    pool,
    close() {
      stopWatching();
      return pool.close();
    },
  };
  if (healthCheck !== undefined) stopWatching = watchEndpoint(endpoint, healthCheck, options, parts);
  return endpoint;
}

function watchEndpoint(
  endpoint: Endpoint,
  check: HealthCheck,
  { service, serverName }: EndpointOptions,
  { random, timer, logger, clock }: EndpointParts,
): () => void {
  const { origin, outlier } = endpoint;
  function onChange(health: Health, status: number | undefined): void {
    endpoint.health = health;
    const fields = { service, origin, status };
    if (health === 'healthy') logger.info(fields, 'address is healthy');
    else logger.warn(fields, 'address is unhealthy');
  }
  function onPass(): void {
    const nowMs = clock();
    if (!isEjected(outlier, nowMs)) return;
    endEjection(outlier, nowMs);
    logger.info({ service, origin }, 'address is no longer ejected: its health check passes');
  }
  return watchHealth({ origin, serverName }, check, { random, timer, onChange, onPass });
}
