/** Circuit breakers: bound the requests, pending requests, retries and upgrades of a cluster, and reject any excess. */
import type { CircuitBreakers as Limits } from '#config';
import { CircuitOpen } from '../failures.ts';

export interface CircuitBreakers {
  /** Acquires a slot for a request, and one more for an upgrade. Throws CircuitOpen when there is none. */
  readonly acquire: (address: AddressLoad, isUpgrade?: boolean) => void;
  readonly release: (address: AddressLoad) => void;
  readonly releaseUpgrade: (address: AddressLoad) => void;
  /** Acquires a slot for a retry. Returns a function that releases it, to be called once, or undefined without a slot. */
  readonly acquireRetry: () => (() => void) | undefined;
  /** True if `acquire` would throw for a request or for an upgrade. */
  readonly rejects: (address: AddressLoad) => boolean;
  /** True if the address has no free connection, and no more requests may wait for one. */
  readonly isFull: (address: AddressLoad) => boolean;
  /** True if one more request would occupy more than half of the slots. */
  readonly isCrowded: () => boolean;
  /** Creates a function that returns how fast a body must be at present, in bytes per second. Call it periodically. */
  readonly createPaceMin: () => () => number;
  readonly counts: Readonly<BreakerCounts>;
}

/** The requests and upgrades in flight at one address, which the circuit breakers update. */
interface AddressLoad {
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

/** Up to a fifth of the active requests may be retries, or three if that is more, but never more than `maxRetries`. */
const retryShare = 0.2;
const retriesMin = 3;

/** In bytes per second: while slots are scarce, and while requests wait for one or are rejected for want of one. */
const crowdedPaceMin = 1024;
const exhaustedPaceMin = 16 * 1024;

/**
 * The connections of each address carry up to `requestsOfConnection` requests each at a time. Further ones wait for a
 * connection.
 */
export function createCircuitBreakers(service: string, limits: Limits, requestsOfConnection = 1): CircuitBreakers {
  const runningMax = limits.maxConnections * requestsOfConnection;
  const { maxPendingRequests, maxRequests, maxRetries, maxUpgrades } = limits;
  const counts: BreakerCounts = { activeRequests: 0, activeUpgrades: 0, activeRetries: 0, overflows: 0 };
  let pending = 0;

  /** Describes the limit that one more request would exceed. */
  function exceededLimit(address: AddressLoad, isUpgrade: boolean): string | undefined {
    if (isUpgrade && counts.activeUpgrades >= maxUpgrades) return `max_upgrades (${maxUpgrades})`;
    if (counts.activeRequests >= maxRequests) return `max_requests (${maxRequests})`;
    return isFull(address) ? `max_pending_requests (${maxPendingRequests})` : undefined;
  }

  function isFull({ activeRequests }: AddressLoad): boolean {
    return activeRequests >= runningMax && pending >= maxPendingRequests;
  }

  function isCrowded(): boolean {
    return counts.activeRequests + 1 > maxRequests / 2;
  }

  function createPaceMin(): () => number {
    let overflowsSeen = counts.overflows;
    return () => {
      const isExhausted = pending > 0 || counts.overflows > overflowsSeen;
      overflowsSeen = counts.overflows;
      if (isExhausted) return exhaustedPaceMin;
      return isCrowded() ? crowdedPaceMin : 0;
    };
  }

  return Object.freeze({
    acquire(address: AddressLoad, isUpgrade = false) {
      const limit = exceededLimit(address, isUpgrade);
      if (limit !== undefined) {
        counts.overflows += 1;
        throw new CircuitOpen(`${service} has reached ${limit}`);
      }
      if (isUpgrade) {
        address.activeUpgrades += 1;
        counts.activeUpgrades += 1;
      }
      if (address.activeRequests >= runningMax) pending += 1;
      address.activeRequests += 1;
      counts.activeRequests += 1;
    },
    release(address: AddressLoad) {
      if (address.activeRequests > runningMax) pending -= 1;
      address.activeRequests -= 1;
      counts.activeRequests -= 1;
    },
    releaseUpgrade(address: AddressLoad) {
      address.activeUpgrades -= 1;
      counts.activeUpgrades -= 1;
    },
    acquireRetry() {
      const retriesMax = Math.min(maxRetries, Math.max(retriesMin, Math.floor(counts.activeRequests * retryShare)));
      if (counts.activeRetries >= retriesMax) return undefined;
      counts.activeRetries += 1;
      return () => {
        counts.activeRetries -= 1;
      };
    },
    rejects: (address: AddressLoad) => exceededLimit(address, true) !== undefined,
    isFull,
    isCrowded,
    createPaceMin,
    counts,
  });
}
