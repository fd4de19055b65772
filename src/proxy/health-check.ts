/** Whether an address is well, asked for in turn and not by the traffic. */
import type { HealthCheck } from '#config';
import type { Logger } from '#http';
import type { Address } from './address.ts';
import type { ClusterSpec } from './cluster.ts';
import { createProbe } from './probe.ts';
import type { Timer } from './timer.ts';

export interface HealthParts {
  /** From 0 up to 1. */
  readonly random: () => number;
  readonly timer: Timer;
  readonly logger: Logger;
}

/** Until the result is called. The first check comes at a random time within one interval: all addresses at once would be a burst. */
export function watchHealth(
  address: Address,
  spec: ClusterSpec,
  check: HealthCheck,
  { random, timer, logger }: HealthParts,
): () => void {
  const probe = createProbe(address.origin, spec, check, timer);
  let streak = 0;
  let cancelProbe = () => {};
  let cancelTimer = timer(ask, random() * check.intervalMs);

  function ask(): void {
    cancelProbe = probe(hear);
  }

  function hear(status: number | undefined): void {
    cancelTimer = timer(ask, check.intervalMs);
    const isWell = isExpected(check, status);
    const health = verdict(isWell, status);
    if (health === address.health) return;
    address.health = health;
    const fields = { service: spec.service, origin: address.origin, status };
    if (isWell) logger.info(fields, 'address is healthy');
    else logger.warn(fields, 'address is unhealthy');
  }

  function verdict(isWell: boolean, status: number | undefined): Address['health'] {
    const told = isWell ? 'healthy' : 'unhealthy';
    streak = address.health === told ? 0 : streak + 1;
    const needed = isWell ? healthyAfter(check, address) : unhealthyAfter(check, status);
    if (streak < needed) return address.health;
    streak = 0;
    return told;
  }

  return () => {
    cancelTimer();
    cancelProbe();
  };
}

/** The first good answer will do. */
function healthyAfter({ healthyThreshold }: HealthCheck, { health }: Address): number {
  return health === 'unknown' ? 1 : healthyThreshold;
}

/** A 503 is the service's own word, and as at Envoy it needs no second. */
function unhealthyAfter({ unhealthyThreshold }: HealthCheck, status: number | undefined): number {
  return status === 503 ? 1 : unhealthyThreshold;
}

function isExpected({ expectedStatuses }: HealthCheck, status: number | undefined): boolean {
  return status !== undefined && expectedStatuses.some(({ min, max }) => min <= status && status <= max);
}
