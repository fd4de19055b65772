/** Notices about mappings and versions whose protection another spelling of their path evades. */
import type { ConfigurationError, Fault } from './errors.ts';
import { withoutTrailingSlash } from './fields/paths.ts';
import { compilePattern } from './fields/pattern.ts';
import { quote } from './quote.ts';
import { fullName } from './records/conflicts.ts';
import { callsService, type Mapping } from './records/mapping.ts';
import { isPathAlone, matchKey } from './records/match.ts';
import { fieldsEvaded, protectionOf } from './records/protection.ts';
import type { Version } from './records/version.ts';

interface Records {
  readonly mappings: readonly Mapping[];
  readonly versions: readonly Version[];
}

/**
 * Finds mappings like a guarded `/admin` below an open `/`: a service that ignores case treats `/ADMIN` like `/admin`,
 * but the gateway routes it to the open mapping. With strict paths the gateway rejects `/ADMIN`. It then rejects the
 * requests of both mappings if an open one has exactly this prefix.
 */
export function pathBypassNotices(
  { mappings, versions }: Records,
  strictPaths: boolean,
): readonly ConfigurationError[] {
  // A refused Mapping guards its requests as well.
  const forwarding = mappings.filter((mapping) => !mapping.shadow && callsService({ ...mapping, refusal: undefined }));
  const others = otherMappings(forwarding);
  if (strictPaths) return samePathNotices(others);
  const notices = forwarding.map((mapping) => noticeFor(mapping, others));
  const versionNotices = versions.map((version) => noticeForVersion(version, others));
  return [...notices, ...versionNotices].filter((notice) => notice !== undefined);
}

/** Finds mappings whose prefixes differ only in case, and which are protected differently. */
function samePathNotices({ byPath }: OtherMappings): readonly ConfigurationError[] {
  const groups = [...byPath.values()].filter((group) => group.some(({ prefix }) => prefix !== group[0]?.prefix));
  return groups.flat().flatMap((mapping) => {
    const same = byPath.get(folded(mapping.prefix)) ?? [];
    const isOther = (one: Mapping) => one.prefix !== mapping.prefix && protectionOf(one) !== protectionOf(mapping);
    const other = same.find(isOther);
    return other === undefined ? [] : [noticeOf(mapping, other, samePath(mapping, other))];
  });
}

function noticeFor(mapping: Mapping, others: OtherMappings): ConfigurationError | undefined {
  if (mapping.prefixMatch === 'regex') return noticeForPattern(mapping, others);
  const other = evadingMappingOf(mapping, mapping.prefix, others);
  return other === undefined
    ? noticeForOtherPatterns(mapping, others)
    : noticeOf(mapping, other, reaches(spellingsOf(mapping.prefix), mapping, other));
}

/** A path under a mapping that covers the version belongs to the version only in its own spelling. */
function noticeForVersion(
  { name, prefix, source }: Version,
  { byPath }: OtherMappings,
): ConfigurationError | undefined {
  const [, ...above] = pathsAbove(folded(prefix));
  const other = above.flatMap((path) => byPath.get(path) ?? []).find(({ prefixMatch }) => prefixMatch !== 'exact');
  if (other === undefined) return undefined;
  const message = `another spelling of its path, such as ${spellingsOf(prefix)}, reaches Mapping ${other.name} as if there were no Version`;
  return { source, record: `Version ${name}`, message, remedy, other: other.source };
}

/** Checks a pattern that starts with literal text. It does not match this text in another case, but another mapping may. */
function noticeForPattern(mapping: Mapping, others: OtherMappings): ConfigurationError | undefined {
  const head = literalHead(mapping.prefix);
  const other = head && evadingMappingOf(mapping, head.segments, others);
  if (!other || (other.prefixMatch === 'exact' && !head.isWhole)) return undefined;
  const spelling = other.prefix + head.text.slice(other.prefix.length).toUpperCase();
  return spelling === head.text ? undefined : noticeOf(mapping, other, reaches(quote(spelling), mapping, other));
}

