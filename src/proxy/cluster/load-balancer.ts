/** Which of several addresses comes next: the one that has waited longest, or the one with the fewest requests and switched connections. */
import type { Mapping } from '#config';

export interface Candidate {
  readonly origin: string;
  readonly activeRequests: number;
  readonly activeUpgrades: number;
  /** The number of the choice that picked it last, which the load balancer sets. */
  lastPicked: number;
}

/** Whether it should get requests. `leaving`: it announces that it is going, and others should get them where there are any. */
export type Standing = 'available' | 'leaving' | 'unavailable';

/** `candidates` must not be empty. */
export type Pick<C extends Candidate> = (
  candidates: readonly C[],
  standingOf: (candidate: C) => Standing,
  tried: readonly string[],
) => C;

/**
 * Picks the address that has waited longest among the best: untried before tried, since an attempt that fails is followed
 * by one elsewhere while a restart moves from one address to the next, and then by their standing. So of
 * two addresses that stay available, each gets exactly one turn between two of the other, whichever addresses come and
 * go. When none is available all are used, since a request that may fail is better than one that must.
 */
export function createLoadBalancer<C extends Candidate>(policy: Mapping['loadBalancer']): Pick<C> {
  const isBefore = policy === 'least_request' ? isLessBusy : hasWaitedLonger;
  let picks = 0;
  return function pick(candidates, standingOf, tried) {
    let best = candidates[0] as C;
    let bestRank = -1;
    for (const candidate of candidates) {
      const rank = rankOf(standingOf(candidate), tried.includes(candidate.origin));
      if (rank < bestRank || (rank === bestRank && !isBefore(candidate, best))) continue;
      best = candidate;
      bestRank = rank;
    }
    picks += 1;
    best.lastPicked = picks;
    return best;
  };
}

const ranks: Readonly<Record<Standing, number>> = { available: 2, leaving: 1, unavailable: 0 };

function rankOf(standing: Standing, isTried: boolean): number {
  return (isTried ? 0 : 3) + ranks[standing];
}

function hasWaitedLonger(one: Candidate, other: Candidate): boolean {
  return one.lastPicked < other.lastPicked;
}

function isLessBusy(one: Candidate, other: Candidate): boolean {
  const difference = one.activeRequests + one.activeUpgrades - other.activeRequests - other.activeUpgrades;
  return difference === 0 ? hasWaitedLonger(one, other) : difference < 0;
}
