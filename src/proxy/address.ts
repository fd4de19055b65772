/** One address of a cluster: its connections, its health, and how much is under way there. */
import type { Candidate } from './balance.ts';
import type { ClusterSpec } from './cluster.ts';
import { type Connections, createConnections } from './connections.ts';
import { type HealthParts, watchHealth } from './health-check.ts';
import { type Conduct, newConduct } from './outlier.ts';

export interface Address extends Candidate {
  activeRequests: number;
  readonly conduct: Conduct;
  health: 'unknown' | 'healthy' | 'unhealthy';
  readonly connections: Connections;
  /** Stops what asks after its health, then ends its connections with their exchanges. */
  readonly close: () => Promise<void>;
}

/** `lastPicked` below 0, at random: many gateways must not all begin with the same address. */
export function openAddress(origin: string, spec: ClusterSpec, parts: HealthParts): Address {
  const { serverName, connectTimeoutMs, circuitBreakers, healthCheck } = spec;
  const connections = createConnections({
    origin,
    serverName,
    connectTimeoutMs,
    connectionsMax: circuitBreakers.maxConnections,
  });
  const address: Address = {
    origin,
    activeRequests: 0,
    lastPicked: -parts.random(),
    conduct: newConduct(),
    health: 'unknown',
    connections,
    close() {
      stop();
      return connections.close();
    },
  };
  const stop = healthCheck === undefined ? () => {} : watchHealth(address, spec, healthCheck, parts);
  return address;
}
