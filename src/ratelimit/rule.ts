/** A limit made ready to count: its window in seconds, the start of its counters' keys, and whose it is. */
import type { Algorithm, Limit, Source, Unit } from '#config';
import { bounded, sized } from './counter-key.ts';
import type { CurrentLimit, Entry } from './limiter.ts';
import { unitSeconds } from './windows.ts';

export interface Rule {
  readonly currentLimit: CurrentLimit;
  readonly unlimited: boolean;
  readonly replaces: readonly string[];
  readonly shadow: boolean;
  readonly algorithm: Algorithm;
  readonly burst: number;
  readonly domain: string;
  /** As configured, outermost first: `user › path=/v1/*`; `*` for a limit that came with a request. */
  readonly descriptor: string;
  readonly detailedMetric: boolean;
  /** Where its descriptor stands; undefined for a limit that came with a request. */
  readonly source: Source | undefined;
  /** Followed by the values that the configuration leaves open. */
  readonly keyPrefix: string;
}

/** `counterKey` is the same in every process, and for no other limit or descriptor. */
export interface RuleMatch {
  readonly rule: Rule;
  readonly counterKey: string;
  /** The descriptor with the values of this request, `user=ann`; only with `detailedMetric`. */
  readonly detail: string | undefined;
}

/** Where a limit stands; `path` is text that no other descriptor has. */
export interface RulePlace {
  readonly domain: string;
  readonly descriptor: string;
  readonly path: string;
  readonly detailedMetric: boolean;
  readonly source: Source;
}

export function createRule(limit: Limit, { domain, descriptor, path, detailedMetric, source }: RulePlace): Rule {
  const { requestsPerUnit, algorithm, name } = limit;
  const currentLimit = currentLimitOf(limit, name);
  return Object.freeze({
    currentLimit,
    unlimited: limit.unlimited,
    replaces: limit.replaces,
    shadow: limit.shadowMode,
    algorithm,
    burst: algorithm === 'token_bucket' ? (limit.burst ?? requestsPerUnit) : requestsPerUnit,
    domain,
    descriptor,
    detailedMetric,
    source,
    // Window and algorithm are part of the name: a limit that changes them starts to count anew.
    keyPrefix: `${currentLimit.windowSeconds}${keyMarks[algorithm]}|${path}|`,
  });
}

export function matchOf(rule: Rule, values: string, entries: readonly Entry[]): RuleMatch {
  return {
    rule,
    // Joined, it is one text in memory and not the sum of two, which every look into a table would have to walk.
    counterKey: bounded([rule.keyPrefix, values].join('')),
    detail: rule.detailedMetric ? entries.map(({ key, value }) => `${key}=${value}`).join(' › ') : undefined,
  };
}

/** The limit that came with a descriptor; its counter is shared with no limit of the files. */
export function overrideMatch(domain: string, entries: readonly Entry[], window: Window): RuleMatch {
  const currentLimit = currentLimitOf(window, undefined);
  const rule: Rule = {
    currentLimit,
    unlimited: false,
    replaces: [],
    shadow: false,
    algorithm: 'fixed_window',
    burst: window.requestsPerUnit,
    domain,
    descriptor: '*',
    detailedMetric: false,
    source: undefined,
    keyPrefix: `${currentLimit.windowSeconds}o|${sized(domain)}|`,
  };
  return matchOf(rule, entries.map(({ key, value }) => sized(key) + sized(value)).join(''), entries);
}

const keyMarks = { fixed_window: '', sliding_window: 's', token_bucket: 't' } as const satisfies Record<
  Algorithm,
  string
>;

export interface Window {
  readonly requestsPerUnit: number;
  readonly unit: Unit;
  readonly unitMultiplier?: number | undefined;
}

function currentLimitOf({ requestsPerUnit, unit, unitMultiplier = 1 }: Window, name: string | undefined): CurrentLimit {
  return Object.freeze({
    requestsPerUnit,
    unit,
    ...(unitMultiplier === 1 ? {} : { unitMultiplier }),
    windowSeconds: unitSeconds[unit] * unitMultiplier,
    name,
  });
}
