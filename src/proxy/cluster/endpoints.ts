/** The current addresses of a cluster, each with its connections, health and outlier state. */
import type { CircuitBreakers, Fault, HealthCheck } from '#config';
import type { Logger } from '#foundation';
import { createSessions, grpcStatusName, type MachineGuard } from '#http';
import type { AttemptOutcome } from '../attempt.ts';
import { explainFailure } from '../failures.ts';
import {
  createOutlierState,
  endEjection,
  type Health,
  type HealthCheckParts,
  type OutlierState,
  watchHealth,
} from './health.ts';
import type { Candidate } from './load-balancer.ts';
import { type ConnectionOptions, type ConnectionParts, createPool, type Pool } from './pool.ts';

export interface EndpointOptions extends Omit<ConnectionOptions, 'origin' | 'machineGuard'> {
  /** The service reference, as diagnostics and logs show it. */
  readonly service: string;
  /** Returns the origin of each address. Called for each request, because addresses may become known late or change. */
  readonly origins: () => readonly string[];
  /** Returns why there is no address, and what to do about it. Undefined for a service that always has one. */
  readonly whyEmpty?: (() => Fault | undefined) | undefined;
  /** Whether its record must not lead to this machine. @default false */
  readonly isUntrusted?: boolean | undefined;
  /** Returns whether strangers have chosen the addresses, which then must not be of this machine. @default never */
  readonly haveStrangersChosen?: (() => boolean) | undefined;
  readonly circuitBreakers: CircuitBreakers;
  readonly healthCheck: HealthCheck | undefined;
}

export interface EndpointParts extends ConnectionParts, Pick<HealthCheckParts, 'timer'> {
  readonly logger: Logger;
  readonly machineGuard: MachineGuard;
}

export interface Endpoint extends Candidate {
  activeRequests: number;
  activeUpgrades: number;
  health: Health;
  /** Other addresses are preferred until then, because the service has announced that it closes a connection. */
  drainingUntilMs: number;
  readonly outlier: OutlierState;
  readonly pool: Pool;
  /** Stops the health check and closes the connections after their requests. */
  readonly close: () => Promise<void>;
}

export interface Endpoints {
  readonly list: () => readonly Endpoint[];
  /** Returns the outlier states of the addresses that were last listed, in the same order. */
  readonly outliers: () => readonly OutlierState[];
  /** Stops health checks immediately and waits for all connections, including those to removed addresses. */
  readonly close: () => Promise<void>;
  /** Aborts the remaining requests on these connections. */
  readonly destroy: () => void;
}

/** Keeps the state of an address when the list changes. A health check also refreshes the list at its interval. */
export function createEndpoints(options: EndpointOptions, parts: EndpointParts): Endpoints {
  const removed = new Set<Endpoint>();
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
    for (const gone of known.values()) remove(gone);
    endpoints = next;
    outliers = next.map(({ outlier }) => outlier);
    // These were added after `close`, which will not run again.
    if (isClosed) for (const endpoint of next) void endpoint.close();
  }

  function remove(endpoint: Endpoint): void {
    removed.add(endpoint);
    void endpoint.close().finally(() => removed.delete(endpoint));
  }

  return Object.freeze({
    list,
    outliers: () => outliers,
    async close() {
      isClosed = true;
      cancel();
      await Promise.all([...removed, ...endpoints].map((endpoint) => endpoint.close()));
    },
    destroy() {
      for (const { pool } of [...removed, ...endpoints]) pool.destroy();
    },
  });
}

/** Starts `lastPicked` at a random negative number, so that different gateways start with different addresses. */
function openEndpoint(origin: string, options: EndpointOptions, parts: EndpointParts): Endpoint {
  const { healthCheck } = options;
  const isGuarded = options.isUntrusted || options.haveStrangersChosen?.();
  const connection = { ...options, origin, machineGuard: isGuarded ? parts.machineGuard : undefined };
  let stopWatching = () => {};
  const endpoint: Endpoint = {
    origin,
    activeRequests: 0,
    activeUpgrades: 0,
    lastPicked: -parts.random(),
    health: 'unknown',
    drainingUntilMs: Number.NEGATIVE_INFINITY,
    outlier: createOutlierState(),
    pool: openPool(connection, parts, () => noteDraining(endpoint, parts.clock())),
    close() {
      stopWatching();
      return endpoint.pool.close();
    },
  };
  if (healthCheck !== undefined) stopWatching = watchEndpoint(endpoint, healthCheck, connection, parts);
  return endpoint;
}

function openPool(options: EndpointOptions & ConnectionOptions, parts: EndpointParts, onGoaway: () => void): Pool {
  const { maxConnections } = options.circuitBreakers;
  if (options.http2) return createSessions(options, maxConnections, { ...parts, onGoaway });
  return createPool(options, maxConnections, parts);
}

/** An address that closes a connection by itself may be shutting down, and may cut off requests it has not read. */
const drainingMs = 1000;

export function noteDraining(endpoint: Endpoint, nowMs: number): void {
  endpoint.drainingUntilMs = nowMs + drainingMs;
}

function watchEndpoint(
  endpoint: Endpoint,
  check: HealthCheck,
  connection: EndpointOptions & ConnectionOptions,
  { random, timer, logger, clock, headerBytesMax }: EndpointParts,
): () => void {
  const { origin, outlier } = endpoint;
  const { service } = connection;
  function onChange(health: Health, outcome: AttemptOutcome): void {
    endpoint.health = health;
    const fields = { service, origin, ...outcomeFields(outcome) };
    if (health === 'healthy') logger.info(fields, 'address passes its health check');
    else logger.warn(fields, 'address fails its health check');
  }
  function onPass(): void {
    if (endEjection(outlier, clock()))
      logger.info({ service, origin }, 'ejection ended: the address passes its health check');
  }
  return watchHealth(connection, check, { random, timer, headerBytesMax, onChange, onPass });
}

/** The status or the error, for a log line about the health of an address. */
export function outcomeFields(outcome: AttemptOutcome): object {
  return outcome.kind === 'responded' ? statusFields(outcome) : { err: explainFailure(outcome.cause) };
}

function statusFields({ status, grpcStatus }: Extract<AttemptOutcome, { kind: 'responded' }>): object {
  return grpcStatus === undefined ? { status } : { grpcStatus: grpcStatusName(grpcStatus) ?? grpcStatus };
}
