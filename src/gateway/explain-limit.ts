/** Which descriptors a request has and which limits count them, as `explain` tells it; nothing is counted. */
import type { RateLimitService } from '#config';
import type { Descriptor, Limiter, Rule } from '#ratelimit';
import type { Conceal } from './conceal.ts';
import { placeOf } from './explain-match.ts';
import type { LimitPart, RateLimitPart } from './explanation.ts';
import type { Facts } from './facts.ts';
import type { Route } from './route.ts';
import { describeTarget, type Target } from './target.ts';

export interface ExplainLimitParts {
  readonly record: RateLimitService | undefined;
  readonly limiter: Limiter | undefined;
  readonly resolve: (service: string) => Target;
}

export type ExplainLimit = (facts: Facts, route: Route, conceal: Conceal) => RateLimitPart;

export function createExplainLimit({ record, limiter, resolve }: ExplainLimitParts): ExplainLimit {
  return function explainLimit(facts, route, conceal) {
    if (record === undefined) return { asked: false, reason: 'there is no RateLimitService record' };
    const { domain } = record;
    if (route.describe === undefined)
      return { asked: false, reason: `the mapping has no labels of the domain ${domain}` };
    const descriptors = route.describe(facts);
    if (descriptors.length === 0) return { asked: false, reason: 'none of the labels is on this request' };
    const limits = limiter?.explain?.({ domain, descriptors });
    return {
      asked: true,
      name: record.name,
      service: record.service,
      source: placeOf(record.source),
      domain,
      decided_by: limits === undefined ? describeTarget(resolve(record.service)) : 'this process',
      descriptors: descriptors.map(({ entries }, index) => ({
        entries: entriesOf(entries, conceal),
        limits: limits?.[index]?.map(limitPart),
      })),
      on_over_limit: 'the client gets 429',
      on_error: record.failureModeDeny ? 'the client gets 503' : 'the request goes on',
    };
  };
}

function entriesOf(entries: Descriptor['entries'], conceal: Conceal) {
  return entries.map(({ key, value }) => ({ key, value: conceal.text(value) }));
}

function limitPart({ currentLimit, unlimited, algorithm, burst, shadow, descriptor, source }: Rule): LimitPart {
  const { requestsPerUnit, unit, unitMultiplier = 1, name } = currentLimit;
  return {
    descriptor,
    name,
    unlimited,
    requests_per_unit: requestsPerUnit,
    unit,
    unit_multiplier: unitMultiplier,
    algorithm,
    burst,
    shadow_mode: shadow,
    source: source && placeOf(source),
  };
}
