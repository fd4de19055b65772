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
  /** Whether it would refuse a request now, to whichever of these it came. */
  readonly isOpen: (loads: readonly Load[]) => boolean;
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

  function refuse(what: string): never {
    counts.overflows += 1;
    throw new Overflow(`${service} has ${what} already`);
  }

  return Object.freeze({
    enter(load: Load) {
      if (counts.activeRequests >= maxRequests) refuse(`${maxRequests} requests under way`);
      const mustWait = load.activeRequests >= maxConnections;
      if (mustWait && waiting >= maxPendingRequests) refuse(`${maxPendingRequests} requests waiting for a connection`);
      if (mustWait) waiting += 1;
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
    isOpen(loads: readonly Load[]) {
      if (counts.activeRequests >= maxRequests) return true;
      return waiting >= maxPendingRequests && loads.every(({ activeRequests }) => activeRequests >= maxConnections);
    },
    counts,
  });
}
