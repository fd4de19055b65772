/** Statistics of each limit for metrics and diagnostics: sums of hits, and how much of the limit is used up. */
import { createHash } from 'node:crypto';
import { truncate } from '#foundation';
import { type Limit, windowSeconds } from '#ratelimit/limit';
import type { Hit, HitResult } from './counters/counters.ts';
import { type PortRefusal, portRefusals, type ReportRefusal } from './grpc/bounds.ts';
import type { CurrentLimit, Rule } from './limiter.ts';
import type { RuleMatch } from './rules.ts';

export interface LimitStats {
  readonly count: (match: RuleMatch, hit: Hit, result: HitResult) => void;
  /** Removes other limits. Call it after a reload. */
  readonly keepOnly: (rules: Iterable<Rule>) => void;
  /** Call it when the counters could not be reached for a decision. */
  readonly failed: () => void;
  /** Call it when the counter of a key is evicted from memory. */
  readonly evicted: () => void;
  /** Call it when the rate-limit port closes a connection or rejects a call. */
  readonly refused: ReportRefusal;
  /** Returns the limits that have been hit at least once. */
  readonly all: () => Iterable<LimitStat>;
  /**
   * Returns the sums of removed limits that share their `shownLabels` with others. Without them, a counter with these
   * labels would decrease, which Prometheus takes for a restart.
   */
  readonly removed: () => Iterable<Series>;
  /** Returns the number of decisions for which the counters could not be reached. */
  readonly failures: () => number;
  readonly evictions: () => number;
  readonly refusals: () => Readonly<Record<PortRefusal, number>>;
  /** Takes a snapshot of the usage of every configured limit. */
  readonly usages: () => UsageOf;
}

export interface Series {
  /**
   * The labels without configured values, for readers who may not see the configuration. Several limits of one key may
   * share them.
   */
  readonly shownLabels: LimitLabels;
  readonly sums: Readonly<LimitSums>;
}

export interface LimitStat extends Series {
  readonly labels: LimitLabels;
  /** The descriptor as configured, even if `labels` contains values from a request. */
  readonly configured: string;
  /** The used share of its fullest counter, from 0 to 1. Drops to 0 when the window of that counter ends. */
  readonly fullness: () => number;
}

/** `descriptor` is as configured, or contains values from a request if `detailedMetric` or `valueToMetric` is set. */
export interface LimitLabels {
  readonly domain: string;
  readonly descriptor: string;
  readonly limit: string;
}

/** Counts hits rather than requests. */
export interface LimitSums {
  total: number;
  within: number;
  near: number;
  over: number;
  overFromCache: number;
  shadow: number;
  /** Not subtracted from the other sums, because a counter of Prometheus never decreases. */
  givenBack: number;
}

export interface Usage {
  /** Hits, rather than requests, since the process started. */
  readonly hits: number;
  readonly over: number;
  /** See `LimitStat.fullness`. */
  readonly fullness: number;
}

/** `descriptor` is as configured, outermost first: `user › path=/v1/*`. Returns undefined for a limit not hit yet. */
export type UsageOf = (domain: string, descriptor: string, limit: Limit) => Usage | undefined;

export interface LimitStatsOptions {
  /**
   * How many combinations of request values get separate sums, over all limits. Further ones are added to the sums of
   * the descriptor as configured. @default 1_000
   */
  readonly detailsMax?: number;
  /** A monotonic clock, in milliseconds. @default performance.now */
  readonly clock?: () => number;
}

