/** The end of an API version: Deprecation, Sunset and Link headers before the sunset, and 410 from then on. */
import type { ServerResponse } from 'node:http';
import type { Context } from 'koa';
import { compilePattern, foldsCase, type Mapping, type Version } from '#config';
import { beforeHead, formatLifecycle, type Problem, problem, requestContext } from '#http';

/** An API version with a Version record. */
export interface VersionLifecycle {
  readonly record: Version;
  /** `root`: the public path of the gateway, without a trailing slash. */
  readonly headers: (root: string) => VersionHeaders;
  /** Sets the headers when the response head is written, even if that bypasses Koa. Passes on to the service what they announce. */
  readonly announce: (ctx: Context) => void;
  /** Returns a Problem for every request from the sunset on, and undefined before. */
  readonly ended: () => Problem | undefined;
}

/** `link` is added to the service's links. The other headers replace the service's own. */
export interface VersionHeaders {
  /** RFC 9745 section 2.1: `@1688169599`. */
  readonly deprecation: string | undefined;
  /** RFC 8594 section 3: an HTTP date. */
  readonly sunset: string | undefined;
  /** RFC 8288, with the relations of RFC 5829, RFC 9745 section 3 and RFC 8594 section 6. */
  readonly link: string | undefined;
}

/**
 * Finds the version of a path: the one with the longest prefix, in whole segments. `/V1` belongs to `/v1` if the route
 * ignores case, as `(?i)/v1/.*` does, unless there is also a version with the prefix `/V1`.
 */
export type VersionOf = (path: string, route: PathRule | undefined) => VersionLifecycle | undefined;

type PathRule = Pick<Mapping, 'prefix' | 'caseSensitive' | 'prefixMatch'>;

/** `clock` returns milliseconds since the epoch. */
export function createVersionLifecycles(records: readonly Version[], clock: () => number): VersionOf {
  const versions = new Map(records.map((record) => [record.prefix, createLifecycle(record, clock)]));
  const folded = new Map([...versions].map(([prefix, version]) => [prefix.toLowerCase(), version]));
  const depths = [...new Set(records.map(({ prefix }) => prefix.split('/').length - 1))].sort((a, b) => b - a);
  const matchesCanonicalPath = createMatchesCanonicalPath();
  return function versionOf(path, route) {
    for (const depth of depths) {
      const prefix = firstSegments(path, depth);
      const exact = versions.get(prefix);
      if (exact !== undefined) return exact;
      const other = folded.get(prefix.toLowerCase());
      if (other === undefined || route === undefined) continue;
      if (matchesCanonicalPath(route, other.record.prefix + path.slice(prefix.length))) return other;
    }
    return undefined;
  };
}

/**
 * Whether a route also matches a path in which the version prefix has the case of its record. Compiles patterns once.
 */
function createMatchesCanonicalPath(): (route: PathRule, path: string) => boolean {
  const patterns = new WeakMap<PathRule, (path: string) => boolean>();
  return function matchesCanonicalPath(route, path) {
    if (route.prefixMatch !== 'regex') return foldsCase(route);
    const matches = patterns.get(route) ?? matcherOf(route.prefix);
    patterns.set(route, matches);
    return matches(path);
  };
}

function matcherOf(pattern: string): (path: string) => boolean {
  const compiled = compilePattern(pattern);
  return compiled.ok ? compiled.pattern.matches : () => true;
}

function createLifecycle(record: Version, clock: () => number): VersionLifecycle {
  const { endsAtMs = Number.POSITIVE_INFINITY } = record;
  const atRoot = headersOf(record, '');
  const lifecycle = formatLifecycle(record);
  const headers = (root: string) => (root === '' ? atRoot : headersOf(record, root));
  return Object.freeze({
    record,
    headers,
    announce(ctx: Context) {
      const context = requestContext(ctx);
      context.lifecycle = lifecycle;
      beforeHead(ctx.res, (res) => writeHeaders(res, headers(context.rootPath)));
    },
    ended: () => (clock() < endsAtMs ? undefined : problem('gone')),
  });
}

function headersOf({ deprecatedAtMs, endsAtMs, successor, info }: Version, root: string): VersionHeaders {
  const linkTo = (target: string) => `<${target.startsWith('/') ? root : ''}${target}>`;
  const about = (relation: string) =>
    info === undefined ? [] : [`${linkTo(info)}; rel="${relation}"; type="text/html"`];
  const links = [
    ...(successor === undefined ? [] : [`${linkTo(successor)}; rel="successor-version"`]),
    ...(deprecatedAtMs === undefined ? [] : about('deprecation')),
    ...(endsAtMs === undefined ? [] : about('sunset')),
  ];
  return Object.freeze({
    deprecation: deprecatedAtMs === undefined ? undefined : `@${Math.floor(deprecatedAtMs / 1000)}`,
    sunset: endsAtMs === undefined ? undefined : new Date(endsAtMs).toUTCString(),
    link: links.length === 0 ? undefined : links.join(', '),
  });
}

/** Replaces the headers of the service, except for links. */
function writeHeaders(res: ServerResponse, { deprecation, sunset, link }: VersionHeaders): void {
  if (deprecation !== undefined) res.setHeader('Deprecation', deprecation);
  if (sunset !== undefined) res.setHeader('Sunset', sunset);
  if (link !== undefined) res.appendHeader('Link', link);
}

/** Returns the first `count` segments of a path: `/v1` for one segment of `/v1/orders`. */
function firstSegments(path: string, count: number): string {
  let end = 0;
  for (let segment = 0; segment < count && end !== -1; segment += 1) end = path.indexOf('/', end + 1);
  return end === -1 ? path : path.slice(0, end);
}
