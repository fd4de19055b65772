/** In-memory counters for a bounded number of keys. If there are more, the least useful counters are evicted. */
import { hash, randomUUID } from 'node:crypto';
import {
  algorithms,
  type CounterAlgorithm,
  type CounterState,
  type Now,
  windowNumberAfter,
  windowNumberAt,
} from './algorithms.ts';
import { type Counters, type Hit, type HitResult, isDenied, neededOf, type TakeOptions } from './counters.ts';

export interface MemoryCountersOptions {
  /** Maximum number of keys; each uses about 250 bytes. @default 100_000 */
  readonly keysMax?: number;
  /** Milliseconds since the epoch. @default Date.now */
  readonly clock?: () => number;
  /** Seeds the hash of evicted keys; clients must not know it. @default a random UUID */
  readonly seed?: string;
}

export interface MemoryCounters extends Counters {
  take(hits: readonly Hit[], options?: TakeOptions): readonly HitResult[];
  /** Returns the current number of keys. */
  size(): number;
}

/**
 * Windows of the same length end together, so their counters expire together. To make room for a key, expired windows
 * are dropped first, as a whole. Then the oldest counter of the lowest priority that exceeds its share is evicted. The
 * share, a sixteenth of all keys for each priority, leaves room to count new clients even when all other keys belong to
 * clients that are being denied.
 *
 * Eviction never restores quota. The count of an evicted counter is kept as an estimate until its window ends, and
 * the next counter of that key starts from the estimate, which is at least what the key has used. During a flood of
 * more keys than fit, keys share estimates, so some new clients get less than their whole limit. Clients that have a
 * counter are not affected, and a new client is denied only if evicted keys that share its estimate were exhausted.
 */
export function createMemoryCounters(options: MemoryCountersOptions = {}): MemoryCounters {
  const { keysMax = 100_000, clock = Date.now, seed = randomUUID() } = options;
  const createEvicted = () => createEvictedCounts(2 * keysMax, seed);
  const pairs: Readonly<Record<Hit['algorithm'], Map<number, WindowPair>>> = {
    fixed_window: new Map(),
    sliding_window: new Map(),
    token_bucket: new Map(),
  };
  const share = Math.floor(keysMax / 16);

  function take(hits: readonly Hit[], { countDenied = false }: TakeOptions = {}): readonly HitResult[] {
    const nowMs = Math.floor(clock());
    const [only] = hits;
    // Most requests have a single limit, so there are no other counters to undo.
    if (hits.length === 1 && only !== undefined) return [resultOf(attempt(only, countDenied || only.shadow, nowMs))];
    const attempts = hits.map((hit) => attempt(hit, countDenied || hit.shadow || hit.quota !== undefined, nowMs));
    if (!countDenied && attempts.some(isOver) && isDenied(hits, attempts)) undo(attempts);
    return attempts.map(resultOf);
  }

  /** Counts immediately, so that a later hit on the same key sees it. `undo` reverts it if the request is denied. */
  function attempt(hit: Hit, countsPartially: boolean, nowMs: number): Attempt {
    const algorithm = algorithms[hit.algorithm];
    const pair = pairFor(hit, algorithm, nowMs);
    const now = { nowMs, windowNumber: pair.advance(nowMs) };
    const known = pair.find(hit.key);
    const counter = known ?? (needsNoCounter(hit) ? pair.peek(hit.key) : addTo(pair, hit.key, nowMs));
    const seenBefore = known !== undefined || counter.current > 0;
    const available = algorithm.available(counter, hit, now);
    const over = neededOf(hit) > available;
    const taken = !over || countsPartially ? Math.min(hit.hits, available) : 0;
    algorithm.add(counter, taken, hit, now);
    return { hit, algorithm, pair, now, counter, seenBefore, taken, over };
  }

  function pairFor(hit: Hit, algorithm: CounterAlgorithm, nowMs: number): WindowPair {
    const seconds = algorithm.stateSeconds(hit);
    const pair = pairs[hit.algorithm].get(seconds) ?? createWindowPair(seconds, algorithm, nowMs, createEvicted);
    // An empty pair is stored again because `makeRoom` may have removed it.
    if (pair.isEmpty()) pairs[hit.algorithm].set(seconds, pair);
    return pair;
  }

  function addTo(pair: WindowPair, key: string, nowMs: number): Counter {
    if (size() >= keysMax) makeRoom(pair, nowMs);
    return pair.add(key);
  }

  function makeRoom(needed: WindowPair, nowMs: number): void {
    for (const bySeconds of Object.values(pairs)) {
      for (const [seconds, pair] of bySeconds) {
        pair.advance(nowMs);
        if (pair.isEmpty() && pair !== needed) bySeconds.delete(seconds);
      }
    }
    if (size() >= keysMax) evictLeastUseful();
  }

  function evictLeastUseful(): void {
    const least = priorities.find((level) => sum((pair) => pair.sizeOf(level)) > share) ?? priority.overLimit;
    for (const bySeconds of Object.values(pairs)) {
      for (const pair of bySeconds.values()) if (pair.evict(least)) return;
    }
  }

  function size(): number {
    return sum((pair) => pair.size());
  }

  // There is one pair for each window length in use: a handful, however many keys there are.
  function sum(of: (pair: WindowPair) => number): number {
    let total = 0;
    for (const bySeconds of Object.values(pairs)) for (const pair of bySeconds.values()) total += of(pair);
    return total;
  }

  return Object.freeze({ take, size });
}

