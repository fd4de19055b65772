/** Which limits a descriptor meets: the limits files compiled into a tree of maps, walked one entry a level. */
import type { LimitDescriptor, LimitDomain } from '#config';
import { sized } from './counter-key.ts';
import type { Entry } from './limiter.ts';
import { createRule, matchOf, type Rule, type RuleMatch } from './rule.ts';
import { compileWildcard, type Matches } from './wildcard.ts';

export interface Rules {
  /** Empty when no limit applies. */
  match(domain: string, entries: readonly Entry[]): readonly RuleMatch[];
  /** Whether any limit takes another's place. */
  readonly hasReplaces: boolean;
}

/**
 * Compiles limits with the matching rules of envoyproxy/ratelimit: at each level an entry goes to the descriptor with its
 * key and value, otherwise to the first in the file whose `*` matches, otherwise to the one with its key alone; limits
 * count only where the last entry arrives. There is no way back: what was preferred hides what lies below the others.
 */
export function compileRules(domains: readonly LimitDomain[]): Rules {
  const levels = new Map(
    domains.map(({ domain, descriptors }) => {
      const top = { domain, descriptor: '', path: sized(domain) };
      return [domain, compileLevel(descriptors, top)] as const;
    }),
  );
  return Object.freeze({
    match(domain: string, entries: readonly Entry[]): readonly RuleMatch[] {
      const level = levels.get(domain);
      return level === undefined ? none : walk(level, entries);
    },
    hasReplaces: domains.some(({ descriptors }) => descriptors.some(hasReplaces)),
  });
}

function hasReplaces({ limits, descriptors }: LimitDescriptor): boolean {
  return limits.some(({ replaces }) => replaces.length > 0) || descriptors.some(hasReplaces);
}

const none: readonly RuleMatch[] = Object.freeze([]);

type Level = ReadonlyMap<string, Branch>;

/** The descriptors of one key at one level. */
interface Branch {
  readonly byValue: Map<string, Node>;
  readonly wildcards: { readonly matches: Matches; readonly node: Node }[];
  anyValue: Node | undefined;
}

interface Node {
  readonly rules: readonly Rule[];
  /** Whether each value has counters of its own. */
  readonly tellsValuesApart: boolean;
  readonly level: Level;
}

function walk(start: Level, entries: readonly Entry[]): readonly RuleMatch[] {
  let level = start;
  let node: Node | undefined;
  let values = '';
  for (const { key, value } of entries) {
    node = nodeFor(level.get(key), value);
    if (node === undefined) return none;
    if (node.tellsValuesApart) values += sized(value);
    level = node.level;
  }
  if (node === undefined || node.rules.length === 0) return none;
  return node.rules.map((rule) => matchOf(rule, values, entries));
}

function nodeFor(branch: Branch | undefined, value: string): Node | undefined {
  if (branch === undefined) return undefined;
  const exact = branch.byValue.get(value);
  if (exact !== undefined) return exact;
  for (const { matches, node } of branch.wildcards) if (matches(value)) return node;
  return branch.anyValue;
}

interface Place {
  readonly domain: string;
  readonly descriptor: string;
  readonly path: string;
}

function compileLevel(descriptors: readonly LimitDescriptor[], place: Place): Level {
  const level = new Map<string, Branch>();
  for (const descriptor of descriptors) {
    const branch = level.get(descriptor.key) ?? {
      byValue: new Map<string, Node>(),
      wildcards: [],
      anyValue: undefined,
    };
    level.set(descriptor.key, branch);
    addNode(branch, descriptor.value, compileNode(descriptor, place));
  }
  return level;
}

function addNode(branch: Branch, value: string | undefined, node: Node): void {
  if (value === undefined) branch.anyValue = node;
  else if (value.includes('*')) branch.wildcards.push({ matches: compileWildcard(value), node });
  else branch.byValue.set(value, node);
}

function compileNode(descriptor: LimitDescriptor, above: Place): Node {
  const { key, value, limits, shareThreshold, detailedMetric, descriptors, source } = descriptor;
  const place = {
    domain: above.domain,
    descriptor: `${above.descriptor && `${above.descriptor} › `}${key}${value === undefined ? '' : `=${value}`}`,
    path: `${above.path}${sized(key)}${value === undefined ? '*' : `=${sized(value)}`}`,
  };
  return {
    rules: limits.map((limit) => createRule(limit, { ...place, detailedMetric, source })),
    tellsValuesApart: value === undefined || (value.includes('*') && !shareThreshold),
    level: compileLevel(descriptors, place),
  };
}
