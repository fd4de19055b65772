/** Notices about guarded mappings whose path, in another spelling, reaches an open mapping to the same service. */
import type { ConfigurationError, Fault } from './errors.ts';
import { withoutTrailingSlash } from './fields/paths.ts';
import { compilePattern } from './fields/pattern.ts';
import { quote } from './quote.ts';
import { isOpen } from './records/blocked.ts';
import { fullName } from './records/conflicts.ts';
import type { Mapping } from './records/mapping.ts';
import { isPathAlone, matchKey } from './records/match.ts';
import { forEachInParts, mapInParts, type Work } from './work.ts';

/**
 * Finds mappings like a guarded `/admin` below an open `/`: a service that ignores case treats `/ADMIN` like `/admin`,
 * but the gateway routes it to the open mapping. With strict paths the gateway rejects `/ADMIN`, unless an open mapping
 * has exactly this prefix.
 */
export function* pathBypassNotices(
  mappings: readonly Mapping[],
  strictPaths: boolean,
): Work<readonly ConfigurationError[]> {
  const open = yield* openMappings(mappings);
  if (open.byPath.size + open.patterns.size === 0) return [];
  const notices = yield* mapInParts(mappings, (mapping) => noticeFor(mapping, open, strictPaths));
  return notices.filter((notice) => notice !== undefined);
}

function noticeFor(mapping: Mapping, open: OpenMappings, strictPaths: boolean): ConfigurationError | undefined {
  if (isOpen(mapping) || mapping.shadow) return undefined;
  if (mapping.prefixMatch === 'regex') return strictPaths ? undefined : noticeForPattern(mapping, open);
  const other = openMappingOf(mapping, mapping.prefix, open);
  const isSamePath = other !== undefined && folded(other.prefix) === folded(mapping.prefix);
  if (isSamePath) return noticeOf(mapping, other, samePath(mapping, other));
  if (strictPaths) return undefined;
  return other === undefined
    ? noticeForOpenPatterns(mapping, open)
    : noticeOf(mapping, other, otherSpelling(mapping, other));
}

/**
 * Checks a guarded pattern that starts with literal text. It does not match this text in another case, but an open
 * mapping may.
 */
function noticeForPattern(mapping: Mapping, open: OpenMappings): ConfigurationError | undefined {
  const head = literalHead(mapping.prefix);
  const other = head && openMappingOf(mapping, head.segments, open);
  if (!other || (other.prefixMatch === 'exact' && !head.isWhole)) return undefined;
  const spelling = other.prefix + head.text.slice(other.prefix.length).toUpperCase();
  return spelling === head.text ? undefined : noticeOf(mapping, other, reaches(quote(spelling), other));
}

/** Checks whether an open pattern matches the path in another case or with a `;` parameter at its end. */
function noticeForOpenPatterns(mapping: Mapping, { patterns }: OpenMappings): ConfigurationError | undefined {
  const { prefix, service, caseSensitive } = mapping;
  const spellings = [...(caseSensitive ? [prefix.toUpperCase()] : []), `${prefix};x`].filter((one) => one !== prefix);
  for (const { matches, mapping: other } of patterns.get(service) ?? []) {
    const spelling = coversConditions(other, mapping) ? spellings.find(matches) : undefined;
    if (spelling !== undefined) return noticeOf(mapping, other, reaches(quote(spelling), other));
  }
  return undefined;
}

interface OpenMappings {
  readonly byPath: ReadonlyMap<string, readonly Mapping[]>;
  /** The open patterns by service. */
  readonly patterns: ReadonlyMap<string, readonly OpenPattern[]>;
}

interface OpenPattern {
  readonly matches: (path: string) => boolean;
  readonly mapping: Mapping;
}

/** Bounds the open patterns for each service, because every guarded mapping is compared with them. */
const patternsMax = 10;

function* openMappings(mappings: readonly Mapping[]): Work<OpenMappings> {
  const byPath = new Map<string, Mapping[]>();
  const patterns = new Map<string, OpenPattern[]>();
  yield* forEachInParts(mappings, (mapping) => {
    if (!mapping.bypassAuth || mapping.shadow || mapping.redirect) return;
    if (mapping.prefixMatch !== 'regex') add(byPath, folded(mapping.prefix), mapping);
    else if ((patterns.get(mapping.service)?.length ?? 0) < patternsMax) {
      const compiled = compilePattern(mapping.prefix);
      if (compiled.ok) add(patterns, mapping.service, { matches: compiled.pattern.matches, mapping });
    }
  });
  return { byPath, patterns };
}

