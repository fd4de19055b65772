/** Notices of mappings whose path, in another spelling, reaches an open mapping to the same service. */
import type { ConfigurationError, Fault } from './errors.ts';
import { quote } from './quote.ts';
import type { Mapping } from './records/mapping.ts';
import { matchKey } from './records/match.ts';
import { forEachInParts, mapInParts, type Work } from './work.ts';

/**
 * A service that ignores case serves `/ADMIN` as `/admin`. With strict paths the gateway refuses such a path, unless an
 * open mapping has exactly this prefix.
 */
export function* noticesOfSpellings(
  mappings: readonly Mapping[],
  strictPaths: boolean,
): Work<readonly ConfigurationError[]> {
  const open = yield* openByPath(mappings);
  if (open.size === 0) return [];
  const notices = yield* mapInParts(mappings, (mapping) => noticeFor(mapping, open, strictPaths));
  return notices.filter((notice) => notice !== undefined);
}

function noticeFor(mapping: Mapping, open: MappingsByPath, strictPaths: boolean): ConfigurationError | undefined {
  if (isOpen(mapping) || mapping.shadow || mapping.prefixMatch === 'regex') return undefined;
  const other = openMappingOf(mapping, open);
  if (other === undefined) return undefined;
  const isSamePath = folded(other.prefix) === folded(mapping.prefix);
  if (strictPaths && !isSamePath) return undefined;
  return noticeOf(mapping, other, isSamePath ? samePath(mapping, other) : otherSpelling(mapping, other));
}

type MappingsByPath = ReadonlyMap<string, readonly Mapping[]>;

function* openByPath(mappings: readonly Mapping[]): Work<MappingsByPath> {
  const byPath = new Map<string, Mapping[]>();
  yield* forEachInParts(mappings, (mapping) => {
    if (!mapping.bypassAuth || mapping.shadow || mapping.prefixMatch === 'regex' || mapping.redirect) return;
    const known = byPath.get(folded(mapping.prefix));
    if (known === undefined) byPath.set(folded(mapping.prefix), [mapping]);
    else known.push(mapping);
  });
  return byPath;
}

/** The one with the longest path, of those that match as many requests beside the path. */
function openMappingOf(mapping: Mapping, open: MappingsByPath): Mapping | undefined {
  const { service, prefix } = mapping;
  const whole = folded(prefix);
  const covers = (one: Mapping) =>
    one.service === service && (isForAll(one) || conditionsOf(one) === conditionsOf(mapping)) && one.prefix !== prefix;
  for (const path of pathsAbove(whole)) {
    const found = open.get(path)?.find((one) => covers(one) && (one.prefixMatch !== 'exact' || path === whole));
    if (found !== undefined) return found;
  }
  return undefined;
}

/** `/a/b`, `/a`, `/`. */
function pathsAbove(path: string): readonly string[] {
  const paths: string[] = [];
  for (let above = path; above !== ''; above = above.slice(0, above.lastIndexOf('/'))) paths.push(above);
  return path === '/' ? paths : [...paths, '/'];
}

function isOpen({ bypassAuth, redirect }: Mapping): boolean {
  return bypassAuth || redirect !== undefined;
}

function isForAll({ host, method, headers, queryParameters }: Mapping): boolean {
  return host === undefined && method === undefined && headers.length + queryParameters.length === 0;
}

function conditionsOf(mapping: Mapping): string {
  return matchKey({ ...mapping, prefix: '/', prefixMatch: 'segments', caseSensitive: true, precedence: 0 });
}

function folded(path: string): string {
  return path.toLowerCase();
}

function noticeOf(mapping: Mapping, other: Mapping, fault: Fault): ConfigurationError {
  return { source: mapping.source, record: `Mapping ${mapping.name}`, ...fault, other: other.source };
}

function samePath({ prefix }: Mapping, other: Mapping): Fault {
  return {
    message: `${quote(other.prefix)} is the same path to a service that ignores case, and Mapping ${other.name} opens it`,
    remedy: `Give both the same authentication, or one of them another prefix than ${quote(prefix)}.`,
  };
}

function otherSpelling({ prefix }: Mapping, other: Mapping): Fault {
  const upper = quote(prefix.toUpperCase());
  return {
    message: `its path in another spelling, such as ${upper} or ${quote(`${prefix};x`)}, reaches Mapping ${other.name}, which asks for no credentials`,
    remedy: 'Set STRICT_PATHS=true, which refuses such paths, or make sure that the service reads no other spelling.',
  };
}
