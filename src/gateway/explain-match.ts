/** Which mapping a request meets and why the others lose, as `explain` tells it. */
import type { RouteVerdict } from '#routing';
import type { Conceal } from './conceal.ts';
import type { CandidatePart, MappingPart } from './explanation.ts';
import type { Route } from './route.ts';

export interface Candidates {
  readonly candidates: readonly CandidatePart[];
  readonly candidates_not_listed: number;
}

/** What loses by its path alone is only counted, unless `all`: it may be every other mapping there is. */
export function explainMatch(verdicts: readonly RouteVerdict<Route>[], conceal: Conceal, all: boolean): Candidates {
  const listed = verdicts.filter(({ outcome, by }) => all || outcome !== 'lost' || by !== 'path');
  return {
    candidates: listed.map((verdict) => ({
      ...mappingPart(verdict, conceal),
      outcome: verdict.outcome,
      by: verdict.by,
    })),
    candidates_not_listed: verdicts.length - listed.length,
  };
}

export function mappingPart(
  { route, reason }: Pick<RouteVerdict<Route>, 'route' | 'reason'>,
  conceal: Conceal,
): MappingPart {
  return {
    name: route.name,
    prefix: route.prefix,
    conditions: route.conditions(),
    reason: conceal.text(reason),
    source: route.source && placeOf(route.source),
  };
}

export function placeOf({ file, line }: NonNullable<Route['source']>): string {
  return `${file}:${line}`;
}