interface Attempt {
  readonly hit: Hit;
  readonly algorithm: CounterAlgorithm;
  readonly pair: WindowPair;
  readonly now: Now;
  readonly counter: Counter;
  readonly seenBefore: boolean;
  readonly taken: number;
  readonly over: boolean;
}

function isOver({ over }: Attempt): boolean {
  return over;
}

/** Subtracts each attempt's hits separately, so that a shadow hit on the same key stays counted. */
function undo(attempts: readonly Attempt[]): void {
  for (const { hit, algorithm, counter, taken, now } of attempts)
    if (!hit.shadow) algorithm.add(counter, -taken, hit, now);
}

function resultOf({ hit, algorithm, pair, now, counter: tried, seenBefore, over }: Attempt): HitResult {
  // A hit of 0 on a new key has no stored counter, but another hit of the same call may have created one.
  const counter = hit.hits === 0 ? (pair.find(hit.key) ?? tried) : tried;
  const remaining = algorithm.available(counter, hit, now);
  pair.promote(counter, priorityOf(hit, remaining, seenBefore, over));
  return { over, remaining, resetSeconds: algorithm.resetSeconds(counter, hit, now, over) };
}

/** A hit that exceeds a whole limit is over even if its counter is empty, so the remainder is checked first. */
function priorityOf({ burst }: Hit, remaining: number, seenBefore: boolean, over: boolean): number {
  if (remaining >= burst) return priority.seenOnce;
  if (over) return priority.overLimit;
  if (remaining === 0) return priority.exhausted;
  if (remaining * 5 <= burst) return priority.nearlyExhausted;
  return seenBefore ? priority.seenAgain : priority.seenOnce;
}

/** A hit of 0 counts nothing, and a limit of 0 always denies. */
function needsNoCounter({ hits, limit }: Hit): boolean {
  return hits === 0 || limit === 0;
}

interface Counter extends CounterState {
  readonly key: string;
  priority: number;
  /** The neighbours in the list of its priority. */
  before: Counter | undefined;
  after: Counter | undefined;
}

/** Ranks counters by the cost of losing them: lowest when hit only once, highest when currently denying a client. */
const priority = Object.freeze({ seenOnce: 0, seenAgain: 1, nearlyExhausted: 2, exhausted: 3, overLimit: 4 });

const priorities = Object.freeze(Object.values(priority));

/**
 * The priority of a counter that is in no list because it was evicted or never stored. It is above all others, so that
 * the counter is never promoted into a list.
 */
const unstored = priorities.length;

type WindowPair = ReturnType<typeof createWindowPair>;

/** Holds the counters of one algorithm and window length: the current window and, while still needed, the last one. */
function createWindowPair(
  seconds: number,
  { usesLastWindow, roll }: CounterAlgorithm,
  nowMs: number,
  createEvicted: () => EvictedCounts,
) {
  let number = windowNumberAt(nowMs, seconds);
  let current = createCounterWindow(createEvicted);
  let last: CounterWindow | undefined;

  function begin(next: number): void {
    last = usesLastWindow && next === number + 1 && !current.isEmpty() ? current : undefined;
    current = createCounterWindow(createEvicted);
    number = next;
  }

  function moveFromLast(from: CounterWindow, counter: Counter): Counter {
    from.remove(counter);
    roll(counter);
    return current.add(counter.key, counter);
  }

  /** Builds the state of a new counter from the estimates for the key in this window and the last. */
  function stateOf(key: string): CounterState {
    const state = { current: last?.estimate(key) ?? 0, previous: 0 };
    roll(state);
    state.current = Math.max(state.current, current.estimate(key));
    return state;
  }

  function evictFrom(window: CounterWindow, level: number): boolean {
    const counter = window.evict(level);
    if (counter === undefined) return false;
    window.record(counter.key, counter.current);
    if (window === current) last?.record(counter.key, counter.previous);
    return true;
  }

  return Object.freeze({
    /** Drops expired windows and returns the number of the current one. */
    advance(now: number): number {
      const next = windowNumberAfter(number, now, seconds);
      if (next !== number) begin(next);
      return next;
    },
    size: () => current.size() + (last?.size() ?? 0),
    isEmpty: () => current.isEmpty() && last === undefined,
    sizeOf: (level: number) => current.sizeOf(level) + (last?.sizeOf(level) ?? 0),
    /** Finds a counter. If it is in the last window, moves it to the current one. */
    find(key: string): Counter | undefined {
      const found = current.find(key);
      if (found !== undefined || last === undefined) return found;
      const earlier = last.find(key);
      return earlier && moveFromLast(last, earlier);
    },
    add: (key: string) => current.add(key, stateOf(key)),
    /** Returns a counter that is in no list. */
    peek(key: string): Counter {
      return { key, ...stateOf(key), priority: unstored, before: undefined, after: undefined };
    },
    promote: (counter: Counter, to: number) => current.promote(counter, to),
    /** Evicts the oldest counter of a priority, preferring the last window. Returns false when there is none. */
    evict: (level: number) => (last !== undefined && evictFrom(last, level)) || evictFrom(current, level),
  });
}

