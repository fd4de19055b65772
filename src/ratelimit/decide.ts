/** The limiter in this process: each descriptor to its rules, each rule to its counter, the results to one decision. */
import { inspect } from 'node:util';
import type { LimitDomain } from '#config';
import { checkRequest } from './check-request.ts';
import { type Counters, type Hit, type HitResult, isDenied } from './counters/counters.ts';
import { createMemoryCounters } from './counters/memory.ts';
import type { LimitStats } from './limit-stats.ts';
import type {
  Decision,
  Descriptor,
  DescriptorStatus,
  Entry,
  Limiter,
  Logger,
  RateLimitRequest,
  ResponseHeader,
  Rule,
} from './limiter.ts';
import { compileRules, overrideMatch, type RuleMatch, type Rules } from './rules.ts';

export interface LimiterOptions {
  readonly limits: readonly LimitDomain[];
  /** @default counters in this process, by the system's clock */
  readonly counters?: Counters;
  /** Every limit of a request counts it although another denies it, as envoyproxy/ratelimit does. @default false */
  readonly countDenied?: boolean;
  /** Decisions carry RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset for the client. @default false */
  readonly responseHeaders?: boolean;
  readonly stats?: Pick<LimitStats, 'count'> | undefined;
  /** For requests that meet no limit, at debug if that level is on when the limiter is made. @default nothing is logged */
  readonly logger?: Pick<Logger, 'debug' | 'isLevelEnabled'> | undefined;
}

export interface LocalLimiter extends Limiter {
  readonly explain: NonNullable<Limiter['explain']>;
  /** From the next request on; a request that is being decided keeps the limits that it began with. Counters stay. */
  readonly reload: (limits: readonly LimitDomain[]) => void;
}

/**
 * With counters in memory the decision is no promise.
 * An unknown domain and a descriptor without a limit are OK; `unlimited` is OK with 4294967295 remaining.
 * `createLimiter` throws TypeError for counters without `take` and limits that `configurationFrom` has not read; a request
 * throws InvalidRequest for an empty domain, and for hits and limits that are out of range.
 */
export function createLimiter(options: LimiterOptions): LocalLimiter {
  const { limits, counters = createMemoryCounters(), countDenied = false, responseHeaders = false, stats } = options;
  if (typeof counters.take !== 'function') throw new TypeError(noTake);
  requireRead(limits);
  let rules = compileRules(limits);
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
    return decisionOf(statuses, isDenied(hits, results), responseHeaders);
  }

  return Object.freeze({
    shouldRateLimit(request: RateLimitRequest): Decision | Promise<Decision> {
      checkRequest(request);
      reportUnmatched?.(request, rules);
      const prepared = prepare(request, rules);
      if (prepared.hits.length === 0) return decide(prepared, []);
      const results = counters.take(prepared.hits, takeOptions);
      return results instanceof Promise ? results.then((later) => decide(prepared, later)) : decide(prepared, results);
    },
    explain: (request: RateLimitRequest) =>
      prepare(request, rules).matches.map(({ all }) => all.map(({ rule }) => rule)),
    reload(next: readonly LimitDomain[]): void {
      requireRead(next);
      rules = compileRules(next);
    },
  });
}

const noTake = 'the counters have no function `take`: createMemoryCounters makes some that have';

/** A program may have them in the shape of the files. */
function requireRead(limits: readonly LimitDomain[]): void {
  const isRead = (domain: LimitDomain) => domain?.descriptors?.every((descriptor) => Array.isArray(descriptor?.limits));
  if (!Array.isArray(limits) || !limits.every(isRead)) throw new TypeError(unread);
}

const unread = 'the limits are none that configurationFrom has read: hand in the `limits` of its configuration';

const noResult = 'the counters returned no result with over, remaining and resetSeconds for each hit';

/** Counters may be a program's own. A result that is none must not let a request pass. */
function isResult(result: HitResult | undefined): result is HitResult {
  return typeof result?.over === 'boolean' && result.remaining >= 0 && result.resetSeconds >= 0;
}

/** The limits that one descriptor meets; `counted` lacks the unlimited ones. */
interface DescriptorMatch {
  readonly all: readonly RuleMatch[];
  readonly counted: readonly RuleMatch[];
}

/** `hits` are those of all counted limits, one descriptor after the other. */
interface PreparedRequest {
  readonly matches: readonly DescriptorMatch[];
  readonly hits: readonly Hit[];
}

function prepare({ domain, descriptors, hitsAddend }: RateLimitRequest, rules: Rules): PreparedRequest {
  const found = descriptors.map((descriptor) => matchesOf(domain, descriptor, rules));
  const hits: Hit[] = [];
  const matches = (rules.hasReplaces ? withoutReplaced(found) : found).map((all, index) => {
    // The protocol cannot tell a request's 0 from an absent number, so it is 1 here as well.
    const weight = Math.min(weightMax, descriptors[index]?.hitsAddend ?? (hitsAddend || 1));
    const counted = all.some(isUnlimited) ? all.filter((match) => !isUnlimited(match)) : all;
    for (const match of counted) hits.push(hitOf(match, weight, index));
    return { all, counted };
  });
  return { matches, hits };
}

