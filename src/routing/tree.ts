/** Literal prefixes as a tree of path segments: what a request costs depends on its path, not on the number of rules. */
import { firstOf, type Group } from './group.ts';
import type { Rule } from './rule.ts';
import type { View } from './view.ts';

/** The first group by rank that takes the request and goes before `limit`. */
export type Search<R extends Rule> = (view: View, path: string, limit: number) => Group<R> | undefined;

interface Node<R extends Rule> {
  /** Most nodes are leaves, and have none. */
  children: Map<string, Node<R>> | undefined;
  /** Of the longest prefix that ends here or above. */
  place: Place<R> | undefined;
}

/** The groups of one prefix, in the order of trial. */
interface Place<R extends Rule> {
  readonly prefixLength: number;
  /** Of an exact host: however many there are, a request meets those of its own host. */
  byHost: Map<string, Group<R>[]> | undefined;
  readonly others: Group<R>[];
  /** The place of the next shorter prefix of the same path. */
  above: Place<R> | undefined;
  /** The best rank here or above: a search that has found a better one can stop. */
  bestRank: number;
}

/** `groups` have literal prefixes and are in the order of trial; those of one tree are of one mind about case. */
export function createTree<R extends Rule>(groups: readonly Group<R>[]): Search<R> {
  const root: Node<R> = { children: undefined, place: undefined };
  for (const group of groups) addGroup(nodeOf(root, group.prefix), group);
  linkPlaces(root);
  return (view, path, limit) => search(deepest(root, path), view, path, limit);
}

/** Read like a path, without a list of its segments: there may be 10,000 prefixes. */
function nodeOf<R extends Rule>(root: Node<R>, prefix: string): Node<R> {
  let node = root;
  for (let start = 1, end = 0; start <= prefix.length && prefix !== '/'; start = end + 1) {
    const slash = prefix.indexOf('/', start);
    end = slash === -1 ? prefix.length : slash;
    const segment = prefix.slice(start, end);
    node.children ??= new Map();
    const known = node.children.get(segment);
    const child: Node<R> = known ?? { children: undefined, place: undefined };
    if (known === undefined) node.children.set(segment, child);
    node = child;
  }
  return node;
}

/** The first of a place is its best. Most stay alone there, and a list that begins with its first is small. */
function addGroup<R extends Rule>(node: Node<R>, group: Group<R>): void {
  const { host, prefix, rank } = group;
  if (node.place === undefined) {
    const others = host === undefined ? [group] : [];
    node.place = { prefixLength: prefix.length, byHost: undefined, others, above: undefined, bestRank: rank };
  } else if (host === undefined) node.place.others.push(group);
  if (host !== undefined) addToHost(node.place, host, group);
}

function addToHost<R extends Rule>(place: Place<R>, host: string, group: Group<R>): void {
  place.byHost ??= new Map();
  const known = place.byHost.get(host);
  if (known === undefined) place.byHost.set(host, [group]);
  else known.push(group);
}

/** From the root down: not by recursion, which a prefix of many segments would exhaust. */
function linkPlaces<R extends Rule>(root: Node<R>): void {
  const nodes = [root];
  for (let node = nodes.pop(); node !== undefined; node = nodes.pop()) {
    for (const child of node.children?.values() ?? []) {
      child.place = linked(child.place, node.place);
      if (child.children !== undefined) nodes.push(child);
    }
  }
}

function linked<R extends Rule>(place: Place<R> | undefined, above: Place<R> | undefined): Place<R> | undefined {
  if (place === undefined || above === undefined) return place ?? above;
  place.above = above;
  place.bestRank = Math.min(place.bestRank, above.bestRank);
  return place;
}

/** One step down the tree for each segment, as far as rules name them. */
function deepest<R extends Rule>(root: Node<R>, path: string): Place<R> | undefined {
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
  return node.place;
}

/** From the longest prefix up, as long as a better one can be there: with equal precedence the first that is met is the best. */
function search<R extends Rule>(
  from: Place<R> | undefined,
  view: View,
  path: string,
  limit: number,
): Group<R> | undefined {
  let best: Group<R> | undefined;
  let before = limit;
  for (let place = from; place !== undefined && place.bestRank < before; place = place.above) {
    const found = bestAt(place, view, place.prefixLength === path.length, before);
    if (found === undefined) continue;
    best = found;
    before = found.rank;
  }
  return best;
}

function bestAt<R extends Rule>(
  { byHost, others }: Place<R>,
  view: View,
  isWhole: boolean,
  limit: number,
): Group<R> | undefined {
  const ofHost = byHost?.get(view.host);
  const found = ofHost && firstOf(ofHost, view, isWhole, limit);
  return firstOf(others, view, isWhole, found?.rank ?? limit) ?? found;
}
