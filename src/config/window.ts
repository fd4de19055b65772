/** The window of a limit, in seconds, and how long a counter of it matters. */
import type { Algorithm, Unit } from './configuration.ts';

const unitSeconds: Readonly<Record<Unit, number>> = {
  second: 1,
  minute: 60,
  hour: 3_600,
  day: 86_400,
  week: 7 * 86_400,
  month: 30 * 86_400,
  year: 365 * 86_400,
};

/** The units, the shortest first. */
export const units = Object.freeze(Object.keys(unitSeconds)) as readonly Unit[];

/** As envoyproxy/ratelimit has them: a month is 30 days, a year 365. */
export function windowSeconds({
  unit,
  unitMultiplier,
}: {
  readonly unit: Unit;
  readonly unitMultiplier: number;
}): number {
  return unitSeconds[unit] * unitMultiplier;
}

/** A century: microseconds since the epoch stay exact numbers for longer than that. */
export const secondsMax = 100 * unitSeconds.year;

interface Timed {
  readonly unit: Unit;
  readonly unitMultiplier: number;
  readonly requestsPerUnit: number;
  readonly algorithm: Algorithm;
  readonly burst: number | undefined;
}

/** The window, or the time in which an empty token bucket fills up, whichever is longer. */
export function memorySeconds(limit: Timed): number {
  const window = windowSeconds(limit);
  const { algorithm, requestsPerUnit, burst = requestsPerUnit } = limit;
  if (algorithm !== 'token_bucket' || requestsPerUnit === 0) return window;
  // Each request's part is rounded up to a microsecond.
  return Math.max(window, burst * Math.max(window / requestsPerUnit, 1e-6));
}
