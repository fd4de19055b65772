/** The limiter in this process: every descriptor to its limit, every limit to its counter, one verdict. */
import type { LimitDomain } from '#config';
import { checkRequest } from './check-request.ts';
import type { Count, Counters, Hit } from './counters.ts';
import type { Decision, DescriptorStatus, Limiter, RateLimitRequest } from './limiter.ts';
import { createMemoryCounters } from './memory-counters.ts';
import { compileRules, type RuleMatch } from './rules.ts';

export interface LimiterOptions {
  readonly limits: readonly LimitDomain[];
  /** @default counters in this process, by the system's clock */
  readonly counters?: Counters;
}

/**
 * With counters in memory the answer comes at once, not as a promise.
 * An unknown domain and a descriptor without a limit are OK; `unlimited` is OK with 4294967295 remaining.
 * @throws InvalidRequest for an empty domain.
 */
export function createLimiter({ limits, counters = createMemoryCounters() }: LimiterOptions): Limiter {
  const rules = compileRules(limits);
  return Object.freeze({
    shouldRateLimit(request: RateLimitRequest): Decision | Promise<Decision> {
      checkRequest(request);
      const matches = request.descriptors.map(({ entries }) => rules.match(request.domain, entries));
      const hits = matches.filter(isCounted).map((match) => hitOf(match, request));
      if (hits.length === 0) return decide(matches, []);
      const counts = counters.take(hits);
      return counts instanceof Promise ? counts.then((taken) => decide(matches, taken)) : decide(matches, counts);
    },
  });
}

const noLimit: DescriptorStatus = Object.freeze({
  code: 'OK',
  currentLimit: undefined,
  limitRemaining: 0,
  resetSeconds: undefined,
});

/** What envoyproxy/ratelimit says of `unlimited`: the largest number on the wire, and no limit. */
const unlimited: DescriptorStatus = Object.freeze({
  ...noLimit,
  limitRemaining: 4_294_967_295,
});

function isCounted(match: RuleMatch | undefined): match is RuleMatch {
  return match !== undefined && !match.rule.unlimited;
}

function hitOf({ rule, counterKey }: RuleMatch, { hitsAddend }: RateLimitRequest): Hit {
  const { windowSeconds, requestsPerUnit } = rule.currentLimit;
  return {
    key: counterKey,
    windowSeconds,
    limit: requestsPerUnit,
    // The protocol cannot tell 0 from absent, so 0 is 1 here as well.
    hits: hitsAddend || 1,
  };
}

/** `counts` has one count for each counted match, in order. */
function decide(matches: readonly (RuleMatch | undefined)[], counts: readonly Count[]): Decision {
  let next = 0;
  const statuses = matches.map((match) => {
    if (!isCounted(match)) return match === undefined ? noLimit : unlimited;
    return statusOf(match, counts[next++]);
  });
  return {
    overallCode: statuses.some(({ code }) => code === 'OVER_LIMIT') ? 'OVER_LIMIT' : 'OK',
    statuses,
  };
}

function statusOf({ rule }: RuleMatch, count: Count | undefined): DescriptorStatus {
  if (count === undefined) throw new Error('the counters answered fewer counts than they were asked for');
  return {
    code: count.over ? 'OVER_LIMIT' : 'OK',
    currentLimit: rule.currentLimit,
    limitRemaining: count.remaining,
    resetSeconds: count.resetSeconds,
  };
}