/** Checks whether a pattern matches the path in another case or with a `;` parameter at its end. */
function noticeForOtherPatterns(mapping: Mapping, { patterns }: OtherMappings): ConfigurationError | undefined {
  const { prefix, service, caseSensitive } = mapping;
  const spellings = [...(caseSensitive ? [prefix.toUpperCase()] : []), `${prefix};x`].filter((one) => one !== prefix);
  for (const { matches, mapping: other } of patterns.get(service) ?? []) {
    const evades = coversConditions(other, mapping) && evasionBy(other, mapping) !== undefined;
    const spelling = evades ? spellings.find(matches) : undefined;
    if (spelling !== undefined) return noticeOf(mapping, other, reaches(quote(spelling), mapping, other));
  }
  return undefined;
}

interface OtherMappings {
  readonly byPath: ReadonlyMap<string, readonly Mapping[]>;
  /** The mappings with patterns by service. */
  readonly patterns: ReadonlyMap<string, readonly OtherPattern[]>;
}

interface OtherPattern {
  readonly matches: (path: string) => boolean;
  readonly mapping: Mapping;
}

/** Bounds the patterns for each service, because every mapping is compared with them. */
const patternsMax = 10;

function otherMappings(mappings: readonly Mapping[]): OtherMappings {
  const byPath = new Map<string, Mapping[]>();
  const patterns = new Map<string, OtherPattern[]>();
  for (const mapping of mappings) {
    if (mapping.prefixMatch !== 'regex') add(byPath, folded(mapping.prefix), mapping);
    else if ((patterns.get(mapping.service)?.length ?? 0) < patternsMax) {
      const compiled = compilePattern(mapping.prefix);
      if (compiled.ok) add(patterns, mapping.service, { matches: compiled.pattern.matches, mapping });
    }
  }
  return { byPath, patterns };
}

function add<T>(lists: Map<string, T[]>, key: string, one: T): void {
  const known = lists.get(key);
  if (known === undefined) lists.set(key, [one]);
  else known.push(one);
}

/**
 * Returns the mapping with the longest path at or above `path` whose conditions match the mapping's requests, and which
 * lacks some of its protection.
 */
function evadingMappingOf(mapping: Mapping, path: string, { byPath }: OtherMappings): Mapping | undefined {
  const { service, prefix } = mapping;
  const whole = folded(path);
  const covers = (one: Mapping) =>
    one.service === service &&
    one.prefix !== prefix &&
    coversConditions(one, mapping) &&
    evasionBy(one, mapping) !== undefined;
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
  const text = /^(?:\(\?\w*\))*[?*+{]/.test(rest) ? begin.slice(0, -1) : begin;
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

function coversConditions(other: Mapping, mapping: Mapping): boolean {
  return isPathAlone(other) || conditionsOf(other) === conditionsOf(mapping);
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
    message: `a service that ignores case treats ${quote(other.prefix)} of Mapping ${other.name} as the same path, but the two are protected differently, so STRICT_PATHS rejects the requests of both`,
    remedy: `Protect both alike, or use a prefix other than ${quote(prefix)} for one of them.`,
  };
}

function spellingsOf(prefix: string): string {
  return `${quote(prefix.toUpperCase())} or ${quote(`${prefix};x`)}`;
}

const remedy =
  'Remove STRICT_PATHS=false, so that such paths are rejected, or make sure that the service accepts no other spelling.';

function reaches(spellings: string, mapping: Mapping, other: Mapping): Fault {
  const evasion = evasionBy(other, mapping);
  return {
    message: `another spelling of its path, such as ${spellings}, reaches Mapping ${other.name}, which ${evasion}`,
    remedy,
  };
}

/** Says which protection a request to `mapping` evades if it reaches `other` instead. Undefined if there is none. */
function evasionBy(other: Mapping, mapping: Mapping): string | undefined {
  const fields = fieldsEvaded(mapping, other);
  const evasions = [
    ...(isOpen(other) && !isOpen(mapping) ? ['requires no credentials'] : []),
    ...(fields.length === 0 ? [] : [`does not have its ${fields.join(', ')}`]),
  ];
  return evasions.length === 0 ? undefined : evasions.join(' and ');
}

/** Reports whether the mapping requires no authentication, like every redirect. */
function isOpen({ bypassAuth, redirect }: Mapping): boolean {
  return bypassAuth || redirect !== undefined;
}
