/** Counters in this process: a bounded number of keys, and room made in constant time. */
import type { Counter } from './counter-queue.ts';
import type { Count, Counters, Hit, TakeOptions } from './counters.ts';
import { createMemoryShelf, type MemoryShelf } from './memory-shelf.ts';
import { noRank, rank, ranks } from './memory-window.ts';
import { type Meter, type Moment, meters } from './meter.ts';

export interface MemoryCountersOptions {
  /** Keys remembered at once; about 250 bytes each. @default 100_000 */
  readonly keysMax?: number;
  /** Milliseconds since the epoch. @default Date.now */
  readonly clock?: () => number;
}

export interface MemoryCounters extends Counters {
  take(hits: readonly Hit[], options?: TakeOptions): readonly Count[];
  /** Keys remembered now. */
  size(): number;
}

/**
 * Periods of the same length end together, so their counters live and die together: what has ended goes first and whole.
 * Then goes the oldest of the lowest rank that has more than its share. The share (a sixteenth for each rank) keeps
 * a full house of clients that are being denied from leaving newcomers no room to be counted in.
 */
export function createMemoryCounters({
  keysMax = 100_000,
  clock = Date.now,
}: MemoryCountersOptions = {}): MemoryCounters {
  const shelves: Readonly<Record<Hit['algorithm'], Map<number, MemoryShelf>>> = {
    fixed_window: new Map(),
    sliding_window: new Map(),
    token_bucket: new Map(),
  };
  const share = Math.floor(keysMax / 16);

  function take(hits: readonly Hit[], { countDenied = false }: TakeOptions = {}): readonly Count[] {
    const nowMs = Math.floor(clock());
    const [only] = hits;
    // Most requests meet one limit: there is nothing to take back of others.
    if (hits.length === 1 && only !== undefined) return [conclude(attempt(only, countDenied || only.shadow, nowMs))];
    const attempts = hits.map((hit) => attempt(hit, countDenied || hit.shadow, nowMs));
    if (!countDenied && attempts.some(({ over, hit }) => over && !hit.shadow)) takeBack(attempts);
    return attempts.map(conclude);
  }

  /** Counts at once, so that a second hit of the same key sees the first; what was too much is taken back by the caller. */
  function attempt(hit: Hit, takesPart: boolean, nowMs: number): Attempt {
    const meter = meters[hit.algorithm];
    const shelf = shelfOf(hit, meter, nowMs);
    const moment = { nowMs, number: shelf.advance(nowMs) };
    const known = shelf.find(hit.key);
    const counter = known ?? (leavesNoTrace(hit) ? blankCounter(hit.key) : addTo(shelf, hit.key, nowMs));
    const room = meter.room(counter, hit, moment);
    const over = hit.hits > room;
    const taken = !over || takesPart ? Math.min(hit.hits, room) : 0;
    meter.spend(counter, taken, hit, moment);
    return { hit, meter, shelf, moment, counter, again: known !== undefined, taken, over };
  }

  function shelfOf(hit: Hit, meter: Meter, nowMs: number): MemoryShelf {
    const seconds = meter.periodSeconds(hit);
    const shelf = shelves[hit.algorithm].get(seconds) ?? createMemoryShelf(seconds, meter, nowMs);
    // Most of the time it is there; a new one has no counters, and is dropped when it has none again.
    if (shelf.size() === 0) shelves[hit.algorithm].set(seconds, shelf);
    return shelf;
  }

  function addTo(shelf: MemoryShelf, key: string, nowMs: number): Counter {
    if (size() >= keysMax) makeRoom(shelf, nowMs);
    return shelf.add(key);
  }

  function makeRoom(needed: MemoryShelf, nowMs: number): void {
    for (const bySeconds of Object.values(shelves)) {
      for (const [seconds, shelf] of bySeconds) {
        shelf.advance(nowMs);
        if (shelf.size() === 0 && shelf !== needed) bySeconds.delete(seconds);
      }
    }
    if (size() >= keysMax) evictLeastUseful();
  }

  function evictLeastUseful(): void {
    const least = ranks.find((candidate) => sum((shelf) => shelf.sizeOf(candidate)) > share) ?? rank.denying;
    for (const bySeconds of Object.values(shelves)) {
      for (const shelf of bySeconds.values()) if (shelf.evict(least)) return;
    }
  }

  function size(): number {
    return sum((shelf) => shelf.size());
  }

  // There are as many shelves as lengths in the configuration: a handful, however many keys.
  function sum(of: (shelf: MemoryShelf) => number): number {
    let total = 0;
    for (const bySeconds of Object.values(shelves)) for (const shelf of bySeconds.values()) total += of(shelf);
    return total;
  }

  return Object.freeze({ take, size });
}

interface Attempt {
  readonly hit: Hit;
  readonly meter: Meter;
  readonly shelf: MemoryShelf;
  readonly moment: Moment;
  readonly counter: Counter;
  /** The key was remembered already. */
  readonly again: boolean;
  readonly taken: number;
  readonly over: boolean;
}

/** Each its own: a shadow hit of the same key keeps what it took. */
function takeBack(attempts: readonly Attempt[]): void {
  for (const { hit, meter, counter, taken, moment } of attempts)
    if (!hit.shadow) meter.spend(counter, -taken, hit, moment);
}

function conclude({ hit, meter, shelf, moment, counter: tried, again, over }: Attempt): Count {
  // Who only looked at a new key sees what others of the same call have counted.
  const counter = hit.hits === 0 ? (shelf.find(hit.key) ?? tried) : tried;
  const remaining = meter.room(counter, hit, moment);
  shelf.promote(counter, rankOf(hit, remaining, again, over));
  return { over, remaining, resetSeconds: meter.resetSeconds(counter, hit, moment, over) };
}

/** A hit that is more than a whole limit is over although its counter remembers nothing. */
function rankOf({ burst }: Hit, remaining: number, again: boolean, over: boolean): number {
  if (remaining >= burst) return rank.hitOnce;
  if (over) return rank.denying;
  if (remaining === 0) return rank.spent;
  return again ? rank.hitAgain : rank.hitOnce;
}

/** Nothing is remembered of who only looks, nor of a limit that admits nobody: it denies without a counter's help. */
function leavesNoTrace({ hits, limit }: Hit): boolean {
  return hits === 0 || limit === 0;
}

function blankCounter(key: string): Counter {
  return { key, count: 0, before: 0, rank: noRank, previous: undefined, next: undefined };
}
