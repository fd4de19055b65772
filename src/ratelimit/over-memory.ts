/** What a shared memory last said of counters that deny, so that it is not asked what cannot have changed. */
import type { Hit, HitResult } from './counters/counters.ts';

export interface OverMemoryOptions {
  readonly entriesMax: number;
  /** Milliseconds; only differences matter. */
  readonly clock: () => number;
}

/** A `HitResult` before its time is rounded to seconds. */
export interface SharedCount {
  readonly over: boolean;
  readonly remaining: number;
  readonly resetMs: number;
}

export interface OverMemory {
  /** The counts of a request that is certain to be denied and to count nothing; undefined if somebody must be asked. */
  recall(keys: readonly string[], hits: readonly Hit[], countDenied: boolean): readonly HitResult[] | undefined;
  /** What was answered to a request that was sent at `askedMs`. */
  learn(keys: readonly string[], hits: readonly Hit[], counts: readonly SharedCount[], askedMs: number): void;
}

/** A limit that is spent stays spent until its reset, whoever else counts: others can only take more. */
interface Entry {
  readonly limit: number;
  readonly burst: number;
  /** So many hits are over. */
  readonly overFrom: number;
  readonly overTo: number;
  /** So many hits, or fewer, are not. Between the two nothing is known. */
  readonly fittingTo: number;
  readonly remaining: number;
  readonly learnedMs: number;
  readonly untilMs: number;
}

/**
 * A denied request is remembered whole, because its other limits' numbers are part of the answer. The numbers of those
 * that are not over may be outdated; they decide nothing, and they are asked for again when the one that denies resets.
 * Full, it forgets what it learned first.
 */
export function createOverMemory({ entriesMax, clock }: OverMemoryOptions): OverMemory {
  const entries = new Map<string, Entry>();

  function find(key: string, { limit, burst }: Hit, nowMs: number): Entry | undefined {
    const entry = entries.get(key);
    if (entry === undefined || entry.limit !== limit || entry.burst !== burst) return undefined;
    // A clock that was set back says nothing about how long ago it was.
    return entry.learnedMs <= nowMs && nowMs < entry.untilMs ? entry : undefined;
  }

  function recallOne(key: string, hit: Hit, countDenied: boolean, nowMs: number): HitResult | undefined {
    const entry = find(key, hit, nowMs);
    if (entry === undefined || couldTake(hit, entry, countDenied)) return undefined;
    return countOf(entry, hit, nowMs);
  }

  function remember(key: string, entry: Entry): void {
    entries.delete(key);
    if (entry.untilMs <= entry.learnedMs) return;
    if (entries.size >= entriesMax) forgetOldest();
    if (entries.size < entriesMax) entries.set(key, entry);
  }

  function forgetOldest(): void {
    const [oldest] = entries.keys();
    if (oldest !== undefined) entries.delete(oldest);
  }

  return Object.freeze({
    recall(keys: readonly string[], hits: readonly Hit[], countDenied: boolean): readonly HitResult[] | undefined {
      if (entries.size === 0 || hasTwice(keys)) return undefined;
      const nowMs = clock();
      const counts: HitResult[] = [];
      for (const [index, hit] of hits.entries()) {
        const count = recallOne(keys[index] ?? '', hit, countDenied, nowMs);
        if (count === undefined) return undefined;
        counts.push(count);
      }
      const isDenied = counts.some(({ over }, index) => over && hits[index]?.shadow === false);
      return isDenied || counts.every(({ over }) => over) ? counts : undefined;
    },
    learn(keys: readonly string[], hits: readonly Hit[], counts: readonly SharedCount[], askedMs: number): void {
      const isOver = counts.some(({ over }) => over);
      if (!isOver && entries.size === 0) return;
      for (const [index, hit] of hits.entries()) {
        const [key = '', count] = [keys[index], counts[index]];
        if (count === undefined || !isOver) entries.delete(key);
        else remember(key, entryOf(hit, count, askedMs));
      }
    },
  });
}

/** Of two hits on one key the second depends on the first: that is left to those who count. */
function hasTwice(keys: readonly string[]): boolean {
  return keys.length > 1 && new Set(keys).size < keys.length;
}

/** Shadow hits and `countDenied` take what they can also from a request that is denied: it must be nothing. */
function couldTake(hit: Hit, { overFrom }: Entry, countDenied: boolean): boolean {
  return (hit.shadow || countDenied) && (overFrom > 1 || hit.hits === 0);
}

// From the question on, less the rounding: never longer than the shared memory itself would deny.
function entryOf(hit: Hit, { over, remaining, resetMs }: SharedCount, askedMs: number): Entry {
  const { limit, burst } = hit;
  const range = rangeOf(hit, over, remaining);
  return { limit, burst, ...range, remaining, learnedMs: askedMs, untilMs: askedMs + resetMs - 1 };
}

function rangeOf({ algorithm, hits }: Hit, over: boolean, remaining: number) {
  const { POSITIVE_INFINITY: never } = Number;
  // In a fixed window what remains only shrinks until the end, which is the same for all.
  if (algorithm === 'fixed_window') return { overFrom: remaining + 1, overTo: never, fittingTo: remaining };
  // The others give back little by little: fewer hits have room sooner, and more later.
  if (over) return { overFrom: hits, overTo: hits, fittingTo: -1 };
  return { overFrom: never, overTo: never, fittingTo: remaining };
}

/** Undefined if so many hits may be over or not. */
function countOf(entry: Entry, { hits }: Hit, nowMs: number): HitResult | undefined {
  const { remaining } = entry;
  const resetSeconds = Math.max(1, Math.ceil((entry.untilMs + 1 - nowMs) / 1_000));
  if (hits >= entry.overFrom && hits <= entry.overTo) return { over: true, remaining, resetSeconds, fromCache: true };
  return hits <= entry.fittingTo ? { over: false, remaining, resetSeconds } : undefined;
}
