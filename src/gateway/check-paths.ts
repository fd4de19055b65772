/** Rejects requests that could evade the protection of others: by an ambiguous path, or by a WebDAV reference. */
import type { Context } from 'koa';
import { callsService, type Mapping, mappingDefaults, nextTurn, type Version } from '#config';
import { textFromBytes } from '#foundation';
import { problem } from '#http';
import { referenceBase } from '#proxy';
import {
  createLenientTables,
  createLenientTablesInTurns,
  createReadings,
  editReferences,
  firstShare,
  foldLetters,
  type LenientTables,
  type ReadingsOf,
  type Reference,
  type RequestAttributes,
  type Rule,
  readReference,
  severalReadings,
  type Table,
} from '#routing';
import { limitsByPath, protectionsOf } from './protection.ts';
import type { Route } from './route.ts';
import type { VersionOf } from './version-lifecycle.ts';

export interface PathChecks {
  /** Undefined unless paths are strict and requests differ in their protection. */
  readonly checkAmbiguity: CheckAmbiguity | undefined;
  readonly checkReferences: CheckReferences;
}

export interface PathChecksParts {
  readonly table: Table<Route>;
  readonly versions: readonly Version[];
  readonly versionOf: VersionOf | undefined;
  readonly strictPaths: boolean;
}

export function createPathChecks(parts: PathChecksParts): PathChecks {
  const compared = comparisonOf(parts);
  const tables = compared && createLenientTables(compared.routes, compared.readingsOf);
  return pathChecks(parts, tables && createCheckAmbiguity(parts, compared, tables));
}

/** Like `createPathChecks`, but requests can run in between. */
export async function createPathChecksInTurns(parts: PathChecksParts): Promise<PathChecks> {
  const compared = comparisonOf(parts);
  const tables = compared && (await createLenientTablesInTurns(compared.routes, compared.readingsOf));
  await nextTurn();
  return pathChecks(parts, tables && createCheckAmbiguity(parts, compared, tables));
}

function pathChecks({ table }: PathChecksParts, checkAmbiguity: CheckAmbiguity | undefined): PathChecks {
  return { checkAmbiguity, checkReferences: createCheckReferences(table, checkAmbiguity) };
}

/** The routes whose protection the check of ambiguous paths compares. */
interface Comparison {
  readonly routes: readonly Route[];
  readonly protections: ReadonlyMap<Route, string>;
  readonly readingsFor: (route: Route) => ReadingsOf;
  /** The readings of a route's prefix. */
  readonly readingsOf: (route: Route) => ReturnType<ReadingsOf>;
}

/** Undefined unless paths are strict and requests differ in their protection. */
function comparisonOf({ table, versions, strictPaths }: PathChecksParts): Comparison | undefined {
  if (!strictPaths) return undefined;
  const groups = table.groups.map((group) => group.filter(isCompared));
  const routes = groups.flat();
  const protections = protectionsOf(groups);
  if (versions.length === 0 && new Set(protections.values()).size < 2 && !routes.some(limitsByPath)) return undefined;
  const readingsFor = createReadingsFor(routes);
  return { routes, protections, readingsFor, readingsOf: (route) => readingsFor(route)(route.prefix) };
}

/** Throws `bad-path` when the path of a request is ambiguous. `route` is the route that the request matched. */
type CheckAmbiguity = (attributes: RequestAttributes, route: Route) => void;

/**
 * Compares the protection of a request with that of everything that its path can mean. So whatever a service takes a path
 * for, all requests that it takes for the same path have the same protection.
 */
function createCheckAmbiguity(
  { versions, versionOf }: PathChecksParts,
  { routes, protections, readingsFor }: Comparison,
  routeTables: LenientTables<Route>,
): CheckAmbiguity {
  const versionRules = versions.map(ruleOfVersion);
  const versionTables = createLenientTables(versionRules, ({ prefix }) => createReadings([])(prefix));
  const arePlain = [...routes, ...versionRules].every(isPlain) && !routes.some(declaresReadings);

  function differentMapping(target: RequestAttributes, route: Route): string | undefined {
    const protection = protections.get(route);
    const other = originalsIn(routeTables, target).find((one) => one && protections.get(one) !== protection);
    return other && `a path of Mapping ${other.name}`;
  }

  function differentVersion(target: RequestAttributes, prefix: string | undefined): string | undefined {
    const others = originalsIn(versionTables, target).filter((one) => one?.prefix !== prefix);
    return others.length === 0 ? undefined : `a path of ${others[0] ? `Version ${others[0].name}` : 'no Version'}`;
  }

  /** Says what else the path can mean that is protected differently. Undefined if there is nothing. */
  function otherMeaning(attributes: RequestAttributes, route: Route): string | undefined {
    const { path } = attributes;
    const readings = readingsFor(route)(path);
    if (readings === undefined) return 'The path has too many readings, or one with a dot segment.';
    const version = versionOf?.(path, route)?.record.prefix;
    for (const reading of readings) {
      const target = withTarget(attributes, { path: reading });
      const what =
        differentMapping(target, route) ?? differentVersion(target, version) ?? differentCount(route, path, reading);
      if (what !== undefined) return `A service could read it as ${textFromBytes(reading)}, ${what}.`;
    }
    return undefined;
  }

  return function checkAmbiguity(attributes, route) {
    if ((arePlain && !severalReadings.test(attributes.path)) || !isForwarded(route)) return;
    const cause = otherMeaning(attributes, route);
    if (cause !== undefined) throw problem('bad-path', { detail: ambiguousDetail, cause });
  };
}

