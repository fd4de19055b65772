/** How many requests, waiting requests, retries and switched connections a cluster may have; beyond that a request is refused at once. */
import type { CircuitBreakers as Limits } from '#config';
import { CircuitOpen } from '../failures.ts';

export interface CircuitBreakers {
  /** Takes a request's place at an address, and one among the upgrades for a request that asks for one, or throws CircuitOpen. */
  readonly enter: (address: Busy, isUpgrade?: boolean) => void;
  readonly leave: (address: Busy) => void;
  readonly leaveUpgrade: (address: Busy) => void;
  /** Takes a place among the retries and returns its release; undefined when there are enough. */
  readonly takeRetry: () => (() => void) | undefined;
  /** Whether `enter` would throw for a request or for an upgrade. */
  readonly refuses: (address: Busy) => boolean;
  /** Whether one more request would take more than half of the places. */
  readonly isCrowded: () => boolean;
  readonly counts: Readonly<BreakerCounts>;
}

/** What an address has under way, which the circuit breakers count. */
interface Busy {
  activeRequests: number;
  activeUpgrades: number;
}

interface BreakerCounts {
  activeRequests: number;
  /** Connections that have switched protocols, and requests that ask for it. */
  activeUpgrades: number;
  activeRetries: number;
  overflows: number;
}

/** Retries may be a fifth of the active requests, or three where these are few; but never more than `maxRetries`. */
const retryShare = 0.2;
const retriesAlways = 3;

/** Each address handles `maxConnections` requests at once; the others wait for a connection. */
export function createCircuitBreakers(service: string, limits: Limits): CircuitBreakers {
  const { maxConnections, maxPendingRequests, maxRequests, maxRetries, maxUpgrades } = limits;
  const counts: BreakerCounts = { activeRequests: 0, activeUpgrades: 0, activeRetries: 0, overflows: 0 };
  let waiting = 0;

  /** Which limit one more request would exceed. */
  function excess(address: Busy, isUpgrade: boolean): string | undefined {
    if (isUpgrade && counts.activeUpgrades >= maxUpgrades) return `max_upgrades: ${maxUpgrades}`;
    if (counts.activeRequests >= maxRequests) return `max_requests: ${maxRequests}`;
    if (address.activeRequests < maxConnections || waiting < maxPendingRequests) return undefined;
    return `max_pending_requests: ${maxPendingRequests}`;
  }

  return Object.freeze({
    enter(address: Busy, isUpgrade = false) {
      const bound = excess(address, isUpgrade);
      if (bound !== undefined) {
        counts.overflows += 1;
        throw new CircuitOpen(`${service} is at its bound of ${bound}`);
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
