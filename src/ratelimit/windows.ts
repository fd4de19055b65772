/** Fixed windows: which one a moment falls in, and how long until it ends. */
import type { Unit } from '#config';

/** As envoyproxy/ratelimit has them: a month is 30 days, a year 365. */
export const unitSeconds: Readonly<Record<Unit, number>> = Object.freeze({
  second: 1,
  minute: 60,
  hour: 3_600,
  day: 86_400,
  week: 7 * 86_400,
  month: 30 * 86_400,
  year: 365 * 86_400,
});

/** Windows are numbered from the epoch, so that every process numbers them alike. */
export function windowNumber(nowMs: number, windowSeconds: number): number {
  return Math.floor(nowMs / (windowSeconds * 1_000));
}

/**
 * The window to count in, after having counted in `last`.
 * A clock that steps back over a border stays in the window it was in, or the border would let everybody in twice;
 * one that steps back further was wrong before, and is followed, or its limits would stay spent until it catches up.
 */
export function windowNumberAfter(last: number, nowMs: number, windowSeconds: number): number {
  const number = windowNumber(nowMs, windowSeconds);
  return number === last - 1 ? last : number;
}

/** Whole seconds until window `number` ends, rounded up and never 0: waiting so long is always enough. */
export function secondsUntilReset(number: number, nowMs: number, windowSeconds: number): number {
  return Math.max(1, Math.ceil((number + 1) * windowSeconds - nowMs / 1_000));
}

/** Whole seconds, rounded up and never 0. */
export function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000));
}
