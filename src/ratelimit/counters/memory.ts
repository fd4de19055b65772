/** In-memory counters for a bounded number of keys. If there are more, the least useful counters are evicted. */
import { randomUUID } from 'node:crypto';
import {
  algorithms,
  type CounterAlgorithm,
  type CounterState,
  type Now,
  wholeSeconds,
  windowNumberAfter,
  windowNumberAt,
} from './algorithms.ts';
import { type Counters, type Hit, type HitResult, isDenied, neededOf, type TakeOptions } from './counters.ts';
import { createEvictedCounts, type EvictedCounts } from './evicted-counts.ts';

export interface MemoryCountersOptions {
  /** Maximum number of keys; each uses about 250 bytes. @default 100_000 */
  readonly keysMax?: number;
  /** Milliseconds since the epoch. @default Date.now */
  readonly clock?: () => number;
  /** Seeds the hash of evicted keys; clients must not know it. @default a random UUID */
  readonly seed?: string;
  /** Called for each counter that is evicted. */
  readonly onEvicted?: () => void;
}

export interface MemoryCounters extends Counters {
  take(hits: readonly Hit[], options?: TakeOptions): readonly HitResult[];
  /** Returns the current number of keys. */
  size(): number;
}

/**
 * There is a pair of windows, the current and the last, for each algorithm and window length in use. A window holds its
 * counters by key, and also in a list for each priority.
 *
 * Windows of the same length end together, so their counters expire together. To make room for a key, expired windows
 * are dropped first, as a whole. Then the oldest counter of the lowest priority that exceeds its share is evicted. The
 * share, a sixteenth of all keys for each priority, leaves room to count new clients even when all other keys belong to
 * clients that are being denied.
 *
 * Eviction neither restores nor takes quota. The count of an evicted counter is remembered in a few bytes until its
 * window ends, and the next counter of that key starts from it. Beyond about thirty times as many keys as fit, the keys
 * that have used the least are forgotten, so that they start anew.
 */
export function createMemoryCounters(options: MemoryCountersOptions = {}): MemoryCounters {
  const { keysMax = 100_000, clock = Date.now, seed = randomUUID(), onEvicted } = options;
  const evicted = createOnDemand(() => createEvictedCounts(keysMax, seed));
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
    if (hits.length === 1 && only !== undefined)
      return [resultOf(attempt(only, shareIfOver(only, countDenied), nowMs))];
    const attempts = hits.map((hit) => {
      const share = shareIfOver(hit, countDenied);
      return attempt(hit, hit.quota !== undefined && share === 'nothing' ? 'what fits' : share, nowMs);
    });
    if (!countDenied && isDenied(hits, attempts)) undo(attempts);
    return attempts.map(resultOf);
  }

  /** Counts immediately, so that a later hit on the same key sees it. `undo` reverts it if the request is denied. */
  function attempt(hit: Hit, ifOver: Share, nowMs: number): Attempt {
    const algorithm = algorithms[hit.algorithm];
    const pair = pairFor(hit, algorithm, nowMs);
    const now = { nowMs, windowNumber: pair.advance(nowMs) };
    const known = pair.find(hit.key);
    const counter = known ?? counterFor(hit, pair, nowMs);
    const seenBefore = known !== undefined || counter.current > 0;
    const available = algorithm.available(counter, hit, now);
    const over = neededOf(hit) > available;
    const taken = over ? takenOf(hit, ifOver, available) : hit.hits;
    algorithm.add(counter, taken, hit, now);
    return { hit, algorithm, pair, now, counter, seenBefore, taken, over };
  }

  function counterFor(hit: Hit, pair: WindowPair, nowMs: number): Counter {
    if (!needsNoCounter(hit)) return addTo(pair, hit.key, nowMs);
    const counter = pair.createCounter(hit.key);
    // Store what is left after hits are given back, or the next counter would start from the remembered count again.
    const isReturned = hit.hits < 0 && counter.current + counter.previous > 0;
    return isReturned ? addTo(pair, hit.key, nowMs) : counter;
  }

  function pairFor(hit: Hit, algorithm: CounterAlgorithm, nowMs: number): WindowPair {
    const seconds = algorithm.stateSeconds(hit);
    const known = pairs[hit.algorithm].get(seconds);
    if (known !== undefined) return known;
    const pair = createWindowPair(`${hit.algorithm} ${seconds}`, seconds, algorithm, nowMs, evicted);
    pairs[hit.algorithm].set(seconds, pair);
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
    if (size() >= keysMax) evictLeastUseful(nowMs);
  }

  function evictLeastUseful(nowMs: number): void {
    const least = priorities.find((level) => sum((pair) => pair.sizeOf(level)) > share) ?? priority.overLimit;
    for (const pair of allPairs()) {
      if (!pair.evict(least, nowMs)) continue;
      onEvicted?.();
      return;
    }
  }

  function size(): number {
    return sum((pair) => pair.size());
  }

  function sum(of: (pair: WindowPair) => number): number {
    let total = 0;
    for (const pair of allPairs()) total += of(pair);
    return total;
  }

  /** A handful, however many keys there are. */
  function* allPairs(): Generator<WindowPair> {
    for (const bySeconds of Object.values(pairs)) yield* bySeconds.values();
  }

  return Object.freeze({ take, size });
}

