/** A request as conditions look at it: the parts that cost something are worked out once, and only if somebody looks. */
import { bareHost } from './host.ts';
import { createQuery, type Query } from './query.ts';
import type { RequestAttributes, Rule } from './rule.ts';

export interface View {
  readonly facts: RequestAttributes;
  /** Lower-case, without port and without a dot at the end. */
  readonly host: string;
  readonly query: Query;
}

/** Looks only at what some rule asks for. */
export function createViewer(rules: readonly Rule[]): (facts: RequestAttributes) => View {
  const asksHost = rules.some(({ host }) => host !== undefined);
  const names = new Set<string>();
  for (const { queryParameters } of rules) for (const { name } of queryParameters) names.add(name);
  const nothing = createQuery('', names);
  return (facts) => ({
    facts,
    host: asksHost ? bareHost(facts.host) : '',
    query: names.size === 0 ? nothing : createQuery(facts.search, names),
  });
}
