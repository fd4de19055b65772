/** A simple model of routing: sort the rules by the table in config/README.md, and take the first that matches. */
import { compilePattern, type HostMatch, type TextMatch } from '#config';
import type { RequestAttributes, Rule } from '#routing';

export function modelMatches(rule: Rule, attributes: RequestAttributes): boolean {
  const parameters = new URLSearchParams(attributes.search);
  return (
    (rule.gatewayRoute?.scheme ?? attributes.listener) === attributes.listener &&
    pathFits(rule, attributes.path) &&
    (rule.host === undefined || hostFits(rule.host, attributes.host)) &&
    (rule.method === undefined || textFits(rule.method, attributes.method)) &&
    rule.headers.every(({ name, match }) => textFits(match, attributes.headers[name] as string | undefined)) &&
    rule.queryParameters.every(({ name, match }) => textFits(match, parameters.get(name) ?? undefined))
  );
}

function pathFits({ prefix, prefixMatch, caseSensitive }: Rule, path: string): boolean {
  if (prefixMatch === 'regex') return fits(prefix, path);
  const [actual, expected] = caseSensitive ? [path, prefix] : [path.toLowerCase(), prefix.toLowerCase()];
  if (prefixMatch === 'exact') return actual === expected;
  return expected === '/' || `${actual}/`.startsWith(`${expected}/`);
}

function hostFits(match: HostMatch, host: string): boolean {
  if (match.kind === 'regex') return fits(match.pattern, host);
  if (match.kind === 'exact') return host === match.value;
  return host !== match.value && (match.kind === 'suffix' ? host.endsWith(match.value) : host.startsWith(match.value));
}

function textFits(match: TextMatch, text: string | undefined): boolean {
  if (text === undefined) return false;
  if (match.kind === 'present') return true;
  return match.kind === 'exact' ? text === match.value : fits(match.pattern, text);
}

function fits(pattern: string, text: string): boolean {
  const compiled = compilePattern(pattern);
  if (!compiled.ok) throw new Error(compiled.fault.message);
  return compiled.pattern.matches(text);
}

const exactness = ({ kind }: TextMatch) => ['present', 'regex', 'exact'].indexOf(kind) + 1;
const exactnessOf = (matches: Rule['headers']) => matches.reduce((total, { match }) => total + exactness(match), 0);
const foldsCase = ({ caseSensitive, prefixMatch }: Rule) => !caseSensitive && prefixMatch !== 'regex';

function hostRowsOf(host: HostMatch | undefined): readonly number[] {
  if (host === undefined) return [0, 0];
  const length = host.kind === 'exact' || host.kind === 'regex' ? 0 : host.value.length;
  return [{ regex: 1, suffix: 2, prefix: 2, exact: 3 }[host.kind], length];
}

/** One number for each row of the table in config/README.md. The rule with the larger number is tried first. */
function rowsOf(rule: Rule): number[] {
  const { host, gatewayRoute } = rule;
  const hostRows = hostRowsOf(host);
  const countOrExactness = (matches: Rule['headers']) =>
    gatewayRoute === undefined ? exactnessOf(matches) : 3 * matches.length;
  return [
    rule.precedence,
    ...(gatewayRoute === undefined ? [0, 0, 0] : [...hostRows, rule.prefixMatch === 'exact' ? 1 : 0]),
    rule.prefixMatch === 'regex' ? rule.prefix.length : rule.prefix.replace(/\/?$/, '/').length,
    rule.internal ? 0 : 1,
    rule.prefixMatch === 'exact' ? 1 : 0,
    ...hostRows,
    rule.method === undefined ? 0 : exactness(rule.method),
    rule.headers.length,
    countOrExactness(rule.headers),
    rule.queryParameters.length,
    countOrExactness(rule.queryParameters),
    rule.prefixMatch === 'regex' ? 0 : 1,
    foldsCase(rule) ? 0 : 1,
    gatewayRoute === undefined ? 0 : -gatewayRoute.createdAtS,
  ];
}

/** Positive when `a` is tried first, 0 when only the name decides. */
export function modelLead(a: Rule, b: Rule): number {
  const others = rowsOf(b);
  return (
    rowsOf(a)
      .map((row, index) => row - (others[index] ?? 0))
      .find((difference) => difference !== 0) ?? 0
  );
}
