/** In-memory counters, of one thread or shared by several. When their table is full, the least useful give way. */
import { randomUUID } from 'node:crypto';
import { uint32Max } from '#ratelimit/limit';
import { wholeSeconds } from './algorithms.ts';
import { type Counter, createCounter, createTable, locksOf, openTable, type SharedTable } from './counter-table.ts';
import { type Counters, type Hit, type HitResult, isDenied, neededOf, type TakeOptions } from './counters.ts';
import { createSetLocks, releaseLocks } from './set-locks.ts';

export interface MemoryCountersOptions {
  /** Maximum number of keys; each uses 40 bytes. @default 100_000 */
  readonly keysMax?: number;
  /** Milliseconds since the epoch. @default Date.now */
  readonly clock?: () => number;
  /** Seeds the hash of the keys; clients must not know it. @default a random UUID */
  readonly seed?: string;
  /** Called for each counter that is evicted. */
  readonly onEvicted?: () => void;
  /** A table that this thread shares with others, instead of one of its own with `keysMax` and `seed`. */
  readonly shared?: { readonly table: SharedTable; readonly thread: number } | undefined;
}

export interface MemoryCounters extends Counters {
  take(hits: readonly Hit[], options?: TakeOptions): readonly HitResult[];
}

/**
 * A request decides on copies of its counters and writes them at the end, while it holds the locks of their sets. So
 * threads decide one after the other, a request that is denied evicts nothing, and a thread that ends loses nothing but
 * its own request.
 */
export function createMemoryCounters(options: MemoryCountersOptions = {}): MemoryCounters {
  const { keysMax = 100_000, clock = Date.now, seed = randomUUID(), onEvicted, shared } = options;
  const table = openTable(shared?.table ?? createTable(keysMax, seed));
  const locks = shared && createSetLocks(locksOf(shared.table), shared.thread);
  /** Used again by each request, because requests do not overlap. */
  const copies: Counter[] = [];

  function take(hits: readonly Hit[], { countDenied = false }: TakeOptions = {}): readonly HitResult[] {
    const nowMs = Math.floor(clock());
    const attempts = hits.map((hit, index) => ({
      hit,
      counter: counterOf(hit, index, nowMs),
      taken: 0,
      over: false,
      remaining: 0,
    }));
    const decide = () => decideOn(attempts, hits, countDenied);
    const evictions = locks === undefined ? decide() : locks.hold(setsOf(attempts), decide);
    for (let left = evictions; left > 0; left -= 1) onEvicted?.();
    return attempts.map(resultOf);
  }

  /** Returns how many counters had to give way. */
  function decideOn(attempts: readonly Attempt[], hits: readonly Hit[], countDenied: boolean): number {
    for (const { counter } of attempts) table.load(counter);
    for (const attempt of attempts) count(attempt, countDenied);
    if (!countDenied && isDenied(hits, attempts)) undo(attempts);
    let evictions = 0;
    for (const attempt of attempts) if (store(attempt)) evictions += 1;
    return evictions;
  }

  /** Returns a copy of the counter in its initial state, which hits on the same key share. */
  function counterOf(hit: Hit, index: number, nowMs: number): Counter {
    copies[index] ??= createCounter();
    const copy = table.begin(copies[index], hit, nowMs);
    if (index === 0) return copy;
    return copies.find(({ low, high }) => low === copy.low && high === copy.high) ?? copy;
  }

  /** Returns true if another counter had to give way. A counter in its initial state needs no slot. */
  function store(attempt: Attempt): boolean {
    const { hit, counter, over, taken } = attempt;
    attempt.remaining = counter.algorithm.available(counter, hit, counter);
    const used = hit.burst - attempt.remaining;
    const isNeeded = counter.isKnown || (taken !== 0 && used > 0);
    return isNeeded && table.store(counter, usefulnessOf(used, hit.burst, over));
  }

  return Object.freeze({ take });
}

/** Releases the locks of a thread that has ended, so that the other threads need not wait for them. */
export function releaseLocksOf(table: SharedTable, thread: number): void {
  releaseLocks(locksOf(table), thread);
}

function setsOf(attempts: readonly Attempt[]): readonly number[] {
  return attempts.map(({ counter }) => counter.set);
}

/** A hit, and the copy of the counter on which it is counted. */
interface Attempt {
  readonly hit: Hit;
  readonly counter: Counter;
  taken: number;
  over: boolean;
  remaining: number;
}

/** Each hit sees what earlier ones of the request have counted, and `undo` reverts it if the request is denied. */
function count(attempt: Attempt, countDenied: boolean): void {
  const { hit, counter } = attempt;
  const available = counter.algorithm.available(counter, hit, counter);
  attempt.over = neededOf(hit) > available;
  attempt.taken = attempt.over ? takenIfOver(hit, available, countDenied) : hit.hits;
  counter.algorithm.add(counter, attempt.taken, hit, counter);
}

/** What does not fit is counted in a fixed window only, and only if a proxy may give it back. */
function takenIfOver({ hits, algorithm, limit, shadow, quota }: Hit, available: number, countDenied: boolean): number {
  if (countDenied && algorithm === 'fixed_window' && limit > 0) return hits;
  return countDenied || shadow || quota !== undefined ? Math.min(hits, available) : 0;
}

/** Subtracts the hits of each attempt separately, so that a shadow hit on the same key stays counted. */
function undo(attempts: readonly Attempt[]): void {
  for (const { hit, counter, taken } of attempts)
    if (!hit.shadow && taken > 0) counter.algorithm.add(counter, -taken, hit, counter);
}

function resultOf({ hit, counter, over, remaining }: Attempt): HitResult {
  const { untilFitsMs, untilEmptyMs } = counter.algorithm;
  const untilResetMs = over ? untilFitsMs : untilEmptyMs;
  return { over, remaining, resetSeconds: wholeSeconds(untilResetMs(counter, hit, counter)) };
}

/**
 * Returns the power of two of what it would cost to lose the counter: the hits that its client would get back, times
 * the part of the limit that it has used, because it may not need them otherwise. If it is being denied, it does.
 */
function usefulnessOf(used: number, burst: number, over: boolean): number {
  const cost = Math.max(1, Math.min(((used * used) / burst) * 2 ** 16, uint32Max));
  return 2 * (31 - Math.clz32(cost)) + (over ? 1 : 0);
}