/** How much of a hit that is over is counted. */
type Share = 'nothing' | 'what fits' | 'everything';

function shareIfOver({ algorithm, limit, shadow }: Hit, countDenied: boolean): Share {
  if (countDenied && algorithm === 'fixed_window' && limit > 0) return 'everything';
  return countDenied || shadow ? 'what fits' : 'nothing';
}

function takenOf({ hits }: Hit, share: Share, available: number): number {
  if (share === 'nothing') return 0;
  return share === 'everything' ? hits : Math.min(hits, available);
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

/** Subtracts each attempt's hits separately, so that a shadow hit on the same key stays counted. */
function undo(attempts: readonly Attempt[]): void {
  for (const { hit, algorithm, counter, taken, now } of attempts)
    if (!hit.shadow && taken > 0) algorithm.add(counter, -taken, hit, now);
}

function resultOf({ hit, algorithm, pair, now, counter: tried, seenBefore, over }: Attempt): HitResult {
  // This hit may need no stored counter, but another hit of the same call may have created one.
  const counter = needsNoCounter(hit) ? (pair.find(hit.key) ?? tried) : tried;
  const remaining = algorithm.available(counter, hit, now);
  pair.promote(counter, priorityOf(hit, remaining, seenBefore, over));
  const untilResetMs = over ? algorithm.untilFitsMs : algorithm.untilEmptyMs;
  return { over, remaining, resetSeconds: wholeSeconds(untilResetMs(counter, hit, now)) };
}

/** A hit that exceeds a whole limit is over even if its counter is empty, so the remainder is checked first. */
function priorityOf({ burst }: Hit, remaining: number, seenBefore: boolean, over: boolean): Priority {
  if (remaining >= burst) return priority.seenOnce;
  if (over) return priority.overLimit;
  if (remaining === 0) return priority.exhausted;
  if (remaining * 5 <= burst) return priority.nearlyExhausted;
  return seenBefore ? priority.seenAgain : priority.seenOnce;
}

/** A hit of 0 counts nothing, a new key has nothing to give back, and a limit of 0 always denies. */
function needsNoCounter({ hits, limit }: Hit): boolean {
  return hits <= 0 || limit === 0;
}

/** Ranks counters by the cost of losing them: lowest when hit only once, highest when currently denying a client. */
const priority = Object.freeze({ seenOnce: 0, seenAgain: 1, nearlyExhausted: 2, exhausted: 3, overLimit: 4 } as const);

type Priority = (typeof priority)[keyof typeof priority];

const priorities: readonly Priority[] = Object.freeze(Object.values(priority));

interface Counter extends CounterState {
  readonly key: string;
  /** The list of its priority. Undefined if it is not stored, because it was evicted or a hit of 0 needs no counter. */
  list: CounterList | undefined;
  /** The neighbours in the list. */
  before: Counter | undefined;
  after: Counter | undefined;
}

type WindowPair = ReturnType<typeof createWindowPair>;

/** Holds the counters of one algorithm and window length: the current window and, while still needed, the last one. */
function createWindowPair(
  name: string,
  seconds: number,
  { usesLastWindow, roll }: CounterAlgorithm,
  nowMs: number,
  evicted: OnDemand<EvictedCounts>,
) {
  let number = windowNumberAt(nowMs, seconds);
  let current = createWindow();
  let last: CounterWindow | undefined;

  function createWindow(): CounterWindow {
    const expiresAt = (number + (usesLastWindow ? 2 : 1)) * seconds;
    return createCounterWindow({ name: `${name} ${number} `, expiresAt, evicted });
  }

  function begin(next: number): void {
    last = usesLastWindow && next === number + 1 && !current.isEmpty() ? current : undefined;
    number = next;
    current = createWindow();
  }

  function moveFromLast(from: CounterWindow, counter: Counter): Counter {
    from.remove(counter);
    roll(counter);
    return current.add(counter);
  }

  /** Creates a counter from what is remembered of the key in this window and the last, without storing it. */
  function createCounter(key: string): Counter {
    const used = last?.evictedCount(key) ?? 0;
    const counter = { key, current: used, previous: 0, list: undefined, before: undefined, after: undefined };
    roll(counter);
    counter.current = Math.max(counter.current, current.evictedCount(key));
    return counter;
  }

  function evictFrom(window: CounterWindow, level: Priority, nowMs: number): boolean {
    const counter = window.oldest(level);
    if (counter === undefined) return false;
    window.remove(counter);
    window.recordEvicted(counter.key, counter.current, level, nowMs);
    if (window === current) last?.recordEvicted(counter.key, counter.previous, level, nowMs);
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
    sizeOf: (level: Priority) => current.sizeOf(level) + (last?.sizeOf(level) ?? 0),
    /** Finds a counter. If it is in the last window, moves it to the current one. */
    find(key: string): Counter | undefined {
      const found = current.find(key);
      if (found !== undefined || last === undefined) return found;
      const earlier = last.find(key);
      return earlier && moveFromLast(last, earlier);
    },
    createCounter,
    add: (key: string) => current.add(createCounter(key)),
    promote: (counter: Counter, to: Priority) => current.promote(counter, to),
    /** Evicts the oldest counter of a priority, preferring the last window. Returns false when there is none. */
    evict: (level: Priority, nowMs: number) =>
      (last !== undefined && evictFrom(last, level, nowMs)) || evictFrom(current, level, nowMs),
  });
}

