/** How many requests, waiting requests and retries a cluster may have; beyond that a request is refused at once. */
import type { CircuitBreakers as Limits } from '#config';
import { CircuitOpen } from '../failures.ts';

export interface CircuitBreakers {
  /** Takes a place at an address, or throws CircuitOpen. */
  readonly enter: (address: Busy) => void;
  readonly leave: (address: Busy) => void;
  /** Takes a place among the retries and returns its release; undefined when there are enough. */
  readonly takeRetry: () => (() => void) | undefined;
  /** Whether `enter` would throw. */
  readonly refuses: (address: Busy) => boolean;
  /** Whether one more request would take more than half of the places. */
  readonly isCrowded: () => boolean;
  readonly counts: Readonly<BreakerCounts>;
}

/** Written here. */
interface Busy {
  activeRequests: number;
}

interface BreakerCounts {
  activeRequests: number;
  activeRetries: number;
  overflows: number;
}

/** Retries may be a fifth of the active requests, or three where these are few; but never more than `maxRetries`. */
const retryShare = 0.2;
const retriesAlways = 3;

/** Each address handles `maxConnections` requests at once; the others wait for a connection. */
export function createCircuitBreakers(service: string, limits: Limits): CircuitBreakers {
  const { maxConnections, maxPendingRequests, maxRequests, maxRetries } = limits;
  const counts: BreakerCounts = { activeRequests: 0, activeRetries: 0, overflows: 0 };
  let waiting = 0;

  /** Which limit one more request would exceed. */
  function excess(address: Busy): string | undefined {
    if (counts.activeRequests >= maxRequests) return `${maxRequests} requests under way`;
    if (address.activeRequests < maxConnections || waiting < maxPendingRequests) return undefined;
    return `${maxPendingRequests} requests waiting for a connection`;
  }

  return Object.freeze({
    enter(address: Busy) {
      const what = excess(address);
      if (what !== undefined) {
        counts.overflows += 1;
        throw new CircuitOpen(`${service} has ${what} already`);
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
    refuses: (address: Busy) => excess(address) !== undefined,
    isCrowded: () => counts.activeRequests + 1 > maxRequests / 2,
    counts,
  });
}
