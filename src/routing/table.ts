/** The routing table: prefixes as a tree of path segments, patterns beside it; the cost of a match does not grow with the number of rules. */
import { forEachInParts, mapInParts, sortInParts, type Work } from '#config';
import { createRequestViews, type RequestView } from './conditions.ts';
import { firstOf, type Group, groupRules, isServed, type Match } from './groups.ts';
import { compareRanked, rankRule } from './order.ts';
import type { RequestAttributes, Rule } from './rule.ts';
import { explainGroups, type RouteVerdict } from './verdicts.ts';

export interface Table<R extends Rule> {
  /** The route that takes the request. `random` returns numbers from 0 to below 1, for weights. @default Math.random */
  readonly match: (attributes: RequestAttributes, random?: () => number) => Match<R> | undefined;
  /** Every route, in the order in which they are tried. */
  readonly routes: readonly R[];
  /** Why each route matches this request or not, in the order of `routes`. Slow, since it checks all of them. */
  readonly explain: (attributes: RequestAttributes) => readonly RouteVerdict<R>[];
}

/** Throws TypeError for a pattern that does not compile. The names of the routes in a group must differ. */
export function* createTable<R extends Rule>(rules: readonly R[]): Work<Table<R>> {
  const ranked = yield* sortInParts(yield* mapInParts(rules, rankRule), compareRanked);
  const groups = yield* groupRules(ranked);
  const find = yield* createFind(groups);
  const viewOf = yield* createRequestViews(rules);
  const hasConditions = groups.some(({ conditions }) => conditions.length > 0);
  const emptyView = viewOf({ method: '', path: '', search: '', host: '', headers: {}, client: '' });

  return Object.freeze({
    // When no rule has a condition beside its path, nothing is allocated.
    match(attributes: RequestAttributes, random = Math.random) {
      const group = find(hasConditions ? viewOf(attributes) : emptyView, attributes.path);
      return group?.only ?? group?.pick?.(random);
    },
    routes: Object.freeze(ranked.map(({ rule }) => rule)),
    explain: (attributes: RequestAttributes) => explainGroups(groups, viewOf(attributes)),
  });
}

/** For `match` in place of Math.random: always the first of the mappings that share requests by weight. */
export function firstShare(): number {
  return 0;
}

type Find<R extends Rule> = (view: RequestView, path: string) => Group<R> | undefined;

/** Trees first, because they are fast: a pattern is tried only when it goes before what they found. */
function* createFind<R extends Rule>(groups: readonly Group<R>[]): Work<Find<R>> {
  const exact: Group<R>[] = [];
  const anyCase: Group<R>[] = [];
  const patterns: Group<R>[] = [];
  yield* forEachInParts(groups.filter(isServed), (group) => {
    if (group.prefixMatch === 'regex') patterns.push(group);
    else if (group.ignoresCase) anyCase.push(group);
    else exact.push(group);
  });
  const searchExact = yield* createTree(exact);
  const searchAnyCase = yield* createTree(anyCase);

  return function find(view, path) {
    let best = searchExact(view, path, Number.POSITIVE_INFINITY);
    if (anyCase.length > 0) best = searchAnyCase(view, path.toLowerCase(), rankOf(best)) ?? best;
    if (patterns.length > 0) best = firstOf(patterns, view, true, rankOf(best)) ?? best;
    return best;
  };
}

function rankOf(group: Group<Rule> | undefined): number {
  return group?.rank ?? Number.POSITIVE_INFINITY;
}

/** The first group by rank that takes the request and goes before `limit`. */
type Search<R extends Rule> = (view: RequestView, path: string, limit: number) => Group<R> | undefined;

interface Node<R extends Rule> {
  /** Undefined for a leaf, as most nodes are. */
  children: Map<string, Node<R>> | undefined;
  /** Of the longest prefix that ends here or above. */
  entry: PrefixEntry<R> | undefined;
}

/** The groups of one prefix, in the order of trial. */
interface PrefixEntry<R extends Rule> {
  readonly prefixLength: number;
  /** Those with an exact host: a request is compared only with those of its host. */
  byHost: Map<string, Group<R>[]> | undefined;
  readonly others: Group<R>[];
  /** The entry of the next shorter prefix of the same path. */
  above: PrefixEntry<R> | undefined;
  /** The best rank here or above: a search that has found a better one stops. */
  bestRank: number;
}

