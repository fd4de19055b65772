/** When two mappings take the same requests: by the same words, in whichever order headers and parameters are listed. */
import type { Mapping } from './gateway-records.ts';
import type { HostMatch, NamedMatch, TextMatch } from './mapping-parts.ts';

type Match = Pick<
  Mapping,
  'prefix' | 'prefixMatch' | 'caseSensitive' | 'host' | 'method' | 'headers' | 'queryParameters' | 'precedence'
>;

/** Whether the case of the path makes no difference; of a pattern it always makes one. */
export function foldsCase({ caseSensitive, prefixMatch }: Pick<Match, 'caseSensitive' | 'prefixMatch'>): boolean {
  return !caseSensitive && prefixMatch !== 'regex';
}

/** The same text for mappings that take the same requests, and for no others. */
export function matchKey(match: Match): string {
  const { prefix, prefixMatch, host, method, headers, queryParameters, precedence } = match;
  const folds = foldsCase(match);
  const path = folds ? prefix.toLowerCase() : prefix;
  const isPathAlone =
    prefixMatch !== 'regex' && !host && !method && headers.length === 0 && queryParameters.length === 0;
  // A path begins with a slash, and the list with a bracket.
  const asked = isPathAlone
    ? path
    : JSON.stringify([path, hostKey(host), textKey(method), namedKey(headers), namedKey(queryParameters)]);
  return `${prefixMatch} ${folds} ${precedence} ${asked}`;
}

function hostKey(host: HostMatch | undefined): readonly string[] {
  if (host === undefined) return [];
  return host.kind === 'regex' ? [host.kind, host.pattern] : [host.kind, host.value];
}

function textKey(match: TextMatch | undefined): readonly string[] {
  if (match === undefined) return [];
  if (match.kind === 'present') return [match.kind];
  return match.kind === 'regex' ? [match.kind, match.pattern] : [match.kind, match.value];
}

function namedKey(matches: readonly NamedMatch[]): readonly string[] {
  return matches.map(({ name, match }) => JSON.stringify([name, ...textKey(match)])).sort();
}
