/** Fixed window, sliding window and token bucket as pure functions of a counter's state: whole numbers in, whole numbers out. */
import type { Algorithm } from '#config';
import { type Hit, neededOf } from './counters.ts';

/** What a counter remembers. */
export interface CounterState {
  /** Hits of the current window; for a token bucket, when it will be full again, in microseconds since the epoch. */
  current: number;
  /** Hits of the window before. */
  previous: number;
}

/** Now, in milliseconds since the epoch, and the number of the window that it counts as. */
export interface Now {
  readonly nowMs: number;
  readonly windowNumber: number;
}

export interface CounterAlgorithm {
  /** The state is worthless after the end of this window, or with `usesLastWindow` after the end of the next. */
  stateSeconds(hit: Hit): number;
  readonly usesLastWindow: boolean;
  /** Turns the state of a window into that of the next. */
  roll(state: CounterState): void;
  /** How many more hits fit. */
  available(state: CounterState, hit: Hit, now: Now): number;
  /** `hits` is at most what is available; below 0 it returns what was added at the same time. */
  add(state: CounterState, hits: number, hit: Hit, now: Now): void;
  /** Whole seconds, as `HitResult.resetSeconds` has them; `over`: until the hit fits. */
  resetSeconds(state: CounterState, hit: Hit, now: Now, over: boolean): number;
}

/** Up to `limit` hits in each window. */
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

/** The window before counts as far as it overlaps the last `windowSeconds`. */
const slidingWindow: CounterAlgorithm = Object.freeze<CounterAlgorithm>({
  stateSeconds: ({ windowSeconds }) => windowSeconds,
  usesLastWindow: true,
  roll(state) {
    state.previous = state.current;
    state.current = 0;
  },
  available({ current, previous }, hit, now) {
    // Rounded up: a fraction of a hit takes the place of a whole one.
    return Math.max(0, hit.limit - current - Math.ceil((previous * leftMs(hit, now)) / windowMs(hit)));
  },
  add(state, hits) {
    state.current += hits;
  },
  resetSeconds(state, hit, now, over) {
    return wholeSeconds((over ? untilFitsMs(state, hit, now) : undefined) ?? untilEmptyMs(state, hit, now));
  },
});

/** Undefined when the hit is more than the limit. */
function untilFitsMs({ current, previous }: CounterState, hit: Hit, now: Now): number | undefined {
  const spare = hit.limit - neededOf(hit);
  if (spare < 0) return undefined;
  if (current <= spare) return leftMs(hit, now) - overlapMs(previous, spare - current, hit);
  return leftMs(hit, now) + windowMs(hit) - overlapMs(current, spare, hit);
}

/** The longest overlap at which `hits` of a window count for no more than `available`. */
function overlapMs(hits: number, available: number, hit: Hit): number {
  return hits <= available ? windowMs(hit) : Math.floor((available * windowMs(hit)) / hits);
}

function untilEmptyMs({ current, previous }: CounterState, hit: Hit, now: Now): number {
  if (current > 0) return leftMs(hit, now) + windowMs(hit);
  return previous > 0 ? leftMs(hit, now) : 0;
}

/** Until the window ends; the whole window for a clock that has stepped back over its beginning. */
function leftMs(hit: Hit, { nowMs, windowNumber }: Now): number {
  return Math.min(windowMs(hit), (windowNumber + 1) * windowMs(hit) - nowMs);
}

function windowMs({ windowSeconds }: Hit): number {
  return windowSeconds * 1_000;
}

/** The generic cell rate algorithm (ITU-T I.371): the state is only the time at which the bucket will be full. */
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

/** The time it takes to fill up, from 0 to a whole bucket: a clock that stepped back must not empty it further. */
function missingUs({ current }: CounterState, hit: Hit, now: Now): number {
  return Math.min(Math.max(current - nowUs(now), 0), fullUs(hit));
}

/** How long one hit takes to be restored, rounded up: the rate is never more than the limit. */
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

/** Windows are numbered from the epoch, so that every process numbers them alike. */
export function windowNumberAt(nowMs: number, windowSeconds: number): number {
  return Math.floor(nowMs / (windowSeconds * 1_000));
}

/**
 * The window to count in, after having counted in `last`.
 * A clock that steps back over a border stays in the window it was in, or the border would let every client in twice;
 * one that steps back further was wrong before, and is followed, or its limits would stay exhausted until it catches up.
 */
export function windowNumberAfter(last: number, nowMs: number, windowSeconds: number): number {
  const number = windowNumberAt(nowMs, windowSeconds);
  return number === last - 1 ? last : number;
}

/** Rounded up and never 0: waiting so long is always enough. */
export function wholeSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000));
}