/** `groups` have literal prefixes, are in the order of trial, and all ignore case or none does. */
function* createTree<R extends Rule>(groups: readonly Group<R>[]): Work<Search<R>> {
  const root: Node<R> = { children: undefined, entry: undefined };
  yield* forEachInParts(groups, (group) => addGroup(nodeOf(root, group.prefix), group));
  yield* forEachInParts(nodesBelow(root), ({ node, parent }) => {
    node.entry = linked(node.entry, parent.entry);
  });
  return (view, path, limit) => search(deepest(root, path), view, path, limit);
}

function nodeOf<R extends Rule>(root: Node<R>, prefix: string): Node<R> {
  let node = root;
  for (const segment of prefix === '/' ? [] : prefix.slice(1).split('/')) {
    node.children ??= new Map();
    const child: Node<R> = node.children.get(segment) ?? { children: undefined, entry: undefined };
    node.children.set(segment, child);
    node = child;
  }
  return node;
}

/** The first group of an entry has its best rank. */
function addGroup<R extends Rule>(node: Node<R>, group: Group<R>): void {
  const { host, prefix, rank } = group;
  node.entry ??= { prefixLength: prefix.length, byHost: undefined, others: [], above: undefined, bestRank: rank };
  if (host === undefined) node.entry.others.push(group);
  else addToHost(node.entry, host, group);
}

function addToHost<R extends Rule>(entry: PrefixEntry<R>, host: string, group: Group<R>): void {
  entry.byHost ??= new Map();
  const known = entry.byHost.get(host);
  if (known === undefined) entry.byHost.set(host, [group]);
  else known.push(group);
}

/** From the root down. Not recursive: a prefix of many segments would exhaust the stack. */
function* nodesBelow<R extends Rule>(root: Node<R>): Generator<{ readonly node: Node<R>; readonly parent: Node<R> }> {
  const parents = [root];
  for (let parent = parents.pop(); parent !== undefined; parent = parents.pop()) {
    for (const node of parent.children?.values() ?? []) {
      yield { node, parent };
      if (node.children !== undefined) parents.push(node);
    }
  }
}

function linked<R extends Rule>(
  entry: PrefixEntry<R> | undefined,
  above: PrefixEntry<R> | undefined,
): PrefixEntry<R> | undefined {
  if (entry === undefined || above === undefined) return entry ?? above;
  entry.above = above;
  entry.bestRank = Math.min(entry.bestRank, above.bestRank);
  return entry;
}

/** One step down the tree for each segment, as far as there are prefixes. */
function deepest<R extends Rule>(root: Node<R>, path: string): PrefixEntry<R> | undefined {
  let node = root;
  let start = 1;
  while (start < path.length && node.children !== undefined) {
    const slash = path.indexOf('/', start);
    const end = slash === -1 ? path.length : slash;
    const child: Node<R> | undefined = node.children.get(path.slice(start, end));
    if (child === undefined) break;
    node = child;
    start = end + 1;
  }
  return node.entry;
}

/** From the longest prefix up, as long as a better rank is possible: with equal precedence the first one found is the best. */
function search<R extends Rule>(
  from: PrefixEntry<R> | undefined,
  view: RequestView,
  path: string,
  limit: number,
): Group<R> | undefined {
  let best: Group<R> | undefined;
  let before = limit;
  for (let entry = from; entry !== undefined && entry.bestRank < before; entry = entry.above) {
    const found = bestAt(entry, view, entry.prefixLength === path.length, before);
    if (found === undefined) continue;
    best = found;
    before = found.rank;
  }
  return best;
}

function bestAt<R extends Rule>(
  { byHost, others }: PrefixEntry<R>,
  view: RequestView,
  isWhole: boolean,
  limit: number,
): Group<R> | undefined {
  const ofHost = byHost?.get(view.host);
  const found = ofHost && firstOf(ofHost, view, isWhole, limit);
  return firstOf(others, view, isWhole, found?.rank ?? limit) ?? found;
}