function add<T>(lists: Map<string, T[]>, key: string, one: T): void {
  const known = lists.get(key);
  if (known === undefined) lists.set(key, [one]);
  else known.push(one);
}

/**
 * Returns the open mapping with the longest path at or above `path`, if its other conditions match the mapping's
 * requests.
 */
function openMappingOf(mapping: Mapping, path: string, { byPath }: OpenMappings): Mapping | undefined {
  const { service, prefix } = mapping;
  const whole = folded(path);
  const covers = (one: Mapping) => one.service === service && coversConditions(one, mapping) && one.prefix !== prefix;
  for (const above of pathsAbove(whole)) {
    const found = byPath.get(above)?.find((one) => covers(one) && (one.prefixMatch !== 'exact' || above === whole));
    if (found !== undefined) return found;
  }
  return undefined;
}

interface LiteralHead {
  readonly text: string;
  /** The whole segments in the text: `/` for `/adm[i]n`. */
  readonly segments: string;
  /** Whether the text ends at the end of a segment. */
  readonly isWhole: boolean;
}

/**
 * Returns the literal text that all matches of a pattern start with. Undefined if there is none or it has no letters.
 */
function literalHead(pattern: string): LiteralHead | undefined {
  const [, begin = '', rest = ''] = /^\^?(\/[\w/-]*)(.*)$/s.exec(pattern) ?? [];
  const text = /^[?*+{]/.test(rest) ? begin.slice(0, -1) : begin;
  if (text === text.toUpperCase() || hasAlternatives(rest)) return undefined;
  const isWhole = text === begin && /^(?:$|\$|\/|\((?:\?:)?\/)/.test(rest);
  const segments = isWhole ? text : text.slice(0, text.lastIndexOf('/'));
  return { text, segments: withoutTrailingSlash(segments || '/'), isWhole };
}

/** Reports whether a pattern has alternatives at the top level, such as `/a|/b`. */
function hasAlternatives(pattern: string): boolean {
  let left = pattern.replace(/\\./gs, '').replace(/\[[^\]]*\]/g, '');
  for (let before = ''; before !== left; left = left.replace(/\([^()]*\)/g, '')) before = left;
  return left.includes('|');
}

/** Returns a path and its parents: `/a/b`, `/a`, `/`. */
function pathsAbove(path: string): readonly string[] {
  const paths: string[] = [];
  for (let above = path; above !== ''; above = above.slice(0, above.lastIndexOf('/'))) paths.push(above);
  return path === '/' ? paths : [...paths, '/'];
}

function coversConditions(open: Mapping, mapping: Mapping): boolean {
  return isPathAlone(open) || conditionsOf(open) === conditionsOf(mapping);
}

function conditionsOf(mapping: Mapping): string {
  return matchKey({ ...mapping, prefix: '/', prefixMatch: 'segments', caseSensitive: true, precedence: 0 });
}

function folded(path: string): string {
  return path.toLowerCase();
}

function noticeOf(mapping: Mapping, other: Mapping, fault: Fault): ConfigurationError {
  return { source: mapping.source, record: fullName(mapping), ...fault, other: other.source };
}

function samePath({ prefix }: Mapping, other: Mapping): Fault {
  return {
    message: `a service that ignores case treats ${quote(other.prefix)} as the same path, and Mapping ${other.name} requires no credentials`,
    remedy: `Use the same authentication for both, or a prefix other than ${quote(prefix)} for one of them.`,
  };
}

function otherSpelling({ prefix }: Mapping, other: Mapping): Fault {
  return reaches(`${quote(prefix.toUpperCase())} or ${quote(`${prefix};x`)}`, other);
}

function reaches(spellings: string, other: Mapping): Fault {
  return {
    message: `another spelling of its path, such as ${spellings}, reaches Mapping ${other.name}, which requires no credentials`,
    remedy: 'Set STRICT_PATHS=true to reject such paths, or make sure that the service accepts no other spelling.',
  };
}
