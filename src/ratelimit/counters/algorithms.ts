/** The counting algorithms, each in TypeScript for counters in memory and in Lua for counters in Redis. */
import type { Algorithm } from '#ratelimit/limit';
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

/**
 * The two versions of an algorithm stand next to each other and have the same functions. They use integers throughout,
 * and Lua's numbers are the same doubles as JavaScript's, so they agree to the last digit. A test compares them.
 *
 * In Lua, `hit.windowMs` and `hit.needed` are computed in advance, `state.windowNumber` is the window to count in, and
 * `nowMs` and `nowUs` are variables of the script. How states are stored differs, so it is not here: memory.ts stores
 * them by window, with the first three members, and redis-script.ts as text.
 */
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
  /**
   * Adds at most the available `hits`. A negative number gives hits back, but at most those that are counted, or undoes
   * an addition made at the same `now`.
   */
  add(state: CounterState, hits: number, hit: Hit, now: Now): void;
  /** Returns the time until the counter is back in its initial state. */
  untilEmptyMs(state: CounterState, hit: Hit, now: Now): number;
  /** Returns the time until a hit that is over fits, or until the counter is empty if the hit never fits. */
  untilFitsMs(state: CounterState, hit: Hit, now: Now): number;
}

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

/** Returns the time until the window ends, which is more than a whole window if the clock stepped back. */
function untilEndMs(hit: Hit, { nowMs, windowNumber }: Now): number {
  return (windowNumber + 1) * windowMs(hit) - nowMs;
}

function windowMs({ windowSeconds }: Hit): number {
  return windowSeconds * 1_000;
}

const windowsLua = `
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

local function windowNumberAfter(last, windowMs)
  local number = floor(nowMs / windowMs)
  return number == last - 1 and last or number
end

local function untilEndMs(state, hit) return (state.windowNumber + 1) * hit.windowMs - nowMs end
`;

/** Allows `limit` hits in each window. */
const fixedWindow: CounterAlgorithm = Object.freeze<CounterAlgorithm>({
  stateSeconds: ({ windowSeconds }) => windowSeconds,
  usesLastWindow: false,
  roll(state) {
    state.current = 0;
  },
  available: (state, hit) => Math.max(0, hit.limit - state.current),
  add(state, hits) {
    state.current = Math.max(0, state.current + hits);
  },
  untilEmptyMs: (_state, hit, now) => untilEndMs(hit, now),
  untilFitsMs: (_state, hit, now) => untilEndMs(hit, now),
});

const fixedWindowLua = `
local fixedWindow = {}
function fixedWindow.available(state, hit) return max(0, hit.limit - state.current) end
function fixedWindow.add(state, hits) state.current = max(0, state.current + hits) end
fixedWindow.untilEmptyMs = untilEndMs
fixedWindow.untilFitsMs = untilEndMs
`;

/** Weights the hits of the previous window by how much of it overlaps the last `windowSeconds`. */
const slidingWindow: CounterAlgorithm = Object.freeze<CounterAlgorithm>({
  stateSeconds: ({ windowSeconds }) => windowSeconds,
  usesLastWindow: true,
  roll(state) {
    state.previous = state.current;
    state.current = 0;
  },
  available(state, hit, now) {
    // Round up: a fraction of a hit counts as a whole one.
    return Math.max(0, hit.limit - state.current - Math.ceil((state.previous * leftMs(hit, now)) / windowMs(hit)));
  },
  add(state, hits) {
    const current = state.current + hits;
    state.current = Math.max(0, current);
    // More hits are given back than the current window has, so the others were made in the previous one.
    if (current < 0) state.previous = Math.max(0, state.previous + current);
  },
  untilEmptyMs(state, hit, now) {
    if (state.current > 0) return leftMs(hit, now) + windowMs(hit);
    return state.previous > 0 ? leftMs(hit, now) : 0;
  },
  untilFitsMs(state, hit, now) {
    const spare = hit.limit - neededOf(hit);
    if (spare < 0) return slidingWindow.untilEmptyMs(state, hit, now);
    if (state.current <= spare) return leftMs(hit, now) - overlapMs(state.previous, spare - state.current, hit);
    // In the next window, where the current hits are the previous ones.
    return leftMs(hit, now) + windowMs(hit) - overlapMs(state.current, spare, hit);
  },
});

/** Returns the time until the window ends: at most a whole window, even if the clock stepped back before its start. */
function leftMs(hit: Hit, now: Now): number {
  return Math.min(windowMs(hit), untilEndMs(hit, now));
}

/** Returns the longest overlap at which the `hits` of a window count as no more than `available`. */
function overlapMs(hits: number, available: number, hit: Hit): number {
  return hits <= available ? windowMs(hit) : Math.floor((available * windowMs(hit)) / hits);
}

