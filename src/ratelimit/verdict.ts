/** From the counts of a request's limits to what its asker is told. */
import type { Count } from './counters.ts';
import type { Decision, DescriptorStatus, ResponseHeader } from './limiter.ts';
import type { Rule, RuleMatch } from './rule.ts';

/** A limit that counted, and what came of it. */
export interface Counted {
  readonly rule: Rule;
  readonly count: Count;
}

/** `matches` and `counted` are those of one descriptor; `counted` lacks what is unlimited. */
export function statusOf(matches: readonly RuleMatch[], counted: readonly Counted[]): DescriptorStatus {
  const [first] = counted;
  if (first === undefined) return matches.length === 0 ? noLimit : unlimited;
  const { rule, count } = counted.length === 1 ? first : counted.reduce(stricter);
  return {
    code: count.over && !rule.shadow ? 'OVER_LIMIT' : 'OK',
    currentLimit: rule.currentLimit,
    limitRemaining: count.remaining,
    resetSeconds: count.resetSeconds,
  };
}

export function decisionOf(statuses: readonly DescriptorStatus[], withHeaders: boolean): Decision {
  const overallCode = statuses.some(({ code }) => code === 'OVER_LIMIT') ? 'OVER_LIMIT' : 'OK';
  return withHeaders ? { overallCode, statuses, responseHeaders: headersOf(statuses) } : { overallCode, statuses };
}

const noLimit: DescriptorStatus = Object.freeze({
  code: 'OK',
  currentLimit: undefined,
  limitRemaining: 0,
  resetSeconds: undefined,
});

/** What envoyproxy/ratelimit says of `unlimited`: the largest number on the wire, and no limit. */
const unlimited: DescriptorStatus = Object.freeze({ ...noLimit, limitRemaining: 4_294_967_295 });

/** A limit in shadow mode binds nobody, so it speaks only where no other does. Of two that are over the longer wait is the true one. */
function stricter(a: Counted, b: Counted): Counted {
  if (a.rule.shadow !== b.rule.shadow) return a.rule.shadow ? b : a;
  if (a.count.over !== b.count.over) return a.count.over ? a : b;
  if (a.count.over) return b.count.resetSeconds > a.count.resetSeconds ? b : a;
  return b.count.remaining < a.count.remaining ? b : a;
}

/** Those of envoyproxy/ratelimit, from the status that is over or has the least left. */
function headersOf(statuses: readonly DescriptorStatus[]): readonly ResponseHeader[] {
  const limited = statuses.filter(({ currentLimit }) => currentLimit !== undefined);
  const told = limited.find(({ code }) => code === 'OVER_LIMIT') ?? limited.reduce(lessLeft, limited[0]);
  if (told?.currentLimit === undefined) return [];
  return [
    { name: 'RateLimit-Limit', value: String(told.currentLimit.requestsPerUnit) },
    { name: 'RateLimit-Remaining', value: String(told.limitRemaining) },
    { name: 'RateLimit-Reset', value: String(told.resetSeconds ?? 0) },
  ];
}

function lessLeft(a: DescriptorStatus | undefined, b: DescriptorStatus): DescriptorStatus {
  return a === undefined || b.limitRemaining < a.limitRemaining ? b : a;
}
