/** Versions that are on their way out: each response tells it, and when their time is over there is no other. */
import type { ServerResponse } from 'node:http';
import type { Context } from 'koa';
import { foldsCase, type Mapping, type Version } from '#config';
import { beforeHead, type Problem, problem, requestContext } from '#http';

/** A version that a record speaks of. */
export interface AgingVersion {
  readonly record: Version;
  /** `root`: the public path of the gateway, without a slash at the end. */
  readonly headers: (root: string) => VersionHeaders;
  /** Has them on the response, whoever writes it. */
  readonly announce: (ctx: Context) => void;
  /** From its sunset on. */
  readonly ended: () => Problem | undefined;
}

/** `link` is added to the links that the response has; the others are its only ones. */
export interface VersionHeaders {
  /** RFC 9745 section 2.1: `@1688169599`. */
  readonly deprecation: string | undefined;
  /** RFC 8594 section 3: an HTTP date. */
  readonly sunset: string | undefined;
  /** RFC 8288, with the relations of RFC 5829, RFC 9745 section 3 and RFC 8594 section 6. */
  readonly link: string | undefined;
}

/**
 * The version that a path belongs to, by whole segments; of several the longest. Where the route that takes the path
 * makes no difference of case, `/V1` belongs to `/v1`, unless there is a version of that very name.
 */
export type VersionOf = (path: string, route: Cased | undefined) => AgingVersion | undefined;

type Cased = Pick<Mapping, 'caseSensitive' | 'prefixMatch'>;

/** `clock`: milliseconds since the epoch. */
export function createVersionLife(records: readonly Version[], clock: () => number): VersionOf {
  const versions = new Map(records.map((record) => [record.prefix, createAgingVersion(record, clock)]));
  const folded = new Map([...versions].map(([prefix, version]) => [prefix.toLowerCase(), version]));
  const depths = [...new Set(records.map(({ prefix }) => prefix.split('/').length - 1))].sort((a, b) => b - a);
  return function versionOf(path, route) {
    const isFolded = route !== undefined && foldsCase(route);
    for (const depth of depths) {
      const prefix = firstSegments(path, depth);
      const version = versions.get(prefix) ?? (isFolded ? folded.get(prefix.toLowerCase()) : undefined);
      if (version !== undefined) return version;
    }
    return undefined;
  };
}

function createAgingVersion(record: Version, clock: () => number): AgingVersion {
  const { endsAtMs = Number.POSITIVE_INFINITY } = record;
  const atRoot = headersOf(record, '');
  const headers = (root: string) => (root === '' ? atRoot : headersOf(record, root));
  return Object.freeze({
    record,
    headers,
    announce: (ctx: Context) => beforeHead(ctx.res, (res) => writeHeaders(res, headers(requestContext(ctx).rootPath))),
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

/** What a service says of its own life gives way to the record, which is the newer word. */
function writeHeaders(res: ServerResponse, { deprecation, sunset, link }: VersionHeaders): void {
  if (deprecation !== undefined) res.setHeader('Deprecation', deprecation);
  if (sunset !== undefined) res.setHeader('Sunset', sunset);
  if (link !== undefined) res.appendHeader('Link', link);
}

/** `/v1` of `/v1/hotels` where `count` is 1. */
function firstSegments(path: string, count: number): string {
  let end = 0;
  for (let segment = 0; segment < count && end !== -1; segment += 1) end = path.indexOf('/', end + 1);
  return end === -1 ? path : path.slice(0, end);
}
