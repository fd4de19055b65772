/** The routing table: prefixes in a tree, so that lookups stay fast with many rules, and regex patterns in a list. */
import { mapInTurns, nextTurn } from '#config';
import { createRequestViews, type RequestAttributes, type RequestView, type Rule } from './conditions.ts';
import { createGroup, firstOf, type Group, groupRules, isServed, type Match } from './groups.ts';
import { rankRule } from './order.ts';
import { explainGroups, type RouteVerdict } from './verdicts.ts';

export interface Table<R extends Rule> {
  /** Finds the route for a request. `random` returns numbers in [0, 1), which select by weight. @default Math.random */
  readonly match: (attributes: RequestAttributes, random?: () => number) => Match<R> | undefined;
  /** Every route, in the order in which they are tried. */
  readonly routes: readonly R[];
  /** The same routes, those that match the same requests in one list. */
  readonly groups: readonly (readonly R[])[];
  /**
   * Explains why each route matches this request or not, in the order of `routes`. Slow, because it checks them all.
   */
  readonly explain: (attributes: RequestAttributes) => readonly RouteVerdict<R>[];
}

/** Throws TypeError for a pattern that does not compile. The names of the routes in a group must differ. */
export function createTable<R extends Rule>(rules: readonly R[]): Table<R> {
  return tableOf(rules, groupRules(rules.map(rankRule)).map(createGroup));
}

/** Like `createTable`, but requests can run in between, because a table of many rules takes long. */
export async function createTableInTurns<R extends Rule>(rules: readonly R[]): Promise<Table<R>> {
  const ranked = await mapInTurns(rules, rankRule);
  await nextTurn();
  const groups = await mapInTurns(groupRules(ranked), createGroup);
  await nextTurn();
  return tableOf(rules, groups);
}

function tableOf<R extends Rule>(rules: readonly R[], groups: readonly Group<R>[]): Table<R> {
  const find = createFind(groups);
  const viewOf = createRequestViews(rules);
  const hasConditions = groups.some(({ conditions }) => conditions.length > 0);
  const emptyView = viewOf({ method: '', path: '', search: '', host: '', headers: {}, client: '', listener: 'http' });

  return Object.freeze({
    // Allocates nothing when no rule has a condition besides its path.
    match(attributes: RequestAttributes, random = Math.random) {
      const group = find(hasConditions ? viewOf(attributes) : emptyView, attributes.path);
      return group?.only ?? group?.pick?.(random, attributes);
    },
    routes: Object.freeze(groups.flatMap(({ routes }) => routes)),
    groups: Object.freeze(groups.map(({ routes }) => routes)),
    explain: (attributes: RequestAttributes) => explainGroups(groups, viewOf(attributes)),
  });
}

/** Replaces Math.random in `match`, to always select the first of the mappings that share requests by weight. */
export function firstShare(): number {
  return 0;
}

type Find<R extends Rule> = (view: RequestView, path: string) => Group<R> | undefined;

/** Searches the trees first, because they are fast. A pattern is tried only if it ranks before the group they found. */
function createFind<R extends Rule>(groups: readonly Group<R>[]): Find<R> {
  const exact: Group<R>[] = [];
  const anyCase: Group<R>[] = [];
  const patterns: Group<R>[] = [];
  for (const group of groups.filter(isServed)) {
    if (group.prefixMatch === 'regex') patterns.push(group);
    else if (group.ignoresCase) anyCase.push(group);
    else exact.push(group);
  }
  const searchExact = createTree(exact);
  const searchAnyCase = createTree(anyCase);

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

/** Finds the first group by rank that matches the request and ranks before `limit`. */
type Search<R extends Rule> = (view: RequestView, path: string, limit: number) => Group<R> | undefined;

interface Node<R extends Rule> {
  /** Undefined for a leaf, which most nodes are. */
  children: Map<string, Node<R>> | undefined;
  /** The entry of the longest prefix that ends at this node or above. */
  entry: PrefixEntry<R> | undefined;
}

/** The groups of one prefix, in matching order. */
interface PrefixEntry<R extends Rule> {
  readonly prefixLength: number;
  /** Groups with an exact host, so that a request is compared only with the groups of its host. */
  byHost: Map<string, Group<R>[]> | undefined;
  /** Groups without an exact host. */
  readonly others: Group<R>[];
  /** The entry of the next shorter prefix of the same path. */
  above: PrefixEntry<R> | undefined;
  /** The best rank here or above. A search stops here once it has found a better one. */
  bestRank: number;
}

/** Expects groups with literal prefixes in matching order, either all case-sensitive or all case-insensitive. */
function createTree<R extends Rule>(groups: readonly Group<R>[]): Search<R> {
  const root: Node<R> = { children: undefined, entry: undefined };
  for (const group of groups) addGroup(nodeOf(root, group.prefix), group);
  for (const { node, parent } of nodesBelow(root)) node.entry = linkToAbove(node.entry, parent.entry);
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

/** Groups arrive in matching order, so the first group of an entry has the best rank. */
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

/** Yields parents before their children. Not recursive, because a prefix with many segments would exhaust the stack. */
function* nodesBelow<R extends Rule>(root: Node<R>): Generator<{ readonly node: Node<R>; readonly parent: Node<R> }> {
  const parents = [root];
  for (let parent = parents.pop(); parent !== undefined; parent = parents.pop()) {
    for (const node of parent.children?.values() ?? []) {
      yield { node, parent };
      parents.push(node);
    }
  }
}

function linkToAbove<R extends Rule>(
  entry: PrefixEntry<R> | undefined,
  above: PrefixEntry<R> | undefined,
): PrefixEntry<R> | undefined {
  if (entry === undefined || above === undefined) return entry ?? above;
  entry.above = above;
  entry.bestRank = Math.min(entry.bestRank, above.bestRank);
  return entry;
}

/** Descends one level for each segment of the path, as far as the tree goes. */
function deepest<R extends Rule>(root: Node<R>, path: string): PrefixEntry<R> | undefined {
  let node = root;
  let start = 1;
  // After a slash at the end, the last segment is empty, which only the exact path of a route of the Gateway API has.
  while (start <= path.length && node.children !== undefined) {
    const slash = path.indexOf('/', start);
    const end = slash === -1 ? path.length : slash;
    const child: Node<R> | undefined = node.children.get(path.slice(start, end));
    if (child === undefined) break;
    node = child;
    start = end + 1;
  }
  return node.entry;
}

/** Goes up from the longest prefix while a better rank is possible. With equal precedence, the first match is best. */
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
