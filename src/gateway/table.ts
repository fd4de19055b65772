/** The routing table: longest prefix first, on whole path segments, at a cost that the number of routes does not change. */

export interface Prefixed {
  /** Starts with `/` and, but for `/` itself, has no slash at the end. */
  readonly prefix: string;
}

export interface Table<R extends Prefixed> {
  /** The route with the longest prefix of whole segments of the path; case-sensitive. */
  readonly match: (path: string) => R | undefined;
  /** Every route, in the order in which they are tried. */
  readonly routes: readonly R[];
}

interface Node<R> {
  readonly children: Map<string, Node<R>>;
  route: R | undefined;
}

/** Of routes with the same prefix the first one given counts, so that whoever calls says which goes before. */
export function createTable<R extends Prefixed>(routes: readonly R[]): Table<R> {
  const root: Node<R> = { children: new Map(), route: undefined };
  for (const route of routes) {
    const node = nodeAt(root, route.prefix);
    node.route ??= route;
  }
  return Object.freeze({
    match: (path: string) => deepest(root, path),
    routes: Object.freeze(routes.filter((route) => nodeAt(root, route.prefix).route === route).sort(byOrderOfTrial)),
  });
}

/** One step down the tree for each segment, and the last route seen on the way wins. */
function deepest<R>(root: Node<R>, path: string): R | undefined {
  let node = root;
  let found = root.route;
  let start = 1;
  while (start < path.length) {
    const slash = path.indexOf('/', start);
    const end = slash === -1 ? path.length : slash;
    const child = node.children.get(path.slice(start, end));
    if (child === undefined) return found;
    node = child;
    found = child.route ?? found;
    start = end + 1;
  }
  return found;
}

function nodeAt<R>(root: Node<R>, prefix: string): Node<R> {
  let node = root;
  for (const segment of segmentsOf(prefix)) {
    let child = node.children.get(segment);
    if (child === undefined) {
      child = { children: new Map(), route: undefined };
      node.children.set(segment, child);
    }
    node = child;
  }
  return node;
}

function segmentsOf(prefix: string): string[] {
  return prefix.split('/').filter((segment) => segment !== '');
}

/** More segments first; among equals by code unit, so that the listing does not depend on the order of the files. */
function byOrderOfTrial(a: Prefixed, b: Prefixed): number {
  const depth = segmentsOf(b.prefix).length - segmentsOf(a.prefix).length;
  if (depth !== 0) return depth;
  return a.prefix < b.prefix ? -1 : 1;
}
