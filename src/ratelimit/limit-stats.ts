/** Hits, near, over and shadow sums for each limit, how full it is, and failed decisions: for metrics and diagnostics. */
import { type Limit, windowSeconds } from '#config';
import type { Hit, HitResult } from './counters/counters.ts';
import { type PortRefusal, portRefusals, type ReportRefusal } from './grpc/refusals.ts';
import type { CurrentLimit, Rule } from './limiter.ts';
import type { RuleMatch } from './rules.ts';

export interface LimitStats {
  readonly count: (match: RuleMatch, hit: Hit, result: HitResult) => void;
  /** The counters gave no answer for a decision. */
  readonly failed: () => void;
  /** The rate-limit port closed a connection, or refused a call. */
  readonly refused: ReportRefusal;
  /** Each limit that has been hit at least once. */
  readonly all: () => Iterable<LimitStat>;
  /** How many decisions the counters gave no answer for. */
  readonly failures: () => number;
  readonly refusals: () => Readonly<Record<PortRefusal, number>>;
  /** A snapshot: what became of each configured limit so far. */
  readonly usages: () => UsageOf;
}

export interface LimitStat {
  readonly labels: LimitLabels;
  /** The labels for people who may not read the configuration; several limits of one key may have the same. */
  readonly shownLabels: LimitLabels;
  /** The descriptor as configured, also where `labels` has the values of a request. */
  readonly configured: string;
  readonly sums: Readonly<LimitSums>;
  /** How much its fullest counter has used, from 0 to 1; 0 when that counter's window has ended. */
  readonly fullness: () => number;
}

/** `descriptor` as configured, or with a request's values where the limit has `detailedMetric`. */
export interface LimitLabels {
  readonly domain: string;
  readonly descriptor: string;
  readonly limit: string;
}

/** Hits, not requests. */
export interface LimitSums {
  total: number;
  within: number;
  near: number;
  over: number;
  overFromCache: number;
  shadow: number;
}

export interface Usage {
  /** Hits, not requests, since the start. */
  readonly hits: number;
  readonly over: number;
  /** As in `LimitStat`. */
  readonly fullness: number;
}

/** `descriptor` as configured, outermost first: `user › path=/v1/*`. Undefined: no request has hit it yet. */
export type UsageOf = (domain: string, descriptor: string, limit: Limit) => Usage | undefined;

export interface LimitStatsOptions {
  /** How many combinations of values get their own sums, over all limits; the rest is summed by the descriptor as configured. @default 1_000 */
  readonly detailsMax?: number;
  /** Milliseconds from any fixed point. @default performance.now */
  readonly clock?: () => number;
}

/** As many sums as the configuration has limits, and a plain addition for each decision. */
export function createLimitStats({ detailsMax = 1_000, clock = now }: LimitStatsOptions = {}): LimitStats {
  const entries = new Map<string, Entry>();
  // A rule lives as long as its configuration, and its sums longer: a limit that a reload keeps also keeps its sums.
  const byRule = new WeakMap<Rule, Entry>();
  let details = 0;
  let failures = 0;
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

  /** Undefined when there is no room for another combination of values. */
  function detailedEntry(rule: Rule, detail: string): Entry | undefined {
    // As UTF-8 writes it, also where the cut halves a character: otherwise two series would have the same labels.
    const labels = { ...labelsOf(rule), descriptor: detail.slice(0, detailCharactersMax).toWellFormed() };
    const known = entries.get(keyOf(labels));
    if (known !== undefined || details >= detailsMax) return known;
    details += 1;
    return add(labels, rule, labels);
  }

  function add(labels: LimitLabels, { descriptor: configured }: Rule, shownLabels: LimitLabels): Entry {
    const peak = { share: 0, untilMs: 0 };
    const sums = { total: 0, within: 0, near: 0, over: 0, overFromCache: 0, shadow: 0 };
    const fullness = () => (clock() < peak.untilMs ? peak.share : 0);
    const entry = { labels, shownLabels, configured, sums, peak, fullness };
    entries.set(keyOf(labels), entry);
    return entry;
  }

  return Object.freeze({
    count(match: RuleMatch, hit: Hit, result: HitResult) {
      const { sums, peak } = entryOf(match);
      addHit(sums, hit, result);
      raise(peak, hit, result, clock());
    },
    failed() {
      failures += 1;
    },
    refused(reason: PortRefusal) {
      refusals[reason] += 1;
    },
    all: () => entries.values(),
    failures: () => failures,
    refusals: () => refusals,
    usages: () => readUsages(entries.values()),
  });
}

interface Entry extends LimitStat {
  readonly sums: LimitSums;
  readonly peak: Peak;
}

/** The largest used share of any counter whose window has not ended, and when it ends. */
interface Peak {
  share: number;
  untilMs: number;
}

function now(): number {
  return performance.now();
}

/** A value may be as long as a header block; a label need not. */
const detailCharactersMax = 256;

function addHit(sums: LimitSums, { hits, burst, shadow }: Hit, result: HitResult): void {
  const { over, remaining, fromCache, isUncounted } = result;
  sums.total += hits;
  if (!over) {
    sums.within += hits;
    // In whole numbers: a fifth or less remains.
    if (!isUncounted && remaining * 5 <= burst) sums.near += hits;
    return;
  }
  sums.over += hits;
  if (fromCache) sums.overFromCache += hits;
  if (shadow) sums.shadow += hits;
}

function raise(peak: Peak, { burst }: Hit, result: HitResult, nowMs: number): void {
  const { over, remaining, resetSeconds, isUncounted } = result;
  if (isUncounted && !over) return;
  const share = over || burst === 0 ? 1 : (burst - remaining) / burst;
  if (share < peak.share && nowMs < peak.untilMs) return;
  peak.share = share;
  peak.untilMs = nowMs + resetSeconds * 1000;
}

/** What came with a request, its domain included, becomes no label: a client could make up any number of series. */
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

/** Limits of one descriptor that have the same name are one. */
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
