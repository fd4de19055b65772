/** How exchanges with the service of one mapping failed, by what the client was told. */
import type { Problem, ProblemSlug } from '#http';

/** Counted up. Each is the last part of a problem's name, such as `upstream-failed`. */
export interface UpstreamCounts {
  /** Attempts beside the first. */
  retries: number;
  unavailable: number;
  failed: number;
  timeout: number;
  overloaded: number;
}

export function createUpstreamCounts(): UpstreamCounts {
  return { retries: 0, unavailable: 0, failed: 0, timeout: 0, overloaded: 0 };
}

/** A fault of the client's is none of the service's. */
export function countFailure(counts: UpstreamCounts, { slug }: Problem): void {
  const kind = kinds[slug];
  if (kind !== undefined) counts[kind] += 1;
}

const kinds: Partial<Record<ProblemSlug, keyof UpstreamCounts>> = {
  'upstream-unavailable': 'unavailable',
  'upstream-failed': 'failed',
  'upstream-timeout': 'timeout',
  'upstream-overloaded': 'overloaded',
};