type CounterWindow = ReturnType<typeof createCounterWindow>;

/** Holds the counters of one window by key and by priority, and estimates for the evicted ones. */
function createCounterWindow(createEvicted: () => EvictedCounts) {
  const counters = new Map<string, Counter>();
  const seenOnce = createCounterList();
  const lists = [seenOnce, ...priorities.slice(1).map(createCounterList)];
  const listOf = (level: number): CounterList => lists[level] ?? seenOnce;
  let evicted: EvictedCounts | undefined;

  function remove(counter: Counter): void {
    listOf(counter.priority).remove(counter);
    counters.delete(counter.key);
    counter.priority = unstored;
  }

  return Object.freeze({
    size: () => counters.size,
    isEmpty: () => counters.size === 0 && evicted === undefined,
    sizeOf: (level: number) => listOf(level).size(),
    find: (key: string) => counters.get(key),
    add(key: string, { current, previous }: CounterState): Counter {
      const lowest = priority.seenOnce;
      const counter: Counter = { key, current, previous, priority: lowest, before: undefined, after: undefined };
      counters.set(key, counter);
      seenOnce.append(counter);
      return counter;
    },
    /** Never lowers a priority. */
    promote(counter: Counter, to: number): void {
      if (to <= counter.priority) return;
      listOf(counter.priority).remove(counter);
      counter.priority = to;
      listOf(to).append(counter);
    },
    remove,
    evict(level: number): Counter | undefined {
      const counter = listOf(level).oldest();
      if (counter !== undefined) remove(counter);
      return counter;
    },
    record(key: string, count: number): void {
      if (count === 0) return;
      evicted ??= createEvicted();
      evicted.record(key, count);
    },
    estimate: (key: string) => evicted?.estimate(key) ?? 0,
  });
}

type CounterList = ReturnType<typeof createCounterList>;

/** A doubly linked list of counters, oldest first. A Set would have to skip deleted slots to find its first member. */
function createCounterList() {
  let size = 0;
  let first: Counter | undefined;
  let last: Counter | undefined;
  return {
    size: () => size,
    oldest: () => first,
    append(counter: Counter): void {
      counter.before = last;
      counter.after = undefined;
      if (last === undefined) first = counter;
      else last.after = counter;
      last = counter;
      size += 1;
    },
    remove({ before, after }: Counter): void {
      if (before === undefined) first = after;
      else before.after = after;
      if (after === undefined) last = before;
      else after.before = before;
      size -= 1;
    },
  };
}

/** Estimates the counts of evicted counters in bounded memory. An estimate is never below the real count. */
interface EvictedCounts {
  record(key: string, count: number): void;
  /** Returns at least the count recorded for the key, and 0 if no recorded key shares its cells. */
  estimate(key: string): number;
}

const sketchRows = 2;

/**
 * A count-min sketch (Cormode and Muthukrishnan, 2005) with `cells` cells in each row. It keeps the largest count
 * rather than the sum, because a new counter starts from the estimate, and a sum would count those hits twice. The
 * secret `seed` keeps clients from choosing keys that share cells with another client's.
 */
function createEvictedCounts(cells: number, seed: string): EvictedCounts {
  const table = new Float64Array(sketchRows * cells);

  function cellsOf(key: string): readonly number[] {
    const digest = hash('sha256', seed + key, 'buffer');
    return Array.from({ length: sketchRows }, (_, row) => row * cells + (digest.readUInt32LE(4 * row) % cells));
  }

  return Object.freeze({
    record(key: string, count: number): void {
      for (const cell of cellsOf(key)) table[cell] = Math.max(table[cell] ?? 0, count);
    },
    estimate: (key: string) => Math.min(...cellsOf(key).map((cell) => table[cell] ?? 0)),
  });
}
