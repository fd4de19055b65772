/** Sums per limit, cheap enough for every decision, and as many as the configuration names. */
import type { Count, Hit } from './counters.ts';
import type { CurrentLimit } from './limiter.ts';
import type { Rule, RuleMatch } from './rule.ts';

/** Hits, not requests. */
export interface Tally {
  total: number;
  within: number;
  near: number;
  over: number;
  overFromMemory: number;
  shadow: number;
}

/** How much of a limit the fullest of its counters has used, from 0 to 1, and until when that holds: of all whose window still runs. */
interface Fullest {
  share: number;
  untilMs: number;
}

/** `descriptor` as configured, or with a request's values where the configuration wants them told apart. */
export interface TallyLabels {
  readonly domain: string;
  readonly descriptor: string;
  readonly limit: string;
}

export interface Tallies {
  readonly count: (match: RuleMatch, hit: Hit, count: Count) => void;
  readonly all: () => Iterable<TalliedLimit>;
}

export interface TalliedLimit {
  readonly labels: TallyLabels;
  /** The descriptor as configured, whatever values are told apart. */
  readonly configured: string;
  readonly tally: Readonly<Tally>;
  /** How much its fullest counter has used, from 0 to 1; 0 when no window of it runs. */
  readonly fullness: () => number;
}

export interface TalliesOptions {
  /** How many combinations of values get a sum of their own, over all limits; the rest is summed by the descriptor as configured. @default 1_000 */
  readonly detailsMax?: number;
  /** Milliseconds from any fixed point. @default performance.now */
  readonly clock?: () => number;
}

export function createTallies({ detailsMax = 1_000, clock = now }: TalliesOptions = {}): Tallies {
  const entries = new Map<string, Entry>();
  // A rule lives as long as its configuration, and its sums longer: a limit that stays goes on where it was.
  const byRule = new WeakMap<Rule, Entry>();
  let details = 0;

  function entryOf({ rule, detail }: RuleMatch): Entry {
    if (detail !== undefined) return detailed(rule, detail) ?? ofRule(rule);
    return ofRule(rule);
  }

  function ofRule(rule: Rule): Entry {
    const known = byRule.get(rule);
    if (known !== undefined) return known;
    const labels = labelsOf(rule);
    const entry = entries.get(keyOf(labels)) ?? add(labels, rule);
    byRule.set(rule, entry);
    return entry;
  }

  /** Undefined when there is no room for another combination of values. */
  function detailed(rule: Rule, detail: string): Entry | undefined {
    const descriptor = detail.slice(0, detailCharactersMax);
    const labels = { ...labelsOf(rule), descriptor };
    const known = entries.get(keyOf(labels));
    if (known !== undefined || details >= detailsMax) return known;
    details += 1;
    return add(labels, rule);
  }

  function add(labels: TallyLabels, { descriptor: configured }: Rule): Entry {
    const fullest = { share: 0, untilMs: 0 };
    const tally = { total: 0, within: 0, near: 0, over: 0, overFromMemory: 0, shadow: 0 };
    const fullness = () => (clock() < fullest.untilMs ? fullest.share : 0);
    const entry = { labels, configured, tally, fullest, fullness };
    entries.set(keyOf(labels), entry);
    return entry;
  }

  return Object.freeze({
    count(match: RuleMatch, hit: Hit, count: Count) {
      const { tally, fullest } = entryOf(match);
      tell(tally, hit, count);
      fill(fullest, hit, count, clock());
    },
    all: () => entries.values(),
  });
}

interface Entry extends TalliedLimit {
  readonly tally: Tally;
  readonly fullest: Fullest;
}

function fill(fullest: Fullest, { burst }: Hit, { over, remaining, resetSeconds }: Count, nowMs: number): void {
  const share = over || burst === 0 ? 1 : (burst - remaining) / burst;
  if (share < fullest.share && nowMs < fullest.untilMs) return;
  fullest.share = share;
  fullest.untilMs = nowMs + resetSeconds * 1000;
}

function now(): number {
  return performance.now();
}

/** A value may be as long as a header block; a label need not. */
const detailCharactersMax = 256;

function tell(tally: Tally, { hits, burst, shadow }: Hit, { over, remaining, fromMemory }: Count): void {
  tally.total += hits;
  if (!over) {
    tally.within += hits;
    // Whole numbers: a fifth is left, or less.
    if (remaining * 5 <= burst) tally.near += hits;
    return;
  }
  tally.over += hits;
  if (fromMemory) tally.overFromMemory += hits;
  if (shadow) tally.shadow += hits;
}

/** What a request brought along, its domain included, is the asker's word and no label. */
function labelsOf({ domain, descriptor, currentLimit }: Rule): TallyLabels {
  if (descriptor === '*') return { domain: '*', descriptor, limit: 'of the request' };
  return { domain, descriptor, limit: labelOfLimit(currentLimit) };
}

export function labelOfLimit({ name, requestsPerUnit, windowSeconds }: Omit<CurrentLimit, 'unit'>): string {
  return name ?? `${requestsPerUnit}/${windowSeconds}s`;
}

function keyOf(labels: TallyLabels): string {
  return JSON.stringify([labels.domain, labels.descriptor, labels.limit]);
}
