/** How much a cluster may have under way; beyond that a request is refused at once. */
import type { CircuitBreakers } from '#config';
import { Overflow } from './overflow.ts';

/** What is counted for each address. Written here. */
export interface Load {
  activeRequests: number;
}

export interface Breakers {
  /** Takes a place, or throws an Overflow. */
  readonly enter: (load: Load) => void;
  readonly leave: (load: Load) => void;
  readonly takeRetry: () => (() => void) | undefined;
  /** Whether `enter` would throw. */
  readonly refuses: (load: Load) => boolean;
  readonly counts: Readonly<BreakerCounts>;
}

export interface BreakerCounts {
  activeRequests: number;
  activeRetries: number;
  overflows: number;
}

/** Retries may be a fifth of what is under way, or three where that is little: never more than `maxRetries` in any case. */
const retryShare = 0.2;
const retriesAlways = 3;

/** Each address carries out `maxConnections` requests at once, and those beyond wait for a connection. */
export function createBreakers(service: string, limits: CircuitBreakers): Breakers {
  const { maxConnections, maxPendingRequests, maxRequests, maxRetries } = limits;
  const counts: BreakerCounts = { activeRequests: 0, activeRetries: 0, overflows: 0 };
  let waiting = 0;

  /** What there is enough of already. */
  function excess(load: Load): string | undefined {
    if (counts.activeRequests >= maxRequests) return `${maxRequests} requests under way`;
    if (load.activeRequests < maxConnections || waiting < maxPendingRequests) return undefined;
    return `${maxPendingRequests} requests waiting for a connection`;
  }

  return Object.freeze({
    enter(load: Load) {
      const what = excess(load);
      if (what !== undefined) {
        counts.overflows += 1;
        throw new Overflow(`${service} has ${what} already`);
      }
      if (load.activeRequests >= maxConnections) waiting += 1;
      load.activeRequests += 1;
      counts.activeRequests += 1;
    },
    leave(load: Load) {
      if (load.activeRequests > maxConnections) waiting -= 1;
      load.activeRequests -= 1;
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
    refuses: (load: Load) => excess(load) !== undefined,
    counts,
  });
}
