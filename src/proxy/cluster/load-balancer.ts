/** Which of several addresses comes next: the one that has waited longest, or the one with the fewest requests. */
import type { Mapping } from '#config';

export interface Candidate {
  readonly origin: string;
  readonly activeRequests: number;
  /** The number of the choice that picked it last. Written here. */
  lastPicked: number;
}

/** `candidates` must not be empty. */
export type Pick<C extends Candidate> = (
  candidates: readonly C[],
  isAvailable: (candidate: C) => boolean,
  tried: readonly string[],
) => C;

/**
 * Picks the address that has waited longest among the best: available before unavailable, untried before tried. So of
 * two addresses that stay available, each gets exactly one turn between two of the other, whichever addresses come and
 * go. When none is available all are used, since a request that may fail is better than one that must.
 */
export function createLoadBalancer<C extends Candidate>(policy: Mapping['loadBalancer']): Pick<C> {
  const isBefore = policy === 'least_request' ? isLessBusy : hasWaitedLonger;
  let picks = 0;
  return function pick(candidates, isAvailable, tried) {
    let best = candidates[0] as C;
    let bestRank = -1;
    for (const candidate of candidates) {
      const rank = rankOf(isAvailable(candidate), tried.includes(candidate.origin));
      if (rank < bestRank || (rank === bestRank && !isBefore(candidate, best))) continue;
      best = candidate;
      bestRank = rank;
    }
    picks += 1;
    best.lastPicked = picks;
    return best;
  };
}

function rankOf(isAvailable: boolean, isTried: boolean): number {
  return (isAvailable ? 2 : 0) + (isTried ? 0 : 1);
}

function hasWaitedLonger(one: Candidate, other: Candidate): boolean {
  return one.lastPicked < other.lastPicked;
}

function isLessBusy(one: Candidate, other: Candidate): boolean {
  const difference = one.activeRequests - other.activeRequests;
  return difference === 0 ? hasWaitedLonger(one, other) : difference < 0;
}
