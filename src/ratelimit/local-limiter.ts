/** The in-process limiter: matches descriptors to limits, counts hits, and combines the results into a decision. */
import { inspect, isDeepStrictEqual } from 'node:util';
import type { LimitDomain } from '#config';
import { type Logger, truncate } from '#foundation';
import { type Counters, type Hit, type HitResult, isDenied } from './counters/counters.ts';
import { createMemoryCounters } from './counters/memory.ts';
import type { LimitStats } from './limit-stats.ts';
import {
  checkRequest,
  type Decision,
  type Descriptor,
  type DescriptorStatus,
  type Entry,
  type Limiter,
  type RateLimitRequest,
  type ResponseHeader,
  type Rule,
} from './limiter.ts';
import { compileRules, overrideMatch, type RuleMatch, type Rules } from './rules.ts';

export interface LimiterOptions {
  readonly limits: readonly LimitDomain[];
  /** @default in-memory counters that use the system clock */
  readonly counters?: Counters;
  /** Count a denied request against all of its limits, as envoyproxy/ratelimit does. @default false */
  readonly countDenied?: boolean;
  /** Add RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset response headers to decisions. @default false */
  readonly responseHeaders?: boolean;
  readonly stats?: Pick<LimitStats, 'count' | 'keepOnly'> | undefined;
  /**
   * Logs descriptors that match no limit, if the debug level is enabled when the limiter is created.
   * @default nothing is logged
   */
  readonly logger?: Pick<Logger, 'debug' | 'isLevelEnabled'> | undefined;
}

export interface LocalLimiter extends Limiter {
  readonly explain: NonNullable<Limiter['explain']>;
  /** Replaces the limits. Requests already in progress finish with the old limits. Counters are kept. */
  readonly reload: (limits: readonly LimitDomain[]) => void;
  /** Returns a limiter with limits that a reload does not replace. It shares the counters. */
  readonly withLimits: (limits: readonly LimitDomain[]) => Limiter;
}

/**
 * Creates the in-process limiter. With in-memory counters it decides synchronously.
 * The decision is OK for an unknown domain and for a descriptor that matches no limit, and OK with 4294967295 remaining
 * for `unlimited`.
 * Throws a TypeError for counters without a `take` function and for limits that were not parsed by `configurationFrom`.
 * `shouldRateLimit` throws an InvalidRequest for an empty domain and for hits or limits that are out of range.
 */
export function createLimiter(options: LimiterOptions): LocalLimiter {
  const { limits, counters = createMemoryCounters(), countDenied = false, responseHeaders = false, stats } = options;
  if (typeof counters.take !== 'function') throw new TypeError(noTake);
  let compiled = { limits, rules: rulesOf(limits) };
  let { rules } = compiled;
  const takeOptions = Object.freeze({ countDenied });
  const reportUnmatched = createUnmatchedReport(options.logger);

  function decide({ matches, hits }: PreparedRequest, results: readonly HitResult[]): Decision {
    let next = 0;
    const appliedOf = (match: RuleMatch): Applied => {
      const hit = hits[next];
      const result = results?.[next++];
      if (hit === undefined || !isResult(result)) throw new Error(`${noResult}: ${inspect(result)}`);
      stats?.count(match, hit, result);
      return { rule: match.rule, result };
    };
    const statuses = matches.map(({ all, counted }) => statusOf(all, counted.map(appliedOf)));
    const overallCode = isDenied(hits, results) ? 'OVER_LIMIT' : 'OK';
    return responseHeaders
      ? { overallCode, statuses, responseHeaders: headersOf(statuses, matches) }
      : { overallCode, statuses };
  }

  /** Compiles the limits, unless they are those of the last call: most reloads do not change them. */
  function compile(next: readonly LimitDomain[]): Rules {
    if (!isDeepStrictEqual(next, compiled.limits)) compiled = { limits: next, rules: rulesOf(next) };
    return compiled.rules;
  }

  /** `current` returns the rules to apply. */
  const limiterOf = (current: () => Rules) => ({
    shouldRateLimit(request: RateLimitRequest): Decision | Promise<Decision> {
      checkRequest(request);
      reportUnmatched?.(request, current());
      const prepared = prepare(request, current());
      if (prepared.hits.length === 0) return decide(prepared, []);
      const results = counters.take(prepared.hits, takeOptions);
      return results instanceof Promise ? results.then((later) => decide(prepared, later)) : decide(prepared, results);
    },
    explain: (request: RateLimitRequest) =>
      prepare(request, current()).matches.map(({ all }) => all.map(({ rule }) => rule)),
  });

  return Object.freeze({
    ...limiterOf(() => rules),
    reload(next: readonly LimitDomain[]): void {
      const nextRules = compile(next);
      if (nextRules === rules) return;
      rules = nextRules;
      stats?.keepOnly(rules.all());
    },
    withLimits(fixed: readonly LimitDomain[]): Limiter {
      const fixedRules = compile(fixed);
      return Object.freeze(limiterOf(() => fixedRules));
    },
  });
}

