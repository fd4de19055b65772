/** Compiles the limits into a tree, matches descriptors against it, and builds the keys of counters. */
import { createHash } from 'node:crypto';
import type { LimitDescriptor, LimitDomain } from '#config';
import { type Algorithm, type Limit, redactedEntry, windowSeconds } from '#ratelimit/limit';
import type { CurrentLimit, Entry, Rule } from './limiter.ts';

export interface Rules {
  readonly has: (domain: string) => boolean;
  /** Returns an empty list when no limit applies. */
  match(domain: string, entries: readonly Entry[]): readonly RuleMatch[];
  readonly all: () => Iterable<Rule>;
  /** Whether any limit replaces another. */
  readonly hasReplaces: boolean;
}

/** `counterKey` is unique to the limit and the descriptor's values, and the same in every process. */
export interface RuleMatch {
  readonly rule: Rule;
  readonly counterKey: string;
  /** The descriptor with this request's values: `user=ann`. Defined only with `detailedMetric` or `valueToMetric`. */
  readonly detail: string | undefined;
}

/**
 * Compiles limits according to the matching rules of envoyproxy/ratelimit. At each level, an entry selects the
 * descriptor with its key and value, or else the first one in the file whose wildcard matches, or else the one with its
 * key and no value. Only the limits of the descriptor selected by the last entry apply. Matching never backtracks: once
 * a descriptor is selected, those below its siblings are not considered.
 */
export function compileRules(domains: readonly LimitDomain[]): Rules {
  const levels = new Map(
    domains.map(({ domain, descriptors }) => {
      const top = { domain, descriptor: '', shownDescriptor: '', path: withLength(domain), splitsMetrics: false };
      return [domain, compileLevel(descriptors, top)] as const;
    }),
  );
  return Object.freeze({
    has: (domain: string) => levels.has(domain),
    match(domain: string, entries: readonly Entry[]): readonly RuleMatch[] {
      const level = levels.get(domain);
      return level === undefined ? none : walk(level, entries);
    },
    *all() {
      for (const level of levels.values()) yield* rulesIn(level);
    },
    hasReplaces: domains.some(({ descriptors }) => descriptors.some(hasReplaces)),
  });
}

function hasReplaces({ limits, descriptors }: LimitDescriptor): boolean {
  return limits.some(({ replaces }) => replaces.length > 0) || descriptors.some(hasReplaces);
}

function* rulesIn(level: Level): Generator<Rule> {
  for (const { byValue, wildcards, anyValue } of level.values())
    for (const node of [...byValue.values(), ...wildcards.map((one) => one.node), anyValue]) {
      if (node === undefined) continue;
      yield* node.rules;
      yield* rulesIn(node.level);
    }
}

const none: readonly RuleMatch[] = Object.freeze([]);

type Level = ReadonlyMap<string, Branch>;

/** The descriptors at one level that have the same key. */
interface Branch {
  readonly byValue: Map<string, Node>;
  readonly wildcards: { readonly matches: (value: string) => boolean; readonly node: Node }[];
  anyValue: Node | undefined;
}

interface Node {
  readonly rules: readonly Rule[];
  /** Whether each value is counted separately. */
  readonly countsEachValue: boolean;
  readonly level: Level;
  readonly metrics: MetricLabels;
}

/** How a descriptor appears in metrics. */
interface MetricLabels {
  /**
   * `detailed` for a limit with `detailedMetric`, `by value` for one with `valueToMetric`. Undefined when the label is
   * the descriptor as configured.
   */
  readonly kind: 'detailed' | 'by value' | undefined;
  /** As configured: `user`, `path=/v1/*`. */
  readonly configured: string;
  readonly showsValue: boolean;
  /** True for a wildcard whose values share one counter and one series in metrics. */
  readonly isShared: boolean;
}