const slidingWindowLua = `
local function leftMs(state, hit) return min(hit.windowMs, untilEndMs(state, hit)) end
local function overlapMs(hits, available, hit)
  return hits <= available and hit.windowMs or floor(available * hit.windowMs / hits)
end

local slidingWindow = {}
function slidingWindow.available(state, hit)
  return max(0, hit.limit - state.current - ceil(state.previous * leftMs(state, hit) / hit.windowMs))
end
function slidingWindow.add(state, hits)
  local current = state.current + hits
  state.current = max(0, current)
  if current < 0 then state.previous = max(0, state.previous + current) end
end
function slidingWindow.untilEmptyMs(state, hit)
  if state.current > 0 then return leftMs(state, hit) + hit.windowMs end
  return state.previous > 0 and leftMs(state, hit) or 0
end
function slidingWindow.untilFitsMs(state, hit)
  local spare = hit.limit - hit.needed
  if spare < 0 then return slidingWindow.untilEmptyMs(state, hit) end
  if state.current <= spare then return leftMs(state, hit) - overlapMs(state.previous, spare - state.current, hit) end
  return leftMs(state, hit) + hit.windowMs - overlapMs(state.current, spare, hit)
end
`;

/** The generic cell rate algorithm (ITU-T I.371). Its only state is the time when the bucket will be full. */
const tokenBucket: CounterAlgorithm = Object.freeze<CounterAlgorithm>({
  stateSeconds: (hit) => Math.max(1, Math.ceil(fullUs(hit) / 1_000_000)),
  usesLastWindow: true,
  roll() {},
  available: (state, hit, now) => Math.floor((fullUs(hit) - missingUs(state, hit, now)) / intervalUs(hit)),
  add(state, hits, hit, now) {
    if (hits === 0) return;
    state.current = now.nowMs * 1_000 + Math.max(0, missingUs(state, hit, now) + hits * intervalUs(hit));
  },
  untilEmptyMs: (state, hit, now) => Math.ceil(missingUs(state, hit, now) / 1_000),
  untilFitsMs(state, hit, now) {
    if (hit.limit === 0 || neededOf(hit) > hit.burst) return tokenBucket.untilEmptyMs(state, hit, now);
    return Math.ceil((missingUs(state, hit, now) + neededOf(hit) * intervalUs(hit) - fullUs(hit)) / 1_000);
  },
});

/** Returns the time until the bucket is full: at most that of an empty bucket, even if the clock stepped back. */
function missingUs({ current }: CounterState, hit: Hit, { nowMs }: Now): number {
  return Math.min(Math.max(0, current - nowMs * 1_000), fullUs(hit));
}

/** Returns the time to fill an empty bucket. That of a limit of 0 is always both empty and full. */
function fullUs(hit: Hit): number {
  return hit.limit === 0 ? 0 : hit.burst * intervalUs(hit);
}

/** Returns the time to restore one hit. Rounded up, so that the rate never exceeds the limit. */
function intervalUs(hit: Hit): number {
  return Math.ceil((windowMs(hit) * 1_000) / hit.limit);
}

const tokenBucketLua = `
local function intervalUs(hit) return ceil(hit.windowMs * 1000 / hit.limit) end
local function fullUs(hit) return hit.limit == 0 and 0 or hit.burst * intervalUs(hit) end
local function missingUs(state, hit) return min(max(0, state.current - nowUs), fullUs(hit)) end

local tokenBucket = {}
function tokenBucket.available(state, hit) return floor((fullUs(hit) - missingUs(state, hit)) / intervalUs(hit)) end
function tokenBucket.add(state, hits, hit)
  if hits ~= 0 then state.current = nowUs + max(0, missingUs(state, hit) + hits * intervalUs(hit)) end
end
function tokenBucket.untilEmptyMs(state, hit) return ceil(missingUs(state, hit) / 1000) end
function tokenBucket.untilFitsMs(state, hit)
  if hit.limit == 0 or hit.needed > hit.burst then return tokenBucket.untilEmptyMs(state, hit) end
  return ceil((missingUs(state, hit) + hit.needed * intervalUs(hit) - fullUs(hit)) / 1000)
end
`;

export const algorithms: Readonly<Record<Algorithm, CounterAlgorithm>> = Object.freeze({
  fixed_window: fixedWindow,
  sliding_window: slidingWindow,
  token_bucket: tokenBucket,
});

/** Defines the tables `fixedWindow`, `slidingWindow` and `tokenBucket`. */
export const algorithmsLua = [windowsLua, fixedWindowLua, slidingWindowLua, tokenBucketLua].join('');

/** Rounds up, to at least 1, so that waiting that long is always enough. */
export function wholeSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000));
}