const noTake = 'the counters have no function `take`: use createMemoryCounters or another implementation of Counters';

/** Guards against limits in the format of the configuration files, which a caller may pass by mistake. */
function rulesOf(limits: readonly LimitDomain[]): Rules {
  const isParsed = (domain: LimitDomain) =>
    domain?.descriptors?.every((descriptor) => Array.isArray(descriptor?.limits));
  if (!Array.isArray(limits) || !limits.every(isParsed)) throw new TypeError(unparsed);
  return compileRules(limits);
}

const unparsed = 'the limits were not parsed by configurationFrom: pass the `limits` of the configuration it returns';

const noResult = 'the counters did not return over, remaining and resetSeconds for every hit';

/** The embedding program may supply the counters, and a malformed result must not let a request pass. */
function isResult(result: HitResult | undefined): result is HitResult {
  return typeof result?.over === 'boolean' && result.remaining >= 0 && result.resetSeconds >= 0;
}

/** The limits that match one descriptor. `counted` excludes the unlimited ones. */
interface DescriptorMatch {
  readonly all: readonly RuleMatch[];
  readonly counted: readonly RuleMatch[];
}

/** `hits` holds one hit for each counted limit, in the order of `matches`. */
interface PreparedRequest {
  readonly matches: readonly DescriptorMatch[];
  readonly hits: readonly Hit[];
}

function prepare({ domain, descriptors, hitsAddend }: RateLimitRequest, rules: Rules): PreparedRequest {
  const found = descriptors.map((descriptor) => matchesOf(domain, descriptor, rules));
  const hits: Hit[] = [];
  const matches = (rules.hasReplaces ? withoutReplaced(found) : found).map((all, index) => {
    const weight = weightOf(descriptors[index], hitsAddend);
    const counted = all.filter(({ rule }) => !rule.unlimited);
    for (const match of counted) hits.push(hitOf(match, weight, index));
    return { all, counted };
  });
  return { matches, hits };
}

/** More than any limit allows. The cap keeps sums of hits exact. */
const weightMax = 2 ** 32;

function weightOf(descriptor: Descriptor | undefined, ofRequest: number | undefined): number {
  // In the protocol, 0 and an absent hits_addend look the same for a request, so 0 counts as 1 here too.
  const weight = Math.min(weightMax, descriptor?.hitsAddend ?? (ofRequest || 1));
  return descriptor?.isNegativeHits ? -weight : weight;
}

function matchesOf(domain: string, descriptor: Descriptor, rules: Rules): readonly RuleMatch[] {
  const { entries, limit, hitsAddend, isNegativeHits } = descriptor;
  // As a hit of 0, it would check whether the limit is exhausted.
  if (isNegativeHits && hitsAddend === 0) return [];
  if (limit?.unit === undefined) return rules.match(domain, entries);
  return [overrideMatch(domain, entries, { ...limit, unit: limit.unit })];
}

const shownDescriptorsMax = 8;
/** Applies to a descriptor as a whole and to each of its keys and values. */
const shownCharactersMax = 200;

/**
 * Logs each request that has a descriptor without a matching limit, which helps to find mistakes in limits.
 * Returns undefined when debug logging is disabled.
 */
function createUnmatchedReport(logger: LimiterOptions['logger']) {
  if (logger?.debug === undefined || logger.isLevelEnabled?.('debug') === false) return undefined;
  return function reportUnmatched({ domain, descriptors }: RateLimitRequest, rules: Rules): void {
    const unmatched = descriptors.filter((descriptor) => matchesOf(domain, descriptor, rules).length === 0);
    if (unmatched.length === 0) return;
    const entryTexts = unmatched
      .slice(0, shownDescriptorsMax)
      .map(({ entries }) => shown(entries.map(entryText).join(',')));
    const message = rules.has(domain) ? 'a descriptor matches no limit' : 'unknown domain, so no limit applies';
    logger.debug?.({ domain: shown(domain), unmatched: unmatched.length, descriptors: entryTexts }, message);
  };
}