function walk(start: Level, entries: readonly Entry[]): readonly RuleMatch[] {
  let level = start;
  let node: Node | undefined;
  let values = '';
  for (const { key, value } of entries) {
    node = nodeFor(level.get(key), value);
    if (node === undefined) return none;
    if (node.countsEachValue) values += withLength(value);
    level = node.level;
  }
  if (node === undefined || node.rules.length === 0) return none;
  const detail = node.metrics.kind && detailOf(start, entries, node.metrics.kind);
  return node.rules.map((rule) => matchOf(rule, values, detail));
}

function detailOf(start: Level, entries: readonly Entry[], kind: NonNullable<MetricLabels['kind']>): string {
  let level = start;
  const labels: string[] = [];
  for (const { key, value } of entries) {
    const node = nodeFor(level.get(key), value);
    if (node === undefined) break;
    const { configured, showsValue, isShared } = node.metrics;
    labels.push((kind === 'detailed' || showsValue) && !isShared ? `${key}=${shownValue(value)}` : configured);
    level = node.level;
  }
  return labels.join(' › ');
}

/** Quotes a value that could look like several entries, so that no two descriptors look alike. */
function shownValue(value: string): string {
  return /[›"]/.test(value) ? JSON.stringify(value) : value;
}

function nodeFor(branch: Branch | undefined, value: string): Node | undefined {
  if (branch === undefined) return undefined;
  const exact = branch.byValue.get(value);
  if (exact !== undefined) return exact;
  for (const { matches, node } of branch.wildcards) if (matches(value)) return node;
  return branch.anyValue;
}

function matchOf(rule: Rule, values: string, detail: string | undefined): RuleMatch {
  // `join` creates a flat string. V8 would have to flatten a concatenated one at each look-up.
  return { rule, counterKey: boundedKey([rule.keyPrefix, values].join('')), detail };
}

/** Builds the match for a limit sent with a descriptor. It never shares a counter with a configured limit. */
export function overrideMatch(domain: string, entries: readonly Entry[], limit: LimitWindow): RuleMatch {
  const currentLimit = currentLimitOf(limit, undefined);
  const rule: Rule = {
    currentLimit,
    unlimited: false,
    replaces: [],
    shadow: false,
    quota: false,
    algorithm: 'fixed_window',
    burst: limit.requestsPerUnit,
    domain,
    descriptor: '*',
    shownDescriptor: '*',
    source: undefined,
    keyPrefix: `${currentLimit.windowSeconds}o|${withLength(domain)}|`,
  };
  return matchOf(rule, entries.map(({ key, value }) => withLength(key) + withLength(value)).join(''), undefined);
}

/** A position in the tree of descriptors. `path` is unique. */
interface Place {
  readonly domain: string;
  readonly descriptor: string;
  readonly shownDescriptor: string;
  readonly path: string;
  /** Whether this descriptor or one above it has `valueToMetric`. */
  readonly splitsMetrics: boolean;
}

function compileLevel(descriptors: readonly LimitDescriptor[], place: Place): Level {
  const level = new Map<string, Branch>();
  for (const descriptor of descriptors) {
    const branch = level.get(descriptor.key) ?? {
      byValue: new Map<string, Node>(),
      wildcards: [],
      anyValue: undefined,
    };
    level.set(descriptor.key, branch);
    addNode(branch, descriptor.value, compileNode(descriptor, place));
  }
  return level;
}

function addNode(branch: Branch, value: string | undefined, node: Node): void {
  if (value === undefined) branch.anyValue = node;
  else if (value.includes('*')) branch.wildcards.push({ matches: compileWildcard(value), node });
  else branch.byValue.set(value, node);
}

function compileNode(descriptor: LimitDescriptor, above: Place): Node {
  const { key, value, limits, shareThreshold, valueToMetric, descriptors } = descriptor;
  const configured = `${key}${value === undefined ? '' : `=${value}`}`;
  const splitsMetrics = above.splitsMetrics || valueToMetric;
  const place = {
    domain: above.domain,
    splitsMetrics,
    descriptor: below(above.descriptor, configured),
    shownDescriptor: below(above.shownDescriptor, redactedEntry(key, value)),
    path: `${above.path}${withLength(key)}${value === undefined ? '*' : `=${withLength(value)}`}`,
  };
  return {
    rules: limits.map((limit) => ruleOf(limit, descriptor, place)),
    countsEachValue: value === undefined || (value.includes('*') && !shareThreshold),
    level: compileLevel(descriptors, place),
    metrics: {
      kind: metricKindOf(descriptor, splitsMetrics),
      configured,
      showsValue: valueToMetric,
      isShared: shareThreshold,
    },
  };
}

function below(above: string, entry: string): string {
  return above === '' ? entry : `${above} › ${entry}`;
}

/** `detailed_metric` takes precedence, as in envoyproxy/ratelimit. */
function metricKindOf({ detailedMetric }: LimitDescriptor, splitsMetrics: boolean): MetricLabels['kind'] {
  if (detailedMetric) return 'detailed';
  return splitsMetrics ? 'by value' : undefined;
}

function ruleOf(limit: Limit, { source }: LimitDescriptor, place: Place): Rule {
  const { requestsPerUnit, algorithm } = limit;
  const currentLimit = currentLimitOf(limit, limit.name);
  return Object.freeze({
    currentLimit,
    unlimited: limit.unlimited,
    replaces: limit.replaces,
    shadow: limit.shadowMode,
    quota: limit.quotaMode,
    algorithm,
    burst: algorithm === 'token_bucket' ? (limit.burst ?? requestsPerUnit) : requestsPerUnit,
    domain: place.domain,
    descriptor: place.descriptor,
    shownDescriptor: place.shownDescriptor,
    source,
    // The key contains the window and the algorithm, so a limit that changes either starts with new counters.
    keyPrefix: `${currentLimit.windowSeconds}${keyMarks[algorithm]}|${place.path}|`,
  });
}

const keyMarks = Object.freeze({ fixed_window: '', sliding_window: 's', token_bucket: 't' } satisfies Record<
  Algorithm,
  string
>);

type LimitWindow = Pick<CurrentLimit, 'requestsPerUnit' | 'unit' | 'unitMultiplier'>;

function currentLimitOf(
  { requestsPerUnit, unit, unitMultiplier = 1 }: LimitWindow,
  name: string | undefined,
): CurrentLimit {
  return Object.freeze({
    requestsPerUnit,
    unit,
    ...(unitMultiplier === 1 ? {} : { unitMultiplier }),
    windowSeconds: windowSeconds({ unit, unitMultiplier }),
    name,
  });
}

/** Each `*` matches any text, including none. Matching takes linear time for each part between the wildcards. */
export function compileWildcard(pattern: string): (text: string) => boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return (text) => text === pattern;
  return (text) => {
    if (!text.startsWith(first) || !text.endsWith(last)) return false;
    let from = first.length;
    for (const part of rest) {
      const at = text.indexOf(part, from);
      if (at === -1) return false;
      from = at + part.length;
    }
    // The last part must not overlap text that earlier parts have matched.
    return text.length - last.length >= from;
  };
}

/** Prefixes the text with its length, so that it cannot be confused with what follows it: `a` becomes `1:a`. */
function withLength(text: string): string {
  return `${text.length}:${text}`;
}

const keyCharactersMax = 128;

/**
 * Replaces a long key with a digest, because values come from clients and would let a counter use as much memory as a
 * header. Keys start with a digit and digests with `#`, so they never collide.
 */
export function boundedKey(key: string): string {
  if (key.length <= keyCharactersMax) return key;
  // UTF-16, because UTF-8 would encode every lone surrogate as the same replacement character.
  return `#${createHash('sha256').update(key, 'utf16le').digest('base64')}`;
}
