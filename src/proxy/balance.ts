/** Which of several addresses comes next. */

/** What a choice is made by. `lastPicked` is written here. */
export interface Candidate {
  readonly origin: string;
  readonly activeRequests: number;
  /** When it was chosen last, as the number of that choice. */
  lastPicked: number;
}

export type Policy = 'round_robin' | 'least_request';

export interface Balance<C extends Candidate> {
  /** `candidates` must not be empty. */
  readonly pick: (candidates: readonly C[], isAvailable: (candidate: C) => boolean, tried: readonly string[]) => C;
}

/**
 * Takes the address that has waited longest among the best there are: available before not, untried before tried. So of
 * two addresses that stay available each gets exactly one turn between two of the other, whatever comes and goes beside
 * them; and where none is available all are used, since a request that may fail is better than one that must.
 */
export function createBalance<C extends Candidate>(policy: Policy): Balance<C> {
  const isBefore = policy === 'least_request' ? isLessBusy : hasWaitedLonger;
  let picks = 0;
  return Object.freeze({
    pick(candidates: readonly C[], isAvailable: (candidate: C) => boolean, tried: readonly string[]) {
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
    },
  });
}

function rankOf(isAvailable: boolean, isTried: boolean): number {
  return (isAvailable ? 2 : 0) + (isTried ? 0 : 1);
}

function hasWaitedLonger(one: Candidate, other: Candidate): boolean {
  return one.lastPicked < other.lastPicked;
}

function isLessBusy(one: Candidate, other: Candidate): boolean {
  const less = one.activeRequests - other.activeRequests;
  return less === 0 ? hasWaitedLonger(one, other) : less < 0;
}