/** Matches the log format of envoyproxy/ratelimit. */
function entryText({ key, value }: Entry): string {
  return `(${shown(key)}=${shown(value)})`;
}

function shown(text: string): string {
  return truncate(text, shownCharactersMax);
}

/** Drops the limits that another matching limit of the request replaces. Unlimited ones cannot be replaced. */
function withoutReplaced(found: readonly (readonly RuleMatch[])[]): readonly (readonly RuleMatch[])[] {
  const replaced = new Set(found.flatMap((matches) => matches.flatMap(({ rule }) => rule.replaces)));
  const isKept = ({ rule: { unlimited, currentLimit } }: RuleMatch) =>
    unlimited || currentLimit.name === undefined || !replaced.has(currentLimit.name);
  return found.map((matches) => matches.filter(isKept));
}

/** `quota` is the index of the descriptor: all limits of a descriptor that are in quota mode form one quota. */
export function hitOf({ rule, counterKey }: RuleMatch, hits: number, quota: number): Hit {
  const { windowSeconds, requestsPerUnit } = rule.currentLimit;
  const { algorithm, burst, shadow } = rule;
  const hit = { key: counterKey, algorithm, windowSeconds, limit: requestsPerUnit, burst, hits, shadow };
  return rule.quota ? { ...hit, quota } : hit;
}

/** A limit and the result of counting a hit against it. */
interface Applied {
  readonly rule: Rule;
  readonly result: HitResult;
}

function statusOf(matches: readonly RuleMatch[], applied: readonly Applied[]): DescriptorStatus {
  if (applied.length === 0) return matches.length === 0 ? noLimit : unlimited;
  const { rule, result } = applied.reduce(stricter);
  const code = result.over && !rule.shadow ? 'OVER_LIMIT' : 'OK';
  // Do not promise the client a quota that is not being enforced.
  if (result.isUncounted && code === 'OK') return noLimit;
  return {
    code,
    currentLimit: rule.currentLimit,
    limitRemaining: result.remaining,
    resetSeconds: result.resetSeconds,
  };
}

const noLimit: DescriptorStatus = Object.freeze({
  code: 'OK',
  currentLimit: undefined,
  limitRemaining: 0,
  resetSeconds: undefined,
});

/** Matches the response of envoyproxy/ratelimit for `unlimited`: no limit, and the largest uint32 as the remainder. */
const unlimited: DescriptorStatus = Object.freeze({ ...noLimit, limitRemaining: 4_294_967_295 });

/**
 * Picks the limit to report. A limit in shadow mode is reported only if no other limit applies. If both are exhausted,
 * the one with the longer wait wins.
 */
function stricter(a: Applied, b: Applied): Applied {
  if (a.rule.shadow !== b.rule.shadow) return a.rule.shadow ? b : a;
  if (a.result.over !== b.result.over) return a.result.over ? a : b;
  if (a.result.over) return b.result.resetSeconds > a.result.resetSeconds ? b : a;
  return b.result.remaining < a.result.remaining ? b : a;
}

/**
 * Builds the response headers of envoyproxy/ratelimit from the last status that denies the request or, failing that,
 * from the first one with the least remaining. A single quota does not deny a request.
 */
function headersOf(
  statuses: readonly DescriptorStatus[],
  matches: readonly DescriptorMatch[],
): readonly ResponseHeader[] {
  const denies = ({ code }: DescriptorStatus, index: number) =>
    code === 'OVER_LIMIT' && matches[index]?.counted.some(({ rule }) => rule.quota) === false;
  const limited = statuses.filter(({ currentLimit }) => currentLimit !== undefined);
  const shown = statuses.findLast(denies) ?? limited.reduce(lessRemaining, limited[0]);
  if (shown?.currentLimit === undefined) return [];
  return [
    { name: 'RateLimit-Limit', value: String(shown.currentLimit.requestsPerUnit) },
    { name: 'RateLimit-Remaining', value: String(shown.limitRemaining) },
    { name: 'RateLimit-Reset', value: String(shown.resetSeconds ?? 0) },
  ];
}

function lessRemaining(a: DescriptorStatus | undefined, b: DescriptorStatus): DescriptorStatus {
  return a === undefined || b.limitRemaining < a.limitRemaining ? b : a;
}