/** More than any limit has room for; sums of larger numbers would not be exact. */
const weightMax = 2 ** 32;

function matchesOf(domain: string, { entries, limit }: Descriptor, rules: Rules): readonly RuleMatch[] {
  if (limit?.unit === undefined) return rules.match(domain, entries);
  return [overrideMatch(domain, entries, { ...limit, unit: limit.unit })];
}

const shownDescriptorsMax = 8;
/** Of a descriptor, or a part of it. */
const shownCharactersMax = 200;

/** For limits that do not apply as they should: a line for each request with a descriptor that meets none. Undefined: debug is off. */
function createUnmatchedReport(logger: LimiterOptions['logger']) {
  if (logger?.debug === undefined || logger.isLevelEnabled?.('debug') === false) return undefined;
  return function reportUnmatched({ domain, descriptors }: RateLimitRequest, rules: Rules): void {
    const unmatched = descriptors.filter((descriptor) => matchesOf(domain, descriptor, rules).length === 0);
    if (unmatched.length === 0) return;
    const shown = unmatched
      .slice(0, shownDescriptorsMax)
      .map(({ entries }) => bounded(entries.map(entryText).join(',')));
    const message = rules.has(domain) ? 'a descriptor matches no limit' : 'unknown domain, so no limit applies';
    logger.debug?.({ domain: bounded(domain), unmatched: unmatched.length, descriptors: shown }, message);
  };
}

/** As envoyproxy/ratelimit logs it. */
function entryText({ key, value }: Entry): string {
  return `(${bounded(key)}=${bounded(value)})`;
}

function bounded(text: string): string {
  return text.length > shownCharactersMax ? `${text.slice(0, shownCharactersMax)}…` : text;
}

/** Drops the limits that another limit of the same request replaces; `unlimited` is none, and stays. */
function withoutReplaced(found: readonly (readonly RuleMatch[])[]): readonly (readonly RuleMatch[])[] {
  const replaced = new Set(found.flatMap((matches) => matches.flatMap(({ rule }) => rule.replaces)));
  const stays = ({ rule: { unlimited, currentLimit } }: RuleMatch) =>
    unlimited || currentLimit.name === undefined || !replaced.has(currentLimit.name);
  return found.map((matches) => matches.filter(stays));
}

function isUnlimited({ rule }: RuleMatch): boolean {
  return rule.unlimited;
}

/** `quota`: the number of the descriptor, whose limits are one quota where they are in quota mode. */
function hitOf({ rule, counterKey }: RuleMatch, hits: number, quota: number): Hit {
  const { windowSeconds, requestsPerUnit } = rule.currentLimit;
  const { algorithm, burst, shadow } = rule;
  const hit = { key: counterKey, algorithm, windowSeconds, limit: requestsPerUnit, burst, hits, shadow };
  return rule.quota ? { ...hit, quota } : hit;
}

/** A limit, and the result of the hit on it. */
interface Applied {
  readonly rule: Rule;
  readonly result: HitResult;
}

function statusOf(matches: readonly RuleMatch[], applied: readonly Applied[]): DescriptorStatus {
  const [first] = applied;
  if (first === undefined) return matches.length === 0 ? noLimit : unlimited;
  const { rule, result } = applied.length === 1 ? first : applied.reduce(stricter);
  const code = result.over && !rule.shadow ? 'OVER_LIMIT' : 'OK';
  // A client must not be promised a quota that is not enforced.
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

/** As envoyproxy/ratelimit answers for `unlimited`: the largest number on the wire, and no limit. */
const unlimited: DescriptorStatus = Object.freeze({ ...noLimit, limitRemaining: 4_294_967_295 });

/** A limit in shadow mode is shown only where no other applies. Of two that are over, the longer wait is what the client needs. */
function stricter(a: Applied, b: Applied): Applied {
  if (a.rule.shadow !== b.rule.shadow) return a.rule.shadow ? b : a;
  if (a.result.over !== b.result.over) return a.result.over ? a : b;
  if (a.result.over) return b.result.resetSeconds > a.result.resetSeconds ? b : a;
  return b.result.remaining < a.result.remaining ? b : a;
}

function decisionOf(statuses: readonly DescriptorStatus[], denied: boolean, withHeaders: boolean): Decision {
  const overallCode = denied ? 'OVER_LIMIT' : 'OK';
  return withHeaders ? { overallCode, statuses, responseHeaders: headersOf(statuses) } : { overallCode, statuses };
}

/** Those of envoyproxy/ratelimit, from the status that is over or has the least remaining. */
function headersOf(statuses: readonly DescriptorStatus[]): readonly ResponseHeader[] {
  const limited = statuses.filter(({ currentLimit }) => currentLimit !== undefined);
  const shown = limited.find(({ code }) => code === 'OVER_LIMIT') ?? limited.reduce(lessRemaining, limited[0]);
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