/** Keeps one set of sums per configured limit, plus up to `detailsMax` for combinations of request values. */
export function createLimitStats({
  detailsMax = 1_000,
  clock = () => performance.now(),
}: LimitStatsOptions = {}): LimitStats {
  const entries = new Map<string, Entry>();
  // A reload creates new rules. Entries are found by their labels, so a limit that is still configured keeps its sums.
  const byRule = new WeakMap<Rule, Entry>();
  const removed = new Map<string, Series & { readonly sums: LimitSums }>();
  let details = 0;
  let failures = 0;
  let evictions = 0;
  const refusals = Object.fromEntries(Object.keys(portRefusals).map((reason) => [reason, 0])) as Record<
    PortRefusal,
    number
  >;

  function entryOf({ rule, detail }: RuleMatch): Entry {
    if (detail !== undefined) return detailedEntry(rule, detail) ?? ruleEntry(rule);
    return ruleEntry(rule);
  }

  function ruleEntry(rule: Rule): Entry {
    const known = byRule.get(rule);
    if (known !== undefined) return known;
    const labels = labelsOf(rule);
    const entry = entries.get(keyOf(labels)) ?? add(labels, rule, { ...labels, descriptor: rule.shownDescriptor });
    byRule.set(rule, entry);
    return entry;
  }

  /** Returns undefined when `detailsMax` is reached. */
  function detailedEntry(rule: Rule, detail: string): Entry | undefined {
    // Lone surrogates all become U+FFFD when written as UTF-8. Replacing them here keeps two entries from becoming
    // series with identical labels.
    const labels = { ...labelsOf(rule), descriptor: shortened(detail).toWellFormed() };
    const known = entries.get(keyOf(labels));
    if (known !== undefined || details >= detailsMax) return known;
    details += 1;
    return add(labels, rule, labels, true);
  }

  function add(
    labels: LimitLabels,
    { descriptor: configured }: Rule,
    shownLabels: LimitLabels,
    isDetail = false,
  ): Entry {
    const peak = { share: 0, untilMs: 0 };
    const sums = emptySums();
    const fullness = () => (clock() < peak.untilMs ? peak.share : 0);
    const entry = { labels, shownLabels, configured, isDetail, sums, peak, fullness };
    entries.set(keyOf(labels), entry);
    return entry;
  }

  function addRemoved({ shownLabels, sums }: Entry): void {
    const key = keyOf(shownLabels);
    const { sums: earlier = emptySums() } = removed.get(key) ?? {};
    for (const name of Object.keys(earlier) as (keyof LimitSums)[]) earlier[name] += sums[name];
    removed.set(key, { shownLabels, sums: earlier });
  }

  function forgetEndedSeries(): void {
    const shown = new Set(Array.from(entries.values(), ({ shownLabels }) => keyOf(shownLabels)));
    for (const key of removed.keys()) if (!shown.has(key)) removed.delete(key);
  }

  return Object.freeze({
    count(match: RuleMatch, hit: Hit, result: HitResult) {
      const { sums, peak } = entryOf(match);
      if (hit.hits < 0) {
        sums.givenBack -= hit.hits;
        return;
      }
      addHit(sums, hit, result);
      raisePeak(peak, hit, result, clock());
    },
    keepOnly(rules: Iterable<Rule>) {
      const kept = new Set(Array.from(rules, (rule) => keyOf(labelsOf(rule))));
      for (const [key, entry] of entries) {
        const { labels, configured, isDetail } = entry;
        if (configured === '*' || kept.has(keyOf({ ...labels, descriptor: configured }))) continue;
        entries.delete(key);
        if (isDetail) details -= 1;
        addRemoved(entry);
      }
      forgetEndedSeries();
    },
    failed() {
      failures += 1;
    },
    evicted() {
      evictions += 1;
    },
    refused(reason: PortRefusal) {
      refusals[reason] += 1;
    },
    all: () => entries.values(),
    removed: () => removed.values(),
    failures: () => failures,
    evictions: () => evictions,
    refusals: () => refusals,
    usages: () => readUsages(entries.values()),
  });
}

function emptySums(): LimitSums {
  return { total: 0, within: 0, near: 0, over: 0, overFromCache: 0, shadow: 0, givenBack: 0 };
}

interface Entry extends LimitStat {
  /** Whether `labels` contains values from a request. */
  readonly isDetail: boolean;
  readonly sums: LimitSums;
  readonly peak: Peak;
}

/** The largest used share of any counter whose window has not ended, and the end of that window. */
interface Peak {
  share: number;
  untilMs: number;
}

const detailCharactersMax = 256;

/** Values from requests can be as long as a header block, which is too long for a label. A digest keeps them apart. */
function shortened(detail: string): string {
  const beginning = truncate(detail, detailCharactersMax);
  if (beginning === detail) return detail;
  const digest = createHash('sha256').update(detail, 'utf16le').digest('base64url').slice(0, 16);
  return beginning + digest;
}

function addHit(sums: LimitSums, { hits, burst, shadow }: Hit, result: HitResult): void {
  const { over, remaining, fromCache, isUncounted } = result;
  sums.total += hits;
  if (!over) {
    sums.within += hits;
    // A fifth or less remains, computed in integers.
    if (!isUncounted && remaining * 5 <= burst) sums.near += hits;
    return;
  }
  sums.over += hits;
  if (fromCache) sums.overFromCache += hits;
  if (shadow) sums.shadow += hits;
}

function raisePeak(peak: Peak, { burst }: Hit, result: HitResult, nowMs: number): void {
  const { over, remaining, resetSeconds, isUncounted } = result;
  if (isUncounted && !over) return;
  const share = over || burst === 0 ? 1 : (burst - remaining) / burst;
  if (share < peak.share && nowMs < peak.untilMs) return;
  peak.share = share;
  peak.untilMs = nowMs + resetSeconds * 1000;
}

/** Hides the content of a limit sent with a request, even its domain, or clients could create any number of series. */
function labelsOf({ domain, descriptor, currentLimit }: Rule): LimitLabels {
  if (descriptor === '*') return { domain: '*', descriptor, limit: 'of the request' };
  return { domain, descriptor, limit: limitLabel(currentLimit) };
}

function limitLabel({ name, requestsPerUnit, windowSeconds: seconds }: Omit<CurrentLimit, 'unit'>): string {
  return name ?? `${requestsPerUnit}/${seconds}s`;
}

function keyOf({ domain, descriptor, limit }: LimitLabels): string {
  return JSON.stringify([domain, descriptor, limit]);
}

/** Adds up the limits of a descriptor that have the same name. */
function readUsages(stats: Iterable<LimitStat>): UsageOf {
  const usages = new Map<string, Usage>();
  for (const { labels, configured, sums, fullness } of stats) {
    const key = keyOf({ ...labels, descriptor: configured });
    const { hits, over, fullness: fullest } = usages.get(key) ?? noUsage;
    const sum = { hits: hits + sums.total, over: over + sums.over, fullness: Math.max(fullest, fullness()) };
    usages.set(key, sum);
  }
  return (domain, descriptor, limit) =>
    usages.get(keyOf({ domain, descriptor, limit: limitLabel({ ...limit, windowSeconds: windowSeconds(limit) }) }));
}

const noUsage: Usage = Object.freeze({ hits: 0, over: 0, fullness: 0 });
