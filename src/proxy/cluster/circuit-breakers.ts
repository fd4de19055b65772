/** Circuit breakers: bound the requests, pending requests, retries and upgrades of a cluster, and reject any excess. */
import type { CircuitBreakers as Limits } from '#config';
import { CircuitOpen } from '../failures.ts';

export interface CircuitBreakers {
  /** Acquires a slot for a request, and one more for an upgrade. Throws CircuitOpen when there is none. */
  readonly enter: (address: Busy, isUpgrade?: boolean) => void;
  readonly leave: (address: Busy) => void;
  readonly leaveUpgrade: (address: Busy) => void;
  /** Acquires a slot for a retry and returns a function that releases it. Undefined when there is none. */
  readonly takeRetry: () => (() => void) | undefined;
  /** True if `enter` would throw for a request or for an upgrade. */
  readonly refuses: (address: Busy) => boolean;
  /** True if one more request would occupy more than half of the slots. */
  readonly isCrowded: () => boolean;
  readonly counts: Readonly<BreakerCounts>;
}

/** The requests and upgrades in flight at one address, which the circuit breakers update. */
interface Busy {
  activeRequests: number;
  activeUpgrades: number;
}

interface BreakerCounts {
  activeRequests: number;
  /** Switched connections, and requests for an upgrade. */
  activeUpgrades: number;
  activeRetries: number;
  overflows: number;
}

/** Retries may be a fifth of the active requests but at least three, up to `maxRetries`. */
const retryShare = 0.2;
const retriesAlways = 3;

/** Each address handles up to `maxConnections` requests concurrently. Further ones wait for a connection. */
export function createCircuitBreakers(service: string, limits: Limits): CircuitBreakers {
  const { maxConnections, maxPendingRequests, maxRequests, maxRetries, maxUpgrades } = limits;
  const counts: BreakerCounts = { activeRequests: 0, activeUpgrades: 0, activeRetries: 0, overflows: 0 };
  let waiting = 0;

  /** Describes the limit that one more request would exceed. */
  function excess(address: Busy, isUpgrade: boolean): string | undefined {
    if (isUpgrade && counts.activeUpgrades >= maxUpgrades) return `max_upgrades: ${maxUpgrades}`;
    if (counts.activeRequests >= maxRequests) return `max_requests: ${maxRequests}`;
    if (address.activeRequests < maxConnections || waiting < maxPendingRequests) return undefined;
    return `max_pending_requests: ${maxPendingRequests}`;
  }

  return Object.freeze({
    enter(address: Busy, isUpgrade = false) {
      const limit = excess(address, isUpgrade);
      if (limit !== undefined) {
        counts.overflows += 1;
        throw new CircuitOpen(`${service} has reached its limit ${limit}`);
      }
      if (isUpgrade) {
        address.activeUpgrades += 1;
        counts.activeUpgrades += 1;
      }
      if (address.activeRequests >= maxConnections) waiting += 1;
      address.activeRequests += 1;
      counts.activeRequests += 1;
    },
    leave(address: Busy) {
      if (address.activeRequests > maxConnections) waiting -= 1;
      address.activeRequests -= 1;
      counts.activeRequests -= 1;
    },
    leaveUpgrade(address: Busy) {
      address.activeUpgrades -= 1;
      counts.activeUpgrades -= 1;
    },
    takeRetry() {
      const most = Math.min(maxRetries, Math.max(retriesAlways, Math.floor(counts.activeRequests * retryShare)));
      if (counts.activeRetries >= most) return undefined;
      counts.activeRetries += 1;
      let isTaken = true;
      return () => {
        if (isTaken) counts.activeRetries -= 1;
        isTaken = false;
      };
    },
    refuses: (address: Busy) => excess(address, true) !== undefined,
    isCrowded: () => counts.activeRequests + 1 > maxRequests / 2,
    counts,
  });
}
