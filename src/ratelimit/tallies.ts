/** Sums per limit, cheap enough for every decision, and as many as the configuration names. */
import type { Count, Hit } from './counters.ts';
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

/** `descriptor` as configured, or with a request's values where the configuration wants them told apart. */
export interface TallyLabels {
  readonly domain: string;
  readonly descriptor: string;
  readonly limit: string;
}

export interface Tallies {
  readonly count: (match: RuleMatch, hit: Hit, count: Count) => void;
  readonly all: () => Iterable<{ readonly labels: TallyLabels; readonly tally: Readonly<Tally> }>;
}

export interface TalliesOptions {
  /** How many combinations of values get a sum of their own, over all limits; the rest is summed by the descriptor as configured. @default 1_000 */
  readonly detailsMax?: number;
}

export function createTallies({ detailsMax = 1_000 }: TalliesOptions = {}): Tallies {
  const entries = new Map<string, { readonly labels: TallyLabels; readonly tally: Tally }>();
  // A rule lives as long as its configuration, and its sums longer: a limit that stays goes on where it was.
  const byRule = new WeakMap<Rule, Tally>();
  let details = 0;

  function tallyOf({ rule, detail }: RuleMatch): Tally {
    if (detail !== undefined) return detailed(rule, detail) ?? ofRule(rule);
    return ofRule(rule);
  }

  function ofRule(rule: Rule): Tally {
    const known = byRule.get(rule);
    if (known !== undefined) return known;
    const labels = labelsOf(rule);
    const tally = entries.get(keyOf(labels))?.tally ?? add(labels);
    byRule.set(rule, tally);
    return tally;
  }

  /** Undefined when there is no room for another combination of values. */
  function detailed(rule: Rule, detail: string): Tally | undefined {
    const descriptor = detail.slice(0, detailCharactersMax);
    const labels = { ...labelsOf(rule), descriptor };
    const known = entries.get(keyOf(labels))?.tally;
    if (known !== undefined || details >= detailsMax) return known;
    details += 1;
    return add(labels);
  }

  function add(labels: TallyLabels): Tally {
    const tally = { total: 0, within: 0, near: 0, over: 0, overFromMemory: 0, shadow: 0 };
    entries.set(keyOf(labels), { labels, tally });
    return tally;
  }

  return Object.freeze({
    count: (match: RuleMatch, hit: Hit, count: Count) => tell(tallyOf(match), hit, count),
    all: () => entries.values(),
  });
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
  const { name, requestsPerUnit, windowSeconds } = currentLimit;
  return { domain, descriptor, limit: name ?? `${requestsPerUnit}/${windowSeconds}s` };
}

function keyOf(labels: TallyLabels): string {
  return JSON.stringify([labels.domain, labels.descriptor, labels.limit]);
}
