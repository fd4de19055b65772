/** Load balancing: picks the address that has waited longest, or the one with the fewest requests and upgrades. */
import type { Mapping } from '#config';

export interface Candidate {
  readonly origin: string;
  readonly activeRequests: number;
  readonly activeUpgrades: number;
  /** The sequence number of its last pick, set by the load balancer. */
  lastPicked: number;
}

/**
 * Whether an address should receive requests. One that is `draining` receives them only if no other is available. One
 * that is `full` would reject the request.
 */
export type Availability = 'available' | 'draining' | 'full' | 'unavailable';

/** `candidates` must not be empty. */
export type Pick<C extends Candidate> = (
  candidates: readonly C[],
  availabilityOf: (candidate: C) => Availability,
  tried: readonly string[],
) => C;

/**
 * Ranks untried addresses above tried ones, so that a request survives a rolling restart, and then by availability.
 * Among the best, picks the one that has waited longest or, with `least_request`, the least busy one. With round robin,
 * two addresses that stay available therefore alternate, even while other addresses come and go. If no address is
 * available, all are used: a request that may fail is better than one that certainly fails.
 */
export function createLoadBalancer<C extends Candidate>(policy: Mapping['loadBalancer']): Pick<C> {
  const isBefore = policy === 'least_request' ? isLessBusy : hasWaitedLonger;
  let picks = 0;
  return function pick(candidates, availabilityOf, tried) {
    let best = candidates[0] as C;
    let bestRank = -1;
    for (const candidate of candidates) {
      const rank = rankOf(availabilityOf(candidate), tried.includes(candidate.origin));
      if (rank < bestRank || (rank === bestRank && !isBefore(candidate, best))) continue;
      best = candidate;
      bestRank = rank;
    }
    picks += 1;
    best.lastPicked = picks;
    return best;
  };
}

const ranks: Readonly<Record<Availability, number>> = { available: 3, draining: 2, full: 1, unavailable: 0 };

function rankOf(availability: Availability, isTried: boolean): number {
  return (isTried ? 0 : 4) + ranks[availability];
}

function hasWaitedLonger(one: Candidate, other: Candidate): boolean {
  return one.lastPicked < other.lastPicked;
}

function isLessBusy(one: Candidate, other: Candidate): boolean {
  const difference = one.activeRequests + one.activeUpgrades - other.activeRequests - other.activeUpgrades;
  return difference === 0 ? hasWaitedLonger(one, other) : difference < 0;
}