type CounterWindow = ReturnType<typeof createCounterWindow>;

interface CounterWindowOptions {
  /** The beginning of the names of its counters among the evicted ones of all windows. */
  readonly name: string;
  /** Seconds since the epoch. */
  readonly expiresAt: number;
  /** Shared by all windows. */
  readonly evicted: OnDemand<EvictedCounts>;
}

/** Holds the counters of one window by key and by priority, and remembers the counts of the evicted ones. */
function createCounterWindow({ name, expiresAt, evicted }: CounterWindowOptions) {
  const counters = new Map<string, Counter>();
  const lists: Readonly<Record<Priority, CounterList>> = {
    0: createCounterList(priority.seenOnce),
    1: createCounterList(priority.seenAgain),
    2: createCounterList(priority.nearlyExhausted),
    3: createCounterList(priority.exhausted),
    4: createCounterList(priority.overLimit),
  };
  let hasEvicted = false;

  return Object.freeze({
    size: () => counters.size,
    isEmpty: () => counters.size === 0 && !hasEvicted,
    sizeOf: (level: Priority) => lists[level].size(),
    oldest: (level: Priority) => lists[level].oldest(),
    find: (key: string) => counters.get(key),
    /** Adds the counter with the lowest priority. */
    add(counter: Counter): Counter {
      counters.set(counter.key, counter);
      lists[priority.seenOnce].append(counter);
      return counter;
    },
    remove(counter: Counter): void {
      counter.list?.remove(counter);
      counters.delete(counter.key);
    },
    /** Never lowers a priority, and leaves a counter alone that is not stored. */
    promote(counter: Counter, to: Priority): void {
      const from = counter.list;
      if (from === undefined || to <= from.priority) return;
      from.remove(counter);
      lists[to].append(counter);
    },
    recordEvicted(key: string, count: number, rank: Priority, nowMs: number): void {
      if (count === 0 && !hasEvicted) return;
      hasEvicted = true;
      evicted().record(name + key, { count, rank, expiresAt }, nowMs);
    },
    evictedCount: (key: string) => (hasEvicted ? evicted().countOf(name + key) : 0),
  });
}

type OnDemand<T> = () => T;

/** Calls `create` once, when the result is needed for the first time. */
function createOnDemand<T>(create: () => T): OnDemand<T> {
  let created: { readonly value: T } | undefined;
  return () => {
    created ??= { value: create() };
    return created.value;
  };
}

type CounterList = ReturnType<typeof createCounterList>;

/** A doubly linked list of counters, oldest first. A Set would have to skip deleted slots to find its first member. */
function createCounterList(level: Priority) {
  let size = 0;
  let first: Counter | undefined;
  let last: Counter | undefined;
  const list = {
    priority: level,
    size: () => size,
    oldest: () => first,
    append(counter: Counter): void {
      counter.list = list;
      counter.before = last;
      counter.after = undefined;
      if (last === undefined) first = counter;
      else last.after = counter;
      last = counter;
      size += 1;
    },
    remove(counter: Counter): void {
      const { before, after } = counter;
      counter.list = undefined;
      if (before === undefined) first = after;
      else before.after = after;
      if (after === undefined) last = before;
      else after.before = before;
      size -= 1;
    },
  };
  return list;
}
