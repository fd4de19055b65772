/** Counters in this process: a bounded number of keys, and room made in constant time. */
import type { Counter } from './counter-queue.ts';
import type { Count, Counters, Hit } from './counters.ts';
import { createMemoryWindow, type MemoryWindow, rank, ranks } from './memory-window.ts';
import { secondsUntilReset, windowNumber, windowNumberAfter } from './windows.ts';

export interface MemoryCountersOptions {
  /** Keys remembered at once; about 250 bytes each. @default 100_000 */
  readonly keysMax?: number;
  /** Milliseconds since the epoch. @default Date.now */
  readonly clock?: () => number;
}

export interface MemoryCounters extends Counters {
  take(hits: readonly Hit[]): readonly Count[];
  /** Keys remembered now. */
  size(): number;
}

/**
 * Windows of the same length end together, so their counters live and die together: what has ended goes first and whole.
 * Then goes the oldest of the lowest rank that has more than its share. The share (a sixteenth for each rank) keeps
 * a full house of clients that are being denied from leaving newcomers no room to be counted in.
 */
export function createMemoryCounters({
  keysMax = 100_000,
  clock = Date.now,
}: MemoryCountersOptions = {}): MemoryCounters {
  const windows = new Map<number, MemoryWindow>();
  const share = Math.floor(keysMax / 16);

  function take(hits: readonly Hit[]): readonly Count[] {
    const nowMs = clock();
    const attempts = hits.map((hit) => attempt(hit, nowMs));
    const denied = attempts.some(({ over }) => over);
    for (const { hit, counter, over } of attempts) if (denied && !over) counter.count -= hit.hits;
    return attempts.map((made) => conclude(made, nowMs));
  }

  /** Counts at once, so that a second hit of the same key sees the first; what was too much is taken back by the caller. */
  function attempt(hit: Hit, nowMs: number): Attempt {
    const window = currentWindow(hit.windowSeconds, nowMs);
    const counter = window.find(hit.key) ?? addTo(window, hit.key, nowMs);
    const over = counter.count + hit.hits > hit.limit;
    if (!over) counter.count += hit.hits;
    return { hit, window, counter, over };
  }

  function currentWindow(seconds: number, nowMs: number): MemoryWindow {
    const last = windows.get(seconds);
    const number = last === undefined ? windowNumber(nowMs, seconds) : windowNumberAfter(last.number, nowMs, seconds);
    if (last?.number === number) return last;
    const window = createMemoryWindow(seconds, number);
    windows.set(seconds, window);
    return window;
  }

  function addTo(window: MemoryWindow, key: string, nowMs: number): Counter {
    if (size() >= keysMax) makeRoom(nowMs);
    return window.add(key);
  }

  function makeRoom(nowMs: number): void {
    for (const seconds of windows.keys()) currentWindow(seconds, nowMs);
    if (size() >= keysMax) evictLeastUseful();
  }

  function evictLeastUseful(): void {
    const least = ranks.find((candidate) => sizeOf(candidate) > share) ?? rank.denying;
    const holder = [...windows.values()].find((window) => window.sizeOf(least) > 0);
    holder?.evict(least);
  }

  // There are as many windows as lengths in the configuration: a handful, however many keys.
  function size(): number {
    let sum = 0;
    for (const window of windows.values()) sum += window.size();
    return sum;
  }

  function sizeOf(candidate: number): number {
    let sum = 0;
    for (const window of windows.values()) sum += window.sizeOf(candidate);
    return sum;
  }

  return Object.freeze({ take, size });
}

interface Attempt {
  readonly hit: Hit;
  readonly window: MemoryWindow;
  readonly counter: Counter;
  readonly over: boolean;
}

function conclude({ hit, window, counter, over }: Attempt, nowMs: number): Count {
  window.promote(counter, rankOf(hit, counter, over));
  return {
    over,
    remaining: Math.max(0, hit.limit - counter.count),
    resetSeconds: secondsUntilReset(window.number, nowMs, window.seconds),
  };
}

function rankOf({ limit, hits }: Hit, { count }: Counter, over: boolean): number {
  // A limit of 0 denies without a counter's help.
  if (count === 0) return rank.hitOnce;
  if (over) return rank.denying;
  if (count >= limit) return rank.spent;
  return count > hits ? rank.hitAgain : rank.hitOnce;
}
