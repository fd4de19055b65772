/** Which limit a descriptor meets: the limits files compiled into a tree of maps, walked one entry a level. */
import type { Limit, LimitDescriptor, LimitDomain } from '#config';
import { bounded, sized } from './counter-key.ts';
import type { CurrentLimit, Entry } from './limiter.ts';
import { unitSeconds } from './windows.ts';

export interface Rule {
  readonly currentLimit: CurrentLimit;
  readonly unlimited: boolean;
}

/** `counterKey` is the same in every process, and for no other descriptor. */
export interface RuleMatch {
  readonly rule: Rule;
  readonly counterKey: string;
}

export interface Rules {
  match(domain: string, entries: readonly Entry[]): RuleMatch | undefined;
}

/**
 * Compiles limits with the matching rules of envoyproxy/ratelimit: at each level an entry goes to the descriptor with its
 * key and value, otherwise to the one with its key alone; a limit counts only where the last entry arrives.
 * There is no way back: the descriptor with the value hides what lies below the one without.
 */
export function compileRules(domains: readonly LimitDomain[]): Rules {
  const levels = new Map(
    domains.map(({ domain, descriptors }) => [domain, compileLevel(descriptors, sized(domain))] as const),
  );
  return Object.freeze({
    match(domain: string, entries: readonly Entry[]): RuleMatch | undefined {
      const level = levels.get(domain);
      return level === undefined ? undefined : walk(level, entries);
    },
  });
}

type Level = ReadonlyMap<string, Branch>;

/** The descriptors of one key at one level. */
interface Branch {
  readonly byValue: Map<string, Node>;
  anyValue: Node | undefined;
}

interface Node {
  readonly rule: Rule | undefined;
  /** The start of the keys of this node's counters; the values that met a key alone follow. */
  readonly keyPrefix: string;
  readonly level: Level;
}

function walk(start: Level, entries: readonly Entry[]): RuleMatch | undefined {
  let level = start;
  let node: Node | undefined;
  let values = '';
  for (const { key, value } of entries) {
    const branch = level.get(key);
    node = branch?.byValue.get(value);
    if (node === undefined) {
      node = branch?.anyValue;
      if (node === undefined) return undefined;
      values += sized(value);
    }
    level = node.level;
  }
  if (node?.rule === undefined) return undefined;
  return { rule: node.rule, counterKey: bounded(node.keyPrefix + values) };
}

function compileLevel(descriptors: readonly LimitDescriptor[], path: string): Level {
  const level = new Map<string, Branch>();
  for (const descriptor of descriptors) {
    const branch = level.get(descriptor.key) ?? {
      byValue: new Map<string, Node>(),
      anyValue: undefined,
    };
    level.set(descriptor.key, branch);
    const node = compileNode(descriptor, path);
    if (descriptor.value === undefined) branch.anyValue = node;
    else branch.byValue.set(descriptor.value, node);
  }
  return level;
}

function compileNode({ key, value, limit, descriptors }: LimitDescriptor, parentPath: string): Node {
  const path = `${parentPath}${sized(key)}${value === undefined ? '*' : `=${sized(value)}`}`;
  const rule = limit === undefined ? undefined : compileRule(limit);
  // The window is part of the name: a limit that changes its unit starts to count anew.
  return {
    rule,
    keyPrefix: `${rule?.currentLimit.windowSeconds}|${path}|`,
    level: compileLevel(descriptors, path),
  };
}

function compileRule({ requestsPerUnit, unit, unlimited, name }: Limit): Rule {
  const currentLimit = Object.freeze({ requestsPerUnit, unit, windowSeconds: unitSeconds[unit], name });
  return Object.freeze({ currentLimit, unlimited });
}
