/** The counting algorithms: fixed window, sliding window and token bucket, in integer arithmetic. */
import type { Algorithm } from '#config';
import { type Hit, neededOf } from './counters.ts';

/** The state of a counter. */
export interface CounterState {
  /** Hits in the current window. For a token bucket, when it will be full again, in microseconds since the epoch. */
  current: number;
  /** Hits in the previous window. */
  previous: number;
}

/** The current time, in milliseconds since the epoch, and the number of the window to count in. */
export interface Now {
  readonly nowMs: number;
  readonly windowNumber: number;
}

export interface CounterAlgorithm {
  /**
   * Returns the length of the window in which the state is stored. The state can be dropped when that window ends or,
   * with `usesLastWindow`, when the next one does.
   */
  stateSeconds(hit: Hit): number;
  readonly usesLastWindow: boolean;
  /** Carries the state over into the next window. */
  roll(state: CounterState): void;
  /** Returns how many more hits fit. */
  available(state: CounterState, hit: Hit, now: Now): number;
  /** Adds at most the available `hits`. A negative number undoes an addition made at the same `now`. */
  add(state: CounterState, hits: number, hit: Hit, now: Now): void;
  /** Returns `HitResult.resetSeconds`. `over` says whether the hit was over the limit. */
  resetSeconds(state: CounterState, hit: Hit, now: Now, over: boolean): number;
}

/** Allows `limit` hits in each window. */
const fixedWindow: CounterAlgorithm = Object.freeze<CounterAlgorithm>({
  stateSeconds: ({ windowSeconds }) => windowSeconds,
  usesLastWindow: false,
  roll(state) {
    state.current = 0;
  },
  available: ({ current }, { limit }) => Math.max(0, limit - current),
  add(state, hits) {
    state.current += hits;
  },
  resetSeconds: (_state, { windowSeconds }, { nowMs, windowNumber }) =>
    wholeSeconds((windowNumber + 1) * windowSeconds * 1_000 - nowMs),
});

/** Weights the hits of the previous window by how much of it overlaps the last `windowSeconds`. */
const slidingWindow: CounterAlgorithm = Object.freeze<CounterAlgorithm>({
  stateSeconds: ({ windowSeconds }) => windowSeconds,
  usesLastWindow: true,
  roll(state) {
    state.previous = state.current;
    state.current = 0;
  },
  available({ current, previous }, hit, now) {
    // Round up: a fraction of a hit counts as a whole one.
    return Math.max(0, hit.limit - current - Math.ceil((previous * leftMs(hit, now)) / windowMs(hit)));
  },
  add(state, hits) {
    state.current += hits;
  },
  resetSeconds(state, hit, now, over) {
    return wholeSeconds((over ? untilFitsMs(state, hit, now) : undefined) ?? untilEmptyMs(state, hit, now));
  },
});

/** Returns undefined for a hit that exceeds the whole limit. */
function untilFitsMs({ current, previous }: CounterState, hit: Hit, now: Now): number | undefined {
  const spare = hit.limit - neededOf(hit);
  if (spare < 0) return undefined;
  if (current <= spare) return leftMs(hit, now) - overlapMs(previous, spare - current, hit);
  return leftMs(hit, now) + windowMs(hit) - overlapMs(current, spare, hit);
}

/** Returns the longest overlap at which the `hits` of a window count as no more than `available`. */
function overlapMs(hits: number, available: number, hit: Hit): number {
  return hits <= available ? windowMs(hit) : Math.floor((available * windowMs(hit)) / hits);
}

function untilEmptyMs({ current, previous }: CounterState, hit: Hit, now: Now): number {
  if (current > 0) return leftMs(hit, now) + windowMs(hit);
  return previous > 0 ? leftMs(hit, now) : 0;
}

/** Returns the time until the window ends: at most a whole window, even if the clock stepped back before its start. */
function leftMs(hit: Hit, { nowMs, windowNumber }: Now): number {
  return Math.min(windowMs(hit), (windowNumber + 1) * windowMs(hit) - nowMs);
}

function windowMs({ windowSeconds }: Hit): number {
  return windowSeconds * 1_000;
}

/** The generic cell rate algorithm (ITU-T I.371). Its only state is the time when the bucket will be full. */
const tokenBucket: CounterAlgorithm = Object.freeze<CounterAlgorithm>({
  stateSeconds: (hit) => (hit.limit === 0 ? hit.windowSeconds : Math.max(1, Math.ceil(fullUs(hit) / 1_000_000))),
  usesLastWindow: true,
  roll() {},
  available: (state, hit, now) =>
    hit.limit === 0 ? 0 : Math.floor((fullUs(hit) - missingUs(state, hit, now)) / intervalUs(hit)),
  add(state, hits, hit, now) {
    if (hits !== 0) state.current = nowUs(now) + missingUs(state, hit, now) + hits * intervalUs(hit);
  },
  resetSeconds(state, hit, now, over) {
    if (hit.limit === 0) return 1;
    const missing = missingUs(state, hit, now);
    const needed = neededOf(hit);
    const fitsLater = over && needed <= hit.burst;
    return wholeSeconds((fitsLater ? missing + needed * intervalUs(hit) - fullUs(hit) : missing) / 1_000);
  },
});

/** Returns the time until the bucket is full: at most that of an empty bucket, even if the clock stepped back. */
function missingUs({ current }: CounterState, hit: Hit, now: Now): number {
  return Math.min(Math.max(current - nowUs(now), 0), fullUs(hit));
}

/** Returns the time to restore one hit. Rounded up, so that the rate never exceeds the limit. */
function intervalUs({ windowSeconds, limit }: Hit): number {
  return Math.ceil((windowSeconds * 1_000_000) / limit);
}

function fullUs(hit: Hit): number {
  return hit.burst * intervalUs(hit);
}

function nowUs({ nowMs }: Now): number {
  return Math.floor(nowMs * 1_000);
}

export const algorithms: Readonly<Record<Algorithm, CounterAlgorithm>> = Object.freeze({
  fixed_window: fixedWindow,
  sliding_window: slidingWindow,
  token_bucket: tokenBucket,
});

/** Numbers windows from the epoch, so that all processes agree. */
export function windowNumberAt(nowMs: number, windowSeconds: number): number {
  return Math.floor(nowMs / (windowSeconds * 1_000));
}

/**
 * Returns the window to count in, given that hits were last counted in `last`.
 *
 * If the clock steps back into the previous window, counting stays in `last`. Crossing the border twice would otherwise
 * grant every client its limit twice. A clock that steps back further must have been wrong before, so it is followed.
 * Exhausted limits would otherwise stay exhausted until the clock catches up.
 */
export function windowNumberAfter(last: number, nowMs: number, windowSeconds: number): number {
  const number = windowNumberAt(nowMs, windowSeconds);
  return number === last - 1 ? last : number;
}

/** Rounds up, to at least 1, so that waiting that long is always enough. */
export function wholeSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000));
}
