/** The routing table: which route a request meets, at a cost that the number of routes does not change. */
import { explain, type RouteVerdict } from './explain.ts';
import { firstOf, type Group, groupRules, isServed } from './group.ts';
import { comparePlaces, placeRule } from './order.ts';
import type { RequestAttributes, Rule } from './rule.ts';
import type { Match } from './shares.ts';
import { createTree } from './tree.ts';
import { createViewer, type View } from './view.ts';

export interface Table<R extends Rule> {
  /** The route that takes the request. `random` gives numbers from 0 to below 1, for weights. @default Math.random */
  readonly match: (facts: RequestAttributes, random?: () => number) => Match<R> | undefined;
  /** Every route, in the order in which they are tried. */
  readonly routes: readonly R[];
  /** What becomes of each route for this request, in the order of `routes`. It looks at all of them: not for each request. */
  readonly explain: (facts: RequestAttributes) => readonly RouteVerdict<R>[];
}

/** Throws TypeError for a pattern that does not compile. Names tell the routes of a group apart. */
export function createTable<R extends Rule>(rules: readonly R[]): Table<R> {
  const placed = rules.map(placeRule).sort(comparePlaces);
  const groups = groupRules(placed);
  const find = createFind(groups.filter(isServed));
  const viewOf = createViewer(rules);
  const looks = groups.some(({ conditions }) => conditions.length > 0);
  const unseen = viewOf({ method: '', path: '', search: '', host: '', headers: {}, client: '' });

  return Object.freeze({
    // Where no rule asks for more than a path, nothing is allocated.
    match(facts: RequestAttributes, random = Math.random) {
      const group = find(looks ? viewOf(facts) : unseen, facts.path);
      return group?.only ?? group?.pick?.(random);
    },
    routes: Object.freeze(placed.map(({ rule }) => rule)),
    explain: (facts: RequestAttributes) => explain(groups, viewOf(facts)),
  });
}

/** Trees first, because they are cheap: a pattern is tried only where it would go before what they found. */
function createFind<R extends Rule>(groups: readonly Group<R>[]): (view: View, path: string) => Group<R> | undefined {
  const patterns = groups.filter(({ prefixMatch }) => prefixMatch === 'regex');
  const literal = groups.filter(({ prefixMatch }) => prefixMatch !== 'regex');
  const folding = literal.filter(({ folds }) => folds);
  const searchExact = createTree(literal.filter(({ folds }) => !folds));
  const searchFolded = createTree(folding);

  return function find(view, path) {
    let best = searchExact(view, path, Number.POSITIVE_INFINITY);
    if (folding.length > 0) best = searchFolded(view, path.toLowerCase(), rankOf(best)) ?? best;
    if (patterns.length > 0) best = firstOf(patterns, view, true, rankOf(best)) ?? best;
    return best;
  };
}

function rankOf(group: Group<Rule> | undefined): number {
  return group?.rank ?? Number.POSITIVE_INFINITY;
}
