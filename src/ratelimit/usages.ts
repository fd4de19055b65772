/** What came of each limit of the files, whatever values its tallies tell apart. */
import type { Limit } from '#config';
import { labelOfLimit, type TalliedLimit } from './tallies.ts';
import { unitSeconds } from './windows.ts';

export interface Usage {
  /** Hits, not requests, since the start. */
  readonly hits: number;
  readonly over: number;
  /** How much its fullest counter has used, from 0 to 1; 0 when no window of it runs. */
  readonly fullness: number;
}

/** `descriptor` as configured, outermost first: `user › path=/v1/*`. Undefined: nobody has asked about it. */
export type UsageOf = (domain: string, descriptor: string, limit: Limit) => Usage | undefined;

/** As things stand now: limits of one descriptor that have the same name are one. */
export function readUsages(tallied: Iterable<TalliedLimit>): UsageOf {
  const usages = new Map<string, Usage>();
  for (const { labels, configured, tally, fullness } of tallied) {
    const key = keyOf(labels.domain, configured, labels.limit);
    const { hits, over, fullness: fullest } = usages.get(key) ?? none;
    const sum = { hits: hits + tally.total, over: over + tally.over, fullness: Math.max(fullest, fullness()) };
    usages.set(key, sum);
  }
  return (domain, descriptor, { name, requestsPerUnit, unit, unitMultiplier }) => {
    const windowSeconds = unitSeconds[unit] * unitMultiplier;
    return usages.get(keyOf(domain, descriptor, labelOfLimit({ name, requestsPerUnit, windowSeconds })));
  };
}

const none: Usage = Object.freeze({ hits: 0, over: 0, fullness: 0 });

function keyOf(...parts: readonly string[]): string {
  return JSON.stringify(parts);
}
