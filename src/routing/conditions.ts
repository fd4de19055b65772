/** What a rule asks of a request: each condition is one object that gives the fast answer and the reason in words. */
import { foldsCase, type HostMatch, type NamedMatch, namesSecret, type TextMatch } from '#config';
import { compiled } from './compiled.ts';
import type { Rule } from './rule.ts';
import type { View } from './view.ts';

export type Part = 'path' | 'host' | 'method' | 'header' | 'query';

export interface Condition {
  readonly part: Part;
  readonly holds: (view: View) => boolean;
  /** Why it does not hold: `the method is POST, not GET`. */
  readonly reason: (view: View) => string;
}

/** The cheap ones first. Throws TypeError for a pattern that does not compile. */
export function conditionsOf({ host, method, headers, queryParameters }: Rule): readonly Condition[] {
  if (!host && !method && headers.length === 0 && queryParameters.length === 0) return none;
  return [
    ...(method === undefined ? [] : [methodCondition(method)]),
    ...(host === undefined ? [] : [hostCondition(host)]),
    ...headers.map(headerCondition),
    ...queryParameters.map(queryCondition),
  ];
}

/** Not frozen: each request goes through it, and through a frozen list that takes longer. */
const none: readonly Condition[] = [];

/** Whether the path is the rule's, read alone; the table finds the same by its tree. */
export function pathCondition(rule: Rule): Condition {
  const { prefix, prefixMatch } = rule;
  if (prefixMatch === 'regex') {
    const { matches } = compiled(prefix);
    return {
      part: 'path',
      holds: ({ facts }) => matches(facts.path),
      reason: ({ facts }) => `the path ${facts.path} does not match ${prefix}`,
    };
  }
  const folded = foldsCase(rule) ? (text: string) => text.toLowerCase() : (text: string) => text;
  const start = folded(prefix);
  const relation = prefixMatch === 'exact' ? 'is not' : 'is not under';
  return {
    part: 'path',
    holds: ({ facts }) => startsWith(folded(facts.path), start, prefixMatch === 'exact'),
    reason: ({ facts }) => `the path ${facts.path} ${relation} ${prefix}`,
  };
}

function startsWith(path: string, prefix: string, isExact: boolean): boolean {
  if (path === prefix) return true;
  return !isExact && (prefix === '/' || path.startsWith(`${prefix}/`));
}

function methodCondition(match: TextMatch): Condition {
  const { test, words } = textTest(match);
  return {
    part: 'method',
    holds: ({ facts }) => test(facts.method),
    reason: ({ facts }) => `the method is ${facts.method}, ${words}`,
  };
}

function hostCondition(match: HostMatch): Condition {
  const { test, words } = hostTest(match);
  return {
    part: 'host',
    holds: ({ host }) => test(host),
    reason: ({ host }) => `the host is ${host || 'not told'}, ${words}`,
  };
}

function hostTest(match: HostMatch): TextTest {
  if (match.kind === 'regex') return textTest(match);
  const { kind, value } = match;
  // What the star stands for is at least one character, as in Envoy's virtual hosts.
  if (kind === 'suffix')
    return { test: (host) => host.length > value.length && host.endsWith(value), words: `not *${value}` };
  if (kind === 'prefix')
    return { test: (host) => host.length > value.length && host.startsWith(value), words: `not ${value}*` };
  return { test: (host) => host === value, words: `not ${value}` };
}

function headerCondition({ name, match }: NamedMatch): Condition {
  return namedCondition('header', name, match, ({ facts }) => headerText(facts.headers[name]));
}

function queryCondition({ name, match }: NamedMatch): Condition {
  return namedCondition('query', name, match, ({ query }) => query.first(name));
}

function namedCondition(
  part: Part,
  name: string,
  match: TextMatch,
  read: (view: View) => string | undefined,
): Condition {
  const { test, words } = textTest(match);
  const subject = `the ${part === 'query' ? 'query parameter' : part} ${name}`;
  const isSecret = namesSecret(name);
  const holds = (value: string | undefined) => value !== undefined && test(value);
  return {
    part,
    holds: (view) => holds(read(view)),
    reason(view) {
      const value = read(view);
      if (value === undefined) return `${subject} is missing`;
      return isSecret ? `${subject} is not as it should be` : `${subject} is ${JSON.stringify(value)}, ${words}`;
    },
  };
}

interface TextTest {
  readonly test: (text: string) => boolean;
  /** After what the text is: `not GET`. */
  readonly words: string;
}

function textTest(match: TextMatch): TextTest {
  if (match.kind === 'present') return { test: () => true, words: 'which is enough' };
  if (match.kind === 'exact') return { test: (text) => text === match.value, words: `not ${match.value}` };
  const { matches } = compiled(match.pattern);
  return { test: matches, words: `which does not match ${match.pattern}` };
}

/** Node keeps a list of the one header that cannot be joined; a name such as `constructor` is no header. */
function headerText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  return Array.isArray(value) ? value.join(', ') : undefined;
}
