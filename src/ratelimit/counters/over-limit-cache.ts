/** Exhausted limits remembered in this process, so that Redis is not asked again before they reset. */
import { wholeSeconds } from './algorithms.ts';
import { type Hit, type HitResult, isDenied, neededOf } from './counters.ts';

export interface OverLimitCacheOptions {
  readonly entriesMax: number;
  /** Milliseconds; only differences matter. */
  readonly clock: () => number;
}

/** A `HitResult` before its time is rounded to seconds. */
export interface SharedResult {
  readonly over: boolean;
  readonly remaining: number;
  readonly resetMs: number;
}

export interface OverLimitCache {
  /** The results of a request that is certain to be denied and to count nothing; undefined if Redis must be asked. */
  lookUp(keys: readonly string[], hits: readonly Hit[], countDenied: boolean): readonly HitResult[] | undefined;
  /** The results of a request that was sent at `askedMs`. */
  store(keys: readonly string[], hits: readonly Hit[], results: readonly SharedResult[], askedMs: number): void;
}

/** An exhausted limit stays exhausted until its reset: other processes can only take more. */
interface CachedLimit {
  readonly limit: number;
  readonly burst: number;
  /** The number of hits that is over. */
  readonly overFrom: number;
  readonly overTo: number;
  /** So many hits, or fewer, fit. Between the two nothing is known. */
  readonly fittingTo: number;
  readonly remaining: number;
  readonly storedMs: number;
  readonly untilMs: number;
}

/**
 * A denied request is stored whole, because the numbers of its other limits are part of the answer. The numbers of those
 * that are not over may be outdated; they decide nothing, and Redis is asked again when the one that denies resets.
 * A full cache drops its oldest entry.
 */
export function createOverLimitCache({ entriesMax, clock }: OverLimitCacheOptions): OverLimitCache {
  const entries = new Map<string, CachedLimit>();

  function find(key: string, { limit, burst }: Hit, nowMs: number): CachedLimit | undefined {
    const entry = entries.get(key);
    if (entry === undefined || entry.limit !== limit || entry.burst !== burst) return undefined;
    // With a clock that was set back, the age is unknown.
    return entry.storedMs <= nowMs && nowMs < entry.untilMs ? entry : undefined;
  }

  function lookUpOne(key: string, hit: Hit, countDenied: boolean, nowMs: number): HitResult | undefined {
    const entry = find(key, hit, nowMs);
    if (entry === undefined || couldTake(hit, entry, countDenied)) return undefined;
    return resultOf(entry, hit, nowMs);
  }

  function storeOne(key: string, entry: CachedLimit): void {
    entries.delete(key);
    if (entry.untilMs <= entry.storedMs) return;
    if (entries.size >= entriesMax) dropOldest();
    if (entries.size < entriesMax) entries.set(key, entry);
  }

  function dropOldest(): void {
    const [oldest] = entries.keys();
    if (oldest !== undefined) entries.delete(oldest);
  }

  return Object.freeze({
    lookUp(keys: readonly string[], hits: readonly Hit[], countDenied: boolean): readonly HitResult[] | undefined {
      if (entries.size === 0 || hasTwice(keys)) return undefined;
      const nowMs = clock();
      const results: HitResult[] = [];
      for (const [index, hit] of hits.entries()) {
        const result = lookUpOne(keys[index] ?? '', hit, countDenied, nowMs);
        if (result === undefined) return undefined;
        results.push(result);
      }
      return isDenied(hits, results) || onlyShadowsAreOver(hits, results) ? results : undefined;
    },
    store(keys: readonly string[], hits: readonly Hit[], results: readonly SharedResult[], askedMs: number): void {
      const isOver = results.some(({ over }) => over);
      if (!isOver && entries.size === 0) return;
      for (const [index, hit] of hits.entries()) {
        const [key = '', result] = [keys[index], results[index]];
        if (result === undefined || !isOver) entries.delete(key);
        else storeOne(key, entryOf(hit, result, askedMs));
      }
    },
  });
}

/** Of two hits on one key the second depends on the first, so Redis must decide. */
function hasTwice(keys: readonly string[]): boolean {
  return keys.length > 1 && new Set(keys).size < keys.length;
}

/** Then there is nothing to take; of other requests that are not denied, quotas take what they can. */
function onlyShadowsAreOver(hits: readonly Hit[], results: readonly HitResult[]): boolean {
  return hits.every(({ shadow }, index) => shadow && results[index]?.over === true);
}

/** Shadow hits and `countDenied` take what they can although the request is denied: then Redis must count. */
function couldTake(hit: Hit, { overFrom }: CachedLimit, countDenied: boolean): boolean {
  return (hit.shadow || countDenied) && (overFrom > 1 || hit.hits === 0);
}

// Counted from before the call, less the rounding: never longer than Redis itself would deny.
function entryOf(hit: Hit, { over, remaining, resetMs }: SharedResult, askedMs: number): CachedLimit {
  const { limit, burst } = hit;
  const range = rangeOf(hit, over, remaining);
  return { limit, burst, ...range, remaining, storedMs: askedMs, untilMs: askedMs + resetMs - 1 };
}

function rangeOf(hit: Hit, over: boolean, remaining: number) {
  const needed = neededOf(hit);
  const { POSITIVE_INFINITY: never } = Number;
  // In a fixed window what remains only shrinks until the end.
  if (hit.algorithm === 'fixed_window') return { overFrom: remaining + 1, overTo: never, fittingTo: remaining };
  // The others restore hits little by little: fewer hits fit sooner, and more later.
  if (over) return { overFrom: needed, overTo: needed, fittingTo: -1 };
  return { overFrom: never, overTo: never, fittingTo: remaining };
}

/** Undefined if so many hits may be over or not. */
function resultOf(entry: CachedLimit, hit: Hit, nowMs: number): HitResult | undefined {
  const needed = neededOf(hit);
  const { remaining } = entry;
  const resetSeconds = wholeSeconds(entry.untilMs + 1 - nowMs);
  if (needed >= entry.overFrom && needed <= entry.overTo)
    return { over: true, remaining, resetSeconds, fromCache: true };
  return needed <= entry.fittingTo ? { over: false, remaining, resetSeconds } : undefined;
}
