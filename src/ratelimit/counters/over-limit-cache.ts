/** A cache of exhausted limits that saves calls to Redis for a moment. */
import { createBoundedMap } from '#foundation';
import { wholeSeconds } from './algorithms.ts';
import { type Hit, type HitResult, isDenied, neededOf } from './counters.ts';

export interface OverLimitCacheOptions {
  readonly entriesMax: number;
  /** Milliseconds from any fixed point. */
  readonly clock: () => number;
}

/** A `HitResult` with its time in milliseconds, not yet rounded to seconds. */
export interface SharedResult {
  readonly over: boolean;
  readonly remaining: number;
  readonly resetMs: number;
}

export interface OverLimitCache {
  /** Returns results if it is certain that the request would count nothing, and undefined if Redis must decide. */
  lookUp(keys: readonly string[], hits: readonly Hit[], countDenied: boolean): readonly HitResult[] | undefined;
  /** Stores the results of a request that was sent to Redis at `sentMs`. */
  store(keys: readonly string[], hits: readonly Hit[], results: readonly SharedResult[], sentMs: number): void;
}

/**
 * An exhausted limit stays exhausted until it resets, unless its counter is reset or lost, or another process gives hits
 * back. An entry is used only for as long as such a change may go unnoticed.
 */
interface CachedLimit {
  readonly limit: number;
  readonly burst: number;
  /** A number of hits from `overFrom` to `overTo` is known to be over. */
  readonly overFrom: number;
  readonly overTo: number;
  /** A number of hits up to this one fits. Whether any other number fits is unknown. */
  readonly fitsUpTo: number;
  readonly remaining: number;
  readonly storedMs: number;
  readonly resetsAtMs: number;
}

const lifetimeMs = 2_000;

/**
 * Stores all results of a denied request, because its other limits are part of the decision as well. The remainders of
 * limits that are not over may become outdated, but they decide nothing, and Redis is consulted again soon. A full cache evicts its oldest entry.
 */
export function createOverLimitCache({ entriesMax, clock }: OverLimitCacheOptions): OverLimitCache {
  const entries = createBoundedMap<string, CachedLimit>(entriesMax);

  function find(key: string, { limit, burst }: Hit, nowMs: number): CachedLimit | undefined {
    const entry = entries.get(key);
    if (entry === undefined || entry.limit !== limit || entry.burst !== burst) return undefined;
    // If the clock was set back, the age of the entry is unknown.
    const untilMs = Math.min(entry.storedMs + lifetimeMs, entry.resetsAtMs - 1);
    return entry.storedMs <= nowMs && nowMs < untilMs ? entry : undefined;
  }

  function lookUpOne(key: string, hit: Hit, countDenied: boolean, nowMs: number): HitResult | undefined {
    const entry = find(key, hit, nowMs);
    if (entry === undefined || mayCount(hit, entry, countDenied)) return undefined;
    return resultOf(entry, hit, nowMs);
  }

  /**
   * Forgets the limits whose hits are given back, because later hits may fit even before Redis has responded. Returns
   * true if there are any.
   */
  function forgetReturned(keys: readonly string[], hits: readonly Hit[]): boolean {
    if (!hits.some(givesBack)) return false;
    for (const [index, hit] of hits.entries()) if (givesBack(hit)) entries.delete(keys[index] ?? '');
    return true;
  }

  function storeOne(key: string, entry: CachedLimit): void {
    if (entry.resetsAtMs - 1 <= entry.storedMs) entries.delete(key);
    else entries.set(key, entry);
  }

  return Object.freeze({
    lookUp(keys: readonly string[], hits: readonly Hit[], countDenied: boolean): readonly HitResult[] | undefined {
      if (entries.size() === 0 || forgetReturned(keys, hits) || hasDuplicates(keys)) return undefined;
      const nowMs = clock();
      const results: HitResult[] = [];
      for (const [index, hit] of hits.entries()) {
        const result = lookUpOne(keys[index] ?? '', hit, countDenied, nowMs);
        if (result === undefined) return undefined;
        results.push(result);
      }
      return isDenied(hits, results) || onlyShadowsAreOver(hits, results) ? results : undefined;
    },
    store(keys: readonly string[], hits: readonly Hit[], results: readonly SharedResult[], sentMs: number): void {
      const isOver = results.some(({ over }) => over);
      if (!isOver && entries.size() === 0) return;
      for (const [index, hit] of hits.entries()) {
        const [key = '', result] = [keys[index], results[index]];
        if (result === undefined || !isOver || givesBack(hit)) entries.delete(key);
        else storeOne(key, entryOf(hit, result, sentMs));
      }
    },
  });
}

function givesBack({ hits }: Hit): boolean {
  return hits < 0;
}

/** The second of two hits on the same key depends on the first, so Redis must decide. */
function hasDuplicates(keys: readonly string[]): boolean {
  return keys.length > 1 && new Set(keys).size < keys.length;
}

/** Such a request passes and counts nothing. Any other request that passes may have quotas to count. */
function onlyShadowsAreOver(hits: readonly Hit[], results: readonly HitResult[]): boolean {
  return hits.every(({ shadow }, index) => shadow && results[index]?.over === true);
}

/**
 * Shadow hits, and all hits with `countDenied`, may fit in part even if they are over. Redis must count those, and with
 * `countDenied` all hits in a fixed window.
 */
function mayCount(hit: Hit, { overFrom }: CachedLimit, countDenied: boolean): boolean {
  if (countDenied && hit.algorithm === 'fixed_window') return true;
  return (hit.shadow || countDenied) && (overFrom > 1 || hit.hits === 0);
}

/** Measures from before the call, so that an entry never outlives the reset in Redis. */
function entryOf(hit: Hit, { over, remaining, resetMs }: SharedResult, sentMs: number): CachedLimit {
  const { limit, burst } = hit;
  const range = rangeOf(hit, over, remaining);
  return { limit, burst, ...range, remaining, storedMs: sentMs, resetsAtMs: sentMs + resetMs };
}

function rangeOf(hit: Hit, over: boolean, remaining: number) {
  const needed = neededOf(hit);
  const { POSITIVE_INFINITY: never } = Number;
  // In a fixed window, the remainder can only shrink until the window ends.
  if (hit.algorithm === 'fixed_window') return { overFrom: remaining + 1, overTo: never, fitsUpTo: remaining };
  // The other algorithms restore hits gradually: a smaller hit fits sooner, a larger one later.
  if (over) return { overFrom: needed, overTo: needed, fitsUpTo: -1 };
  return { overFrom: never, overTo: never, fitsUpTo: remaining };
}

/** Returns undefined if it is unknown whether this number of hits is over. */
function resultOf(entry: CachedLimit, hit: Hit, nowMs: number): HitResult | undefined {
  const needed = neededOf(hit);
  const { remaining } = entry;
  const resetSeconds = wholeSeconds(entry.resetsAtMs - nowMs);
  if (needed >= entry.overFrom && needed <= entry.overTo)
    return { over: true, remaining, resetSeconds, fromCache: true };
  return needed <= entry.fitsUpTo ? { over: false, remaining, resetSeconds } : undefined;
}
