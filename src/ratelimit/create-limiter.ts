/** The limiter in this process: every descriptor to its limits, every limit to its counter, one verdict. */
import type { LimitDomain } from '#config';
import { checkRequest } from './check-request.ts';
import type { Count, Counters, Hit } from './counters.ts';
import type { Decision, Descriptor, Limiter, RateLimitRequest } from './limiter.ts';
import { createMemoryCounters } from './memory-counters.ts';
import { overrideMatch, type RuleMatch } from './rule.ts';
import { compileRules, type Rules } from './rules.ts';
import { type Counted, decisionOf, statusOf } from './verdict.ts';

/** Is told what became of each limit, for metrics. */
export interface LimitObserver {
  counted(match: RuleMatch, hit: Hit, count: Count): void;
  /** The counters gave no answer. */
  failed(): void;
}

export interface LimiterOptions {
  readonly limits: readonly LimitDomain[];
  /** @default counters in this process, by the system's clock */
  readonly counters?: Counters;
  /** Every limit of a request counts it although another denies it, as envoyproxy/ratelimit does. @default false */
  readonly countDenied?: boolean;
  /** Answers carry RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset for the client. @default false */
  readonly responseHeaders?: boolean;
  readonly observer?: LimitObserver | undefined;
}

/**
 * With counters in memory the answer comes at once, not as a promise.
 * An unknown domain and a descriptor without a limit are OK; `unlimited` is OK with 4294967295 remaining.
 * @throws InvalidRequest for an empty domain, and for numbers of hits and limits that are none.
 */
export function createLimiter(options: LimiterOptions): Limiter {
  const { limits, counters = createMemoryCounters(), countDenied = false, responseHeaders = false, observer } = options;
  const rules = compileRules(limits);
  const takeOptions = Object.freeze({ countDenied });

  function decide({ questions, hits }: Inquiry, counts: readonly Count[]): Decision {
    let next = 0;
    const countedOf = (match: RuleMatch): Counted => {
      const hit = hits[next];
      const count = counts[next++];
      if (hit === undefined || count === undefined) throw new Error(tooFew);
      observer?.counted(match, hit, count);
      return { rule: match.rule, count };
    };
    const statuses = questions.map(({ matches, asked }) => statusOf(matches, asked.map(countedOf)));
    return decisionOf(statuses, responseHeaders);
  }

  async function decideLater(inquiry: Inquiry, pending: Promise<readonly Count[]>): Promise<Decision> {
    let counts: readonly Count[];
    try {
      counts = await pending;
    } catch (error) {
      observer?.failed();
      throw error;
    }
    return decide(inquiry, counts);
  }

  return Object.freeze({
    shouldRateLimit(request: RateLimitRequest): Decision | Promise<Decision> {
      checkRequest(request);
      const inquiry = inquiryOf(request, rules);
      if (inquiry.hits.length === 0) return decide(inquiry, []);
      const counts = counters.take(inquiry.hits, takeOptions);
      return counts instanceof Promise ? decideLater(inquiry, counts) : decide(inquiry, counts);
    },
    explain: (request: RateLimitRequest) =>
      inquiryOf(request, rules).questions.map(({ matches }) => matches.map(({ rule }) => rule)),
  });
}

const tooFew = 'the counters answered fewer counts than they were asked for';

/** What is asked about one descriptor: `asked` lacks what is unlimited. */
interface Question {
  readonly matches: readonly RuleMatch[];
  readonly asked: readonly RuleMatch[];
}

/** `hits` are those of all that is asked, one question after the other. */
interface Inquiry {
  readonly questions: readonly Question[];
  readonly hits: readonly Hit[];
}

function inquiryOf({ domain, descriptors, hitsAddend }: RateLimitRequest, rules: Rules): Inquiry {
  const found = descriptors.map((descriptor) => matchesOf(domain, descriptor, rules));
  const hits: Hit[] = [];
  const questions = (rules.hasReplaces ? withoutReplaced(found) : found).map((matches, index) => {
    // The protocol cannot tell a request's 0 from absent, so it is 1 here as well.
    const weight = descriptors[index]?.hitsAddend ?? (hitsAddend || 1);
    const asked = matches.some(isUnlimited) ? matches.filter(isCounted) : matches;
    for (const match of asked) hits.push(hitOf(match, weight));
    return { matches, asked };
  });
  return { questions, hits };
}

function matchesOf(domain: string, { entries, limit }: Descriptor, rules: Rules): readonly RuleMatch[] {
  if (limit?.unit === undefined) return rules.match(domain, entries);
  return [overrideMatch(domain, entries, { ...limit, unit: limit.unit })];
}

/** Drops the limits that another limit of the same request replaces. */
function withoutReplaced(found: readonly (readonly RuleMatch[])[]): readonly (readonly RuleMatch[])[] {
  const replaced = new Set(found.flatMap((matches) => matches.flatMap(({ rule }) => rule.replaces)));
  const stays = ({ rule: { currentLimit } }: RuleMatch) =>
    currentLimit.name === undefined || !replaced.has(currentLimit.name);
  return found.map((matches) => matches.filter(stays));
}

function isUnlimited({ rule }: RuleMatch): boolean {
  return rule.unlimited;
}

function isCounted({ rule }: RuleMatch): boolean {
  return !rule.unlimited;
}

function hitOf({ rule, counterKey }: RuleMatch, hits: number): Hit {
  const { windowSeconds, requestsPerUnit } = rule.currentLimit;
  const { algorithm, burst, shadow } = rule;
  return { key: counterKey, algorithm, windowSeconds, limit: requestsPerUnit, burst, hits, shadow };
}
