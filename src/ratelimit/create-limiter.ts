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

  function decide(questions: readonly Question[], counts: readonly Count[]): Decision {
    let next = 0;
    const statuses = questions.map(({ matches, asked }) => {
      const counted = asked.map(({ match, hit }): Counted => {
        const count = counts[next++];
        if (count === undefined) throw new Error(tooFew);
        observer?.counted(match, hit, count);
        return { rule: match.rule, count };
      });
      return statusOf(matches, counted);
    });
    return decisionOf(statuses, responseHeaders);
  }

  async function decideLater(questions: readonly Question[], pending: Promise<readonly Count[]>): Promise<Decision> {
    let counts: readonly Count[];
    try {
      counts = await pending;
    } catch (error) {
      observer?.failed();
      throw error;
    }
    return decide(questions, counts);
  }

  return Object.freeze({
    shouldRateLimit(request: RateLimitRequest): Decision | Promise<Decision> {
      checkRequest(request);
      const questions = questionsOf(request, rules);
      const hits: Hit[] = [];
      for (const { asked } of questions) for (const { hit } of asked) hits.push(hit);
      if (hits.length === 0) return decide(questions, []);
      const counts = counters.take(hits, takeOptions);
      return counts instanceof Promise ? decideLater(questions, counts) : decide(questions, counts);
    },
  });
}

const tooFew = 'the counters answered fewer counts than they were asked for';

/** What is asked about one descriptor: `asked` lacks what is unlimited. */
interface Question {
  readonly matches: readonly RuleMatch[];
  readonly asked: readonly { readonly match: RuleMatch; readonly hit: Hit }[];
}

function questionsOf(request: RateLimitRequest, rules: Rules): readonly Question[] {
  const { domain, descriptors, hitsAddend } = request;
  const found = descriptors.map((descriptor) => matchesOf(domain, descriptor, rules));
  return withoutReplaced(found).map((matches, index) => {
    // The protocol cannot tell a request's 0 from absent, so it is 1 here as well.
    const hits = descriptors[index]?.hitsAddend ?? (hitsAddend || 1);
    const counted = matches.some(({ rule }) => rule.unlimited) ? matches.filter(isCounted) : matches;
    return { matches, asked: counted.map((match) => ({ match, hit: hitOf(match, hits) })) };
  });
}

function matchesOf(domain: string, { entries, limit }: Descriptor, rules: Rules): readonly RuleMatch[] {
  if (limit?.unit === undefined) return rules.match(domain, entries);
  return [overrideMatch(domain, entries, { ...limit, unit: limit.unit })];
}

/** Drops the limits that another limit of the same request replaces. */
function withoutReplaced(found: readonly (readonly RuleMatch[])[]): readonly (readonly RuleMatch[])[] {
  const replaces = found.some((matches) => matches.some(({ rule }) => rule.replaces.length > 0));
  if (!replaces) return found;
  const replaced = new Set(found.flatMap((matches) => matches.flatMap(({ rule }) => rule.replaces)));
  const stays = ({ rule: { currentLimit } }: RuleMatch) =>
    currentLimit.name === undefined || !replaced.has(currentLimit.name);
  return found.map((matches) => matches.filter(stays));
}

function isCounted({ rule }: RuleMatch): boolean {
  return !rule.unlimited;
}

function hitOf({ rule, counterKey }: RuleMatch, hits: number): Hit {
  const { windowSeconds, requestsPerUnit } = rule.currentLimit;
  const { algorithm, burst, shadow } = rule;
  return { key: counterKey, algorithm, windowSeconds, limit: requestsPerUnit, burst, hits, shadow };
}