const ambiguousDetail =
  'A service could interpret the path as another one, which is protected differently. Send the path in its plain form: in lower case, with only the slashes between segments, and without path parameters (;), encoded slashes, ? and #, and dots or spaces at the end of a segment.';

/** The server itself handles its built-in routes, redirects and missing backends, so no service can misinterpret their paths. */
function isForwarded({ internal, mapping }: Route): boolean {
  return internal !== true && callsService({ ...mapping, refusal: undefined });
}

function isCompared(route: Route): boolean {
  return isForwarded(route) && !route.shadow;
}

/** Reports whether a path that has only one reading matches a rule exactly when it matches its lenient rules. */
function isPlain({ prefix, prefixMatch }: Rule): boolean {
  return prefixMatch === 'segments' && !severalReadings.test(prefix);
}

function declaresReadings({ mapping }: Route): boolean {
  return mapping.pathReadings.length > 0;
}

/** A service reads all its paths in the same way, so what one of its mappings declares applies to all of them. */
function createReadingsFor(routes: readonly Route[]): (route: Route) => ReadingsOf {
  const common = createReadings([]);
  const declared = new Map<string, ReadonlySet<Mapping['pathReadings'][number]>>();
  for (const { service, mapping } of routes.filter(declaresReadings))
    declared.set(service, new Set([...(declared.get(service) ?? []), ...mapping.pathReadings]));
  const byService = new Map(Array.from(declared, ([service, names]) => [service, createReadings([...names])]));
  return ({ service }) => byService.get(service) ?? common;
}

function ruleOfVersion({ name, prefix }: Version): Rule {
  return { ...mappingDefaults, name, prefix };
}

/** The first route is enough, because mappings that share requests by weight count as one. */
function originalsIn<R extends Rule>(tables: LenientTables<R>, target: RequestAttributes) {
  return tables.map(({ match }) => match(target, firstShare)?.route.original);
}

function differentCount(route: Route, path: string, reading: string): string | undefined {
  if (!limitsByPath(route) || countedPath(path) === countedPath(reading)) return undefined;
  return 'which its limit by path counts separately';
}

/** The path without what a limit by path ignores here: the case and encoding of letters, and a slash at the end. */
function countedPath(path: string): string {
  return foldLetters(path).replace(/(?<=.)\/$/, '');
}

function withTarget(attributes: RequestAttributes, target: Partial<RequestAttributes>): RequestAttributes {
  return Object.assign(Object.create(attributes), target);
}

/** Throws `bad-path`, `bad-request` or `destination-elsewhere`. `route` is the route that the request matched. */
type CheckReferences = (ctx: Context, attributes: RequestAttributes, route: Route) => void;

/** Bounds the work, because each reference is matched like a request. Clients refer to far fewer resources. */
const referencesMax = 32;

function createCheckReferences({ match }: Table<Route>, checkAmbiguity: CheckAmbiguity | undefined): CheckReferences {
  function checkTarget(found: Reference, attributes: RequestAttributes, route: Route): void {
    const { path, search } = found;
    const target = withTarget(attributes, { path, search });
    if (match(target, firstShare)?.route !== match(attributes, firstShare)?.route)
      throw problem('destination-elsewhere');
    checkAmbiguity?.(target, route);
  }

  return function checkReferences(ctx, attributes, route) {
    const { method, headers } = ctx.req;
    let count = 0;
    editReferences(method, headers, (text, header) => {
      count += 1;
      if (count > referencesMax)
        throw problem('bad-request', {
          detail: `\`Destination\` and \`If\` refer to more than ${referencesMax} resources.`,
        });
      const found = readReference(text, referenceBase(ctx));
      if (found === 'ambiguous')
        throw problem('bad-path', { detail: 'The path in `Destination` or `If` is ambiguous.' });
      if (found !== 'elsewhere') checkTarget(found, attributes, route);
      // Another server is allowed in `If`: see `resourceElsewhere`.
      else if (header === 'destination') throw problem('destination-elsewhere');
      return text;
    });
  };
}
